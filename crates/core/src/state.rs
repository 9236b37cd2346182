//! The state of decisions outside a cluster: objects from files.
//!
//! In go values as a manifest has them, out comes a [`Snapshot`] that says what the absence of an object
//! means. Files are read elsewhere.

use serde_json::Value;

use crate::family;
use crate::model::object::{Coverage, DEFAULT_NAMESPACE, KindState, Object};
use crate::model::settings::Settings;
use crate::model::snapshot::Snapshot;

/// A state without objects: those of the families' kinds are known to be absent, those of the core are
/// unknown in every namespace of which no object is added. The settings hold the namespace of objects and
/// requests without one.
#[must_use]
pub fn empty(settings: Settings) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for kind in family::state_kinds(&settings.families) {
        let is_core = kind.group.is_empty();
        let coverage = if is_core { Coverage::PerNamespace } else { Coverage::Complete };
        snapshot.set(kind, KindState::new(coverage));
    }
    snapshot.settings = settings;
    snapshot
}

/// Adds an object to the state, or replaces the one of the same name. What no decision looks at is
/// left out, as is what has no name. `namespace` is where objects are that name none; without it
/// they count as being in `default`, with a note that it was not given.
///
/// # Errors
/// When a number that is read is beyond what a double can hold.
pub fn add(snapshot: &mut Snapshot, value: &Value) -> serde_json::Result<()> {
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let group = text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    let Some(kind) = family::state_kind(&snapshot.settings.families, group, text("/kind")) else {
        return Ok(());
    };
    let Some(mut object) = Object::read(kind, value)? else { return Ok(()) };
    if !kind.namespaced {
        object.namespace.clear();
    } else if object.namespace.is_empty() {
        let given = &snapshot.settings.namespace;
        object.namespace_given = given.is_some();
        object.namespace = given.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    }
    snapshot.kind_mut(kind).insert(object);
    Ok(())
}
