//! Classifies the objects in files.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::report::ObjectRef;
use memgate_manifest::document::Document;
use memgate_model::memory_view::Role;
use memgate_model::recurring_texts::RecurringTexts;
use memgate_model::snapshot::Snapshot;
use memgate_model::workload;

/// Whether objects of this group and kind are checked: pods, workloads by the pods of their templates, memory resources,
/// what refers to them, and policies.
pub fn is_checked(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Pod"
        || memgate_platforms::validated(&memgate_platforms::ALL, group, kind).is_some()
        || memgate_policy::resource::kind(group, kind).is_some()
        || workload::find(group, kind).is_some()
}

/// Whether an object has the annotation that its kind needs to be checked; true for kinds that do not need
/// one.
pub fn has_required_annotation(group: &str, kind: &str, object: &Value) -> bool {
    let annotations = || object.pointer("/metadata/annotations").and_then(Value::as_object);
    memgate_platforms::needed_annotation(&memgate_platforms::ALL, group, kind).is_none_or(|prefix| {
        annotations().is_some_and(|annotations| annotations.keys().any(|key| key.starts_with(prefix)))
    })
}

/// The name of an object in reports. `namespace` is that of objects without one. What recurs is shared.
pub fn object_ref(document: &Document, namespace: &str, texts: &mut RecurringTexts) -> ObjectRef {
    let generate_name = || document.value().pointer("/metadata/generateName").and_then(Value::as_str);
    let name = match document.name() {
        "" => generate_name().unwrap_or_default(),
        name => name,
    };
    let (group, kind) = (document.group(), document.kind());
    let known = memgate_platforms::validated(&memgate_platforms::ALL, group, kind).map(|(_, kind)| kind);
    let known = known.or_else(|| memgate_policy::resource::kind(group, kind));
    let cluster_scoped = known.is_some_and(|kind| !kind.namespaced);
    let namespace = if cluster_scoped { "" } else { document.namespace().unwrap_or(namespace) };
    ObjectRef {
        api_version: texts.shared(document.api_version()),
        kind: texts.shared(document.kind()),
        namespace: texts.shared(namespace),
        name: name.into(),
        set: Arc::default(),
    }
}

/// The kinds that are checked, in a sentence of three lines.
pub fn checked_kinds() -> String {
    let all = || memgate_platforms::ALL.into_iter();
    let viewed = all().flat_map(|family| family.views.kinds).filter(|(_, role)| *role == Role::Memory);
    let memories: BTreeSet<&str> = viewed.map(|(kind, _)| kind.kind).collect();
    let validated: BTreeSet<&str> =
        all().flat_map(|family| family.kinds.validated).map(|kind| kind.kind).collect();
    let referrers: Vec<&str> = validated.difference(&memories).copied().collect();
    let memories: Vec<&str> = memories.into_iter().collect();
    let workloads = workload::ALL.map(|workload| workload.kind);
    format!(
        "memory resources ({}),\n    what refers to them ({}),\n    pods, and workloads ({})",
        memories.join(", "),
        referrers.join(", "),
        workloads.join(", ")
    )
}

/// The state in which kinds of which the inputs hold no object are unknown.
pub fn open_state(snapshot: &Snapshot) -> Snapshot {
    snapshot.without_empty(|kind| kind.namespaced && is_checked(kind.group, kind.kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_pods_memory_resources_and_workloads() {
        for (group, kind, expected) in [
            ("", "Pod", true),
            ("arkonis.dev", "ArkMemory", true),
            ("apps", "Deployment", true),
            ("batch", "CronJob", true),
            ("", "Deployment", false),
            ("", "ConfigMap", false),
        ] {
            assert_eq!(is_checked(group, kind), expected, "{group} {kind}");
        }
    }
}
