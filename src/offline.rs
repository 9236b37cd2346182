//! The state of decisions outside a cluster: objects from files.
//!
//! In go values as a manifest has them, out comes a [`Snapshot`] that knows what may be concluded
//! from what is not there.

use serde_json::Value;

use crate::family;
use crate::model::kind::{Kind, NAMESPACE, SECRET};
use crate::model::settings::Family;
use crate::model::snapshot::{Coverage, KindState, Object, Snapshot};

/// The namespace of objects that name none, as kubectl has it.
pub const DEFAULT_NAMESPACE: &str = "default";

/// A state in which nothing exists: the families' kinds are known to be absent, those of the core
/// are unknown wherever no object of the kind says otherwise. `namespace` is that of objects and
/// requests that name none.
#[must_use]
pub fn empty(namespace: &str) -> Snapshot {
    let mut snapshot = Snapshot::default();
    namespace.clone_into(&mut snapshot.settings.namespace);
    for kind in Family::ALL.into_iter().flat_map(family::watched) {
        snapshot.set(kind, KindState::new(Coverage::Complete));
    }
    for kind in [&SECRET, &NAMESPACE] {
        snapshot.set(kind, KindState::new(Coverage::PerNamespace));
    }
    snapshot
}

/// Adds an object to the state, or replaces the one of the same name. What no decision looks at is
/// left out, as is what has no name.
///
/// # Errors
/// When a value that is read is out of all bounds.
pub fn add(snapshot: &mut Snapshot, value: &Value) -> serde_json::Result<()> {
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let group = text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    let Some(kind) = family::state_kind(group, text("/kind")) else { return Ok(()) };
    let Some(mut object) = Object::read(kind, value)? else { return Ok(()) };
    if is_cluster_wide(kind) {
        object.namespace.clear();
    } else if object.namespace.is_empty() {
        object.namespace.clone_from(&snapshot.settings.namespace);
    }
    snapshot.kind_mut(kind).insert(object);
    Ok(())
}

fn is_cluster_wide(kind: &Kind) -> bool {
    *kind == NAMESPACE
}
