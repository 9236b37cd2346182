//! The state of decisions outside a cluster: objects from files.
//!
//! In go values as a manifest has them, out comes a [`Snapshot`] that says what the absence of an object
//! means. Files are read elsewhere.
//! The definitions that come with memgate belong to it, each read when an object of its kind is first checked.

pub mod cluster_snapshot;
pub mod makers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use memgate_model::crds::Crds;
use memgate_model::family::Family;
use memgate_model::finding::Finding;
use memgate_model::kind::Kind;
use memgate_model::object::{Coverage, DEFAULT_NAMESPACE, JsonText, KindState, Object, Reference};
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;
use memgate_schema::crd::Crd;
use serde_json::Value;
use thiserror::Error;

/// Why an object is not part of the state.
#[derive(Debug, Error)]
pub enum AddError {
    /// A number that is read is beyond what a double can hold.
    #[error(transparent)]
    Number(#[from] serde_json::Error),
    /// The definition of a known kind cannot be used.
    #[error("{0}; the one that comes with memgate is used")]
    Definition(String),
}

/// A state without objects: those of the families' kinds are known to be absent, those of the core are
/// unknown in every namespace of which no object is added. The definitions that come with memgate stand in for
/// an apiserver. The settings hold the namespace of objects and
/// requests without one.
pub fn empty(settings: Settings) -> Snapshot {
    let mut snapshot = Snapshot::new(memgate_platforms::default_settings());
    for kind in memgate_platforms::state_kinds(&settings.families) {
        let is_core = kind.group.is_empty();
        let coverage = if is_core { Coverage::PerNamespace } else { Coverage::Complete };
        snapshot.set(kind, KindState::new(coverage));
    }
    snapshot.settings = settings;
    snapshot.crds = Some(Crds::new(bundled_definition));
    snapshot
}

/// The texts of an object that the state shares with its check.
#[derive(Debug)]
pub struct SharedTexts<'t> {
    /// Its JSON.
    pub json: &'t Arc<JsonText>,
    /// Its namespace.
    pub namespace: &'t Arc<str>,
    /// Its name.
    pub name: &'t Arc<str>,
}

/// What became of an object that was added.
#[derive(Debug, Default)]
pub struct Added {
    /// Whether it is one at which decisions look.
    pub is_used: bool,
    /// Of a policy or an exemption: why it is not in force.
    pub faults: Vec<Finding>,
}

impl Added {
    const fn used(is_used: bool) -> Self {
        Self { is_used, faults: Vec::new() }
    }
}

/// Adds an object to the state, or replaces the one of the same name.
/// All others are left out. One that is [`unreadable`] is left out too, and from then on no object of its kind counts as
/// absent. `namespace` is where objects are that name none; without it
/// they count as being in `default`, with a note that it was not given. A CustomResourceDefinition of a
/// family's kind takes the place of the one that comes with memgate. What an object [makes](makers) becomes unknown.
///
/// # Errors
/// When a number that is read is beyond what a double can hold, or a definition cannot be used.
pub fn add(snapshot: &mut Snapshot, value: &Value) -> Result<Added, AddError> {
    add_shared(snapshot, value, None)
}

/// The same for an object that may share its texts.
///
/// # Errors
/// Those of [`add`].
pub fn add_shared(
    snapshot: &mut Snapshot,
    value: &Value,
    texts: Option<&SharedTexts<'_>>,
) -> Result<Added, AddError> {
    add_from(snapshot, value, texts, false)
}

