//! What installed objects have in common: names, labels and metadata, and how those of the folder `objects` are read, which
//! are kept as YAML at compile time.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value};

use crate::install_plan::InstallPlan;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;

/// The name of every installed object, unless two objects or two installations would clash.
pub const NAME: &str = "memgate";
/// The default namespace of an installation.
pub const DEFAULT_NAMESPACE: &str = "memgate-system";
/// The maximum length of an installation's name: with every suffix it stays within the 253 characters of an object's name.
pub const MAX_NAME_CHARS: usize = 200;

/// The two kinds of webhook configuration, as resources.
pub(super) const CONFIGURATIONS: [&str; 2] =
    ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
/// The end of the name of the policy on memgate's own account, and of its binding.
pub const SELF_GUARD: &str = "self-guard";
/// The Lease by which one replica at a time audits what is stored, in memgate's own namespace.
pub const AUDIT_LEASE: &str = "memgate-audit";

/// The default name of the cluster-wide objects of an installation. It contains the namespace, so that no two namespaces
/// share one.
pub fn default_name(namespace: &str) -> String {
    if namespace == DEFAULT_NAMESPACE { NAME.to_owned() } else { format!("{NAME}-{namespace}") }
}

/// Metadata of an object in memgate's namespace.
pub(super) fn metadata(plan: &InstallPlan) -> ObjectMeta {
    ObjectMeta {
        name: Some(NAME.to_owned()),
        namespace: Some(plan.namespace.clone()),
        labels: Some(labels()),
        ..ObjectMeta::default()
    }
}

/// Metadata of a cluster-wide object of which an installation has several: its name ends in `suffix`.
pub(super) fn suffixed_metadata(name: &str, suffix: &str) -> ObjectMeta {
    named(format!("{name}-{suffix}"))
}

/// Metadata of a cluster-wide object.
pub(super) fn named(name: String) -> ObjectMeta {
    ObjectMeta { name: Some(name), labels: Some(labels()), ..ObjectMeta::default() }
}

/// The labels of all installed objects; they also select memgate's pods.
pub(super) fn labels() -> BTreeMap<String, String> {
    string_map(&[("app.kubernetes.io/name", NAME)])
}

/// Entries of a map of the API.
pub(super) fn string_map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// The documents of a YAML text.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Value> + use<> {
    let source = Arc::new(Source::new("a template", text));
    values(&source, &mut Vec::new()).into_iter().map(|document| document.value().clone())
}

/// The first object of a YAML text; a default object when it cannot be read, which a test excludes.
pub(super) fn object<T: DeserializeOwned + Default>(text: &str) -> T {
    documents(text).next().and_then(|value| from_value(value).ok()).unwrap_or_default()
}

/// Whether an object is of one of these kinds, and has this name.
pub(super) fn is_named(object: &Value, kinds: &[&str], name: &str) -> bool {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    kinds.contains(&text("/kind")) && text("/metadata/name") == name
}

/// The objects of a YAML text, in the namespace of a plan, and for the account there.
pub(super) fn in_namespace(plan: &InstallPlan, text: &str) -> impl Iterator<Item = Value> + use<> {
    let namespace = Value::from(plan.namespace.clone());
    documents(text).map(move |mut object| {
        for pointer in ["/metadata/namespace", "/subjects/0/namespace"] {
            if let Some(known) = object.pointer_mut(pointer) {
                known.clone_from(&namespace);
            }
        }
        object
    })
}

/// The cluster-scoped objects of a YAML text, called `memgate-…` there: the name begins with that of the installation.
pub(super) fn of_installation(plan: &InstallPlan, text: &str) -> impl Iterator<Item = Value> + use<> {
    let name = plan.name.clone();
    documents(text).map(move |mut object| {
        for pointer in ["/metadata/name", "/roleRef/name"] {
            if let Some(Value::String(known)) = object.pointer_mut(pointer) {
                known.replace_range(..NAME.len(), &name);
            }
        }
        object
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_namespaces_share_a_name() {
        assert_eq!(default_name("memgate-system"), "memgate");
        assert_eq!(default_name("team-a"), "memgate-team-a");
        assert_eq!(default_name("memgate-team-a"), "memgate-memgate-team-a");
        assert_eq!(default_name("memgate"), "memgate-memgate");
    }

    #[test]
    fn the_longest_name_leaves_room_for_every_end() {
        let longest = "a".repeat(MAX_NAME_CHARS);
        let metadata = suffixed_metadata(&longest, SELF_GUARD);
        assert!(metadata.name.is_some_and(|name| name.len() <= 253));
    }
}
