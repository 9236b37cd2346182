//! Objects of which a controller or a tool may make Secrets, `ConfigMaps` and Services. Whether these are there is unknown in
//! files.

pub mod charts;
mod installers;

pub use installers::{Installation, installations};

use super::{group_and_kind, text};
use memgate_manifest::later::is_filled_in_later;
use memgate_model::family::Family;
use memgate_model::kind::{Kind, NAMESPACE};
use memgate_model::makers::Makers;
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_model::workload;
use memgate_primitives::plain_text::{cut, quoted, shown_key};
use serde_json::Value;

/// Words that begin in a key of an annotation which lets a controller copy an object elsewhere.
const COPIES: [&str; 6] = ["clone", "copy", "mirror", "propagat", "reflect", "replicat"];

/// Notes what an object installs. Returns whether it installs anything.
pub(super) fn add_installed(snapshot: &mut Snapshot, value: &Value) -> bool {
    charts::add(snapshot, value);
    let Some(installations) = installations(&snapshot.settings, value) else { return false };
    for Installation { namespace, .. } in installations {
        add_anything(snapshot, namespace.as_deref());
    }
    true
}

/// Notes what an object may make. Returns whether that may be anything that it says.
pub fn add_maker(makers: &mut Makers, settings: &Settings, value: &Value) -> bool {
    let (group, kind) = group_and_kind(value);
    if group.is_empty() {
        add_annotated(makers, kind, value);
    }
    if !is_of_others(settings, group) || workload::find(group, kind).is_some() {
        return false;
    }
    let own = |field| Some(text(value, field)).filter(|text| !is_filled_in_later(text)).unwrap_or_default();
    let (namespace, name) = (own("/metadata/namespace"), own("/metadata/name"));
    let mut says = Vec::new();
    scalars(value, &mut says);
    makers.add((namespace, name), &title(kind, name), &says);
    true
}

/// A maker in messages.
fn title(kind: &str, name: &str) -> String {
    format!("{} {}", cut(&shown_key(kind), 63), quoted(name))
}

/// Whether a group is neither built in, nor that of a platform, nor memgate's own.
fn is_of_others(settings: &Settings, group: &str) -> bool {
    let is_of = |family: &&Family| {
        let mut validated = family.kinds.validated.iter();
        validated.any(|kind| kind.group == group) || family.other_kinds().any(|(other, _)| other == group)
    };
    let is_built_in =
        !group.contains('.') || group.ends_with(".k8s.io") || format!(".{group}").ends_with(".memgate.dev");
    !is_built_in && !memgate_platforms::ALL.iter().chain(&settings.families).any(is_of)
}

/// Notes what the annotations of an object of Kubernetes itself let others make of it: of a Service its certificate, of a Secret
/// its copies. Pods and workloads only read.
fn add_annotated(makers: &mut Makers, kind: &str, value: &Value) {
    let annotations = value.pointer("/metadata/annotations").and_then(Value::as_object);
    let Some(annotations) = annotations.filter(|_| kind != "Pod") else { return };
    let is_of_kubernetes =
        |domain: &str| [".kubernetes.io", ".k8s.io"].iter().any(|it| format!(".{domain}").ends_with(it));
    let is_others = |key: &str| key.split_once('/').is_some_and(|(domain, _)| !is_of_kubernetes(domain));
    let others = annotations.iter().filter(|(key, _)| is_others(key));
    let others: Vec<_> =
        others.filter_map(|(key, text)| Some((key.to_ascii_lowercase(), text.as_str()?))).collect();
    let name = text(value, "/metadata/name");
    let copies = |key: &str| key.ends_with("/sync") || COPIES.iter().any(|word| key.contains(word));
    if others.iter().any(|(key, _)| copies(key)) {
        makers.add_copied((kind, name), &title(kind, name));
    }
    let says = others.iter().filter(|(key, _)| key.contains("secret")).map(|(_, text)| *text);
    let mut says: Vec<&str> = says.collect();
    if !says.is_empty() {
        let namespace = installers::given(value, "/metadata/namespace").unwrap_or(DEFAULT_NAMESPACE);
        // What comes into a Secret is not known either.
        says.push(name);
        makers.add((namespace, ""), &title(kind, name), &says);
    }
}

/// The texts and keys in a value. The recursion is bounded: a value is at most 100 levels deep.
fn scalars<'v>(value: &'v Value, all: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => all.push(text),
        Value::Array(items) => items.iter().for_each(|item| scalars(item, all)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            all.push(key);
            scalars(value, all);
        }),
        _ => {}
    }
}

/// Makes every Secret, `ConfigMap`, Service and claim of a namespace unknown that is not in the state, of every namespace for
/// `None`: something among the inputs may make it.
pub fn add_anything(snapshot: &mut Snapshot, namespace: Option<&str>) {
    let families = snapshot.settings.families.clone();
    let of_core = |kind: &&'static Kind| kind.group.is_empty() && **kind != NAMESPACE;
    for kind in memgate_platforms::state_kinds(&families).filter(of_core) {
        match namespace {
            Some(namespace) => snapshot.kind_mut(kind).insert_lacking(namespace),
            None => snapshot.kind_mut(kind).lacks_some = true,
        }
    }
}