/// The same; `stored` says whether a cluster has the object.
fn add_from(
    snapshot: &mut Snapshot,
    value: &Value,
    texts: Option<&SharedTexts<'_>>,
    stored: bool,
) -> Result<Added, AddError> {
    let (group, kind) = group_and_kind(value);
    let may_make = makers::add_maker(Arc::make_mut(&mut snapshot.makers), &snapshot.settings, value);
    if (group, kind) == ("apiextensions.k8s.io", "CustomResourceDefinition") {
        return add_definition(snapshot, value).map(Added::used);
    }
    let is_readable = unreadable(&snapshot.settings, value).is_empty();
    if let Some(kind) = memgate_policy::resource::kind(group, kind) {
        if !is_readable {
            return Ok(Added::used(true));
        }
        let value = with_namespace(value, kind, &snapshot.settings);
        let families = memgate_platforms::known(&snapshot.settings.families);
        let faults = memgate_policy::put(Arc::make_mut(&mut snapshot.policies), &families, kind, &value);
        return Ok(Added { is_used: true, faults });
    }
    let Some(kind) = memgate_platforms::state_kind(&snapshot.settings.families, group, kind) else {
        note_installed(snapshot, group);
        return Ok(Added::used(makers::add_installed(snapshot, value) || may_make));
    };
    let object = match texts {
        Some(texts) => texts.object(kind, value),
        None => Object::read(kind, value)?,
    };
    let is_named = object.is_some();
    let object = if is_named { object } else { to_be_named(kind, value)? };
    let Some(mut object) = object.filter(|_| is_readable) else {
        snapshot.kind_mut(kind).lacks_some |= !is_readable;
        return Ok(Added::used(true));
    };
    object.stored = stored;
    if !kind.namespaced {
        object.namespace = "".into();
    } else if object.namespace.is_empty() {
        let given = &snapshot.settings.namespace;
        object.namespace_given = given.is_some();
        object.namespace = given.as_deref().unwrap_or(DEFAULT_NAMESPACE).into();
    }
    let state = snapshot.kind_mut(kind);
    if is_named {
        state.insert(object);
    } else {
        state.insert_to_be_named(object);
    }
    Ok(Added::used(true))
}

/// An object whose name an apiserver makes, under what that begins with. It is none of those that others name.
fn to_be_named(kind: &'static Kind, value: &Value) -> serde_json::Result<Option<Object>> {
    let Some(prefix) = value.pointer("/metadata/generateName").filter(|prefix| prefix.is_string()) else {
        return Ok(None);
    };
    let mut named = value.clone();
    if let Some(metadata) = named.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("name".to_owned(), prefix.clone());
    }
    Object::read(kind, &named)
}

impl SharedTexts<'_> {
    /// The object of a value with these texts; `None` without a name.
    fn object(&self, kind: &'static Kind, value: &Value) -> Option<Object> {
        let metadata = value.get("metadata");
        let text = |field| metadata.and_then(|it| it.get(field)).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (like(text("namespace"), self.namespace), like(text("name"), self.name));
        (!name.is_empty()).then(|| Object::read_later(kind, namespace, name, Arc::clone(self.json)))
    }
}

/// A text, shared if it is the same as another one.
pub fn like(text: &str, other: &Arc<str>) -> Arc<str> {
    if *text == **other { Arc::clone(other) } else { text.into() }
}

/// An object of a kind that has namespaces, with the one in which it counts as being.
fn with_namespace<'v>(value: &'v Value, kind: &Kind, settings: &Settings) -> Cow<'v, Value> {
    let given = value.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    if !kind.namespaced || !given.is_empty() {
        return Cow::Borrowed(value);
    }
    let mut value = value.clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        let namespace = settings.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    Cow::Owned(value)
}

/// The text at a pointer; empty if there is none.
pub fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The API group and the kind of a manifest; empty where it does not say them.
pub fn group_and_kind(value: &Value) -> (&str, &str) {
    let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default();
    (text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group), text("kind"))
}

/// What [`unreadable`] says of an object without a name.
pub const NAME_REQUIRED: &str = "is required";

/// Why an object has no place in the state although decisions look at objects of its kind: its metadata, name or
/// namespace is of the wrong type, or it has no name, none to be generated, and is not a policy. Each with its pointer.
pub fn unreadable(settings: &Settings, value: &Value) -> Vec<(Pointer, &'static str)> {
    let (group, kind) = group_and_kind(value);
    let of_policy = memgate_policy::resource::kind(group, kind);
    if of_policy.or_else(|| memgate_platforms::state_kind(&settings.families, group, kind)).is_none() {
        return Vec::new();
    }
    let (at, null) = (Pointer::new("/metadata"), Value::Null);
    let metadata = value.get("metadata").unwrap_or(&null);
    if !metadata.is_object() && !metadata.is_null() {
        return vec![(at, "must be an object")];
    }
    let prefix = metadata.get("generateName").and_then(Value::as_str);
    let is_generated = prefix.is_some_and(|prefix| !prefix.is_empty());
    let faults = ["name", "namespace"].into_iter().filter_map(|field| {
        let fault = match metadata.get(field).unwrap_or(&null) {
            Value::String(text) if field == "namespace" || !text.is_empty() => return None,
            Value::Null if field == "namespace" => return None,
            // A policy without a name is in force.
            Value::Null | Value::String(_) if of_policy.is_some() || is_generated => return None,
            Value::Null | Value::String(_) => NAME_REQUIRED,
            _ => "must be a string",
        };
        Some((at.key(field), fault))
    });
    faults.collect()
}

/// The name under which [`add`] keeps an object; `None` for one that it leaves out.
pub fn reference(settings: &Settings, value: &Value) -> Option<Reference> {
    if !unreadable(settings, value).is_empty() {
        return None;
    }
    let (group, kind) = group_and_kind(value);
    let of_policy = memgate_policy::resource::kind(group, kind);
    let kind = of_policy.or_else(|| memgate_platforms::state_kind(&settings.families, group, kind))?;
    let own = |pointer| text(value, pointer).to_owned();
    let (mut namespace, name) = (own("/metadata/namespace"), own("/metadata/name"));
    if !kind.namespaced {
        namespace.clear();
    } else if namespace.is_empty() {
        namespace = settings.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    }
    (!name.is_empty()).then_some(Reference { kind, namespace, name })
}

/// Notes that a platform's group is installed, since an object or a definition of it is among the inputs.
fn note_installed(snapshot: &mut Snapshot, group: &str) {
    let families = snapshot.settings.families.clone();
    for kind in
        memgate_platforms::state_kinds(&families).filter(|kind| !group.is_empty() && kind.group == group)
    {
        snapshot.kind_mut(kind).is_installed = true;
    }
}

fn add_definition(snapshot: &mut Snapshot, value: &Value) -> Result<bool, AddError> {
    let (group, kind) = (text(value, "/spec/group"), text(value, "/spec/names/kind"));
    note_installed(snapshot, group);
    if memgate_platforms::validated(&snapshot.settings.families, group, kind).is_none() {
        return Ok(false);
    }
    let version = text(value, "/apiVersion");
    if version != "apiextensions.k8s.io/v1" {
        let name = text(value, "/metadata/name");
        let message =
            format!("CustomResourceDefinition {name}: apiVersion is {version}, not apiextensions.k8s.io/v1");
        return Err(AddError::Definition(message));
    }
    if let Some(crds) = &mut snapshot.crds {
        crds.insert(memgate_schema::read(value).map_err(AddError::Definition)?);
    }
    Ok(true)
}

/// A row, a group and a kind.
type Key = (&'static str, String, String);

/// A definition once it is read; `None` where the kind has none.
type Definition = Arc<OnceLock<Option<Arc<Crd>>>>;

/// What was read in this process: definitions never change, and one takes longer to read than an object.
static READ: LazyLock<Mutex<BTreeMap<Key, Definition>>> = LazyLock::new(Mutex::default);

/// The definition of a kind of a family.
fn bundled_definition(family: &Family, group: &str, kind: &str) -> Option<Arc<Crd>> {
    let key = (family.name, group.to_owned(), kind.to_owned());
    // Read without the lock: who asks for another kind does not wait.
    let definition = Arc::clone(READ.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
    definition.get_or_init(|| search(family, group, kind).map(Arc::new)).clone()
}

fn search(family: &Family, group: &str, kind: &str) -> Option<Crd> {
    let name = format!("kind: {kind}");
    family.definitions.crds.iter().find_map(|file| {
        let file = file();
        let likely = file.split("\n---\n").filter(|text| text.contains(&name));
        likely.filter_map(parse).find(|crd| crd.group == group && crd.kind == kind)
    })
}

fn parse(text: &str) -> Option<Crd> {
    let documents = values(&Arc::new(Source::new("bundled", text)), &mut Vec::new());
    documents.iter().find_map(|document| memgate_schema::read(document.value()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_every_kind_of_a_family() {
        for family in memgate_platforms::ALL {
            for kind in family.kinds.validated.iter().filter(|kind| !kind.group.is_empty()) {
                let crd = bundled_definition(family, kind.group, kind.kind);
                let crd = crd.unwrap_or_else(|| panic!("{} has no definition", kind.kind));
                assert!(crd.served(kind.version).is_some(), "{}", kind.kind);
            }
        }
    }
}
