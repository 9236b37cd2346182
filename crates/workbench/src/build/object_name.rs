//! How reports name an object, and whether objects of its kind are in a namespace.

use std::sync::Arc;

use serde_json::Value;

use crate::report::ObjectRef;
use memgate_manifest::document::Document;
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::recurring_texts::RecurringTexts;
use memgate_model::workload::{self, Workload};

/// The name of an object in reports. `chosen` is the namespace of objects without one. What recurs is shared.
pub(crate) fn object_ref(document: &Document, chosen: Option<&str>, texts: &mut RecurringTexts) -> ObjectRef {
    let generate_name = || document.value().pointer("/metadata/generateName").and_then(Value::as_str);
    let name = match document.name() {
        "" => generate_name().unwrap_or_default(),
        name => name,
    };
    let (group, kind) = (document.group(), document.kind());
    let namespace = if is_cluster_scoped(group, kind) {
        ""
    } else {
        document.namespace().or(chosen).unwrap_or(DEFAULT_NAMESPACE)
    };
    ObjectRef {
        api_version: texts.shared(document.api_version()),
        kind: texts.shared(document.kind()),
        namespace: texts.shared(namespace),
        name: name.into(),
        unit: Arc::default(),
    }
}

/// Whether objects of a kind that is judged are in no namespace.
fn is_cluster_scoped(group: &str, kind: &str) -> bool {
    let known = memgate_platforms::validated(&memgate_platforms::ALL, group, kind).map(|(_, kind)| kind);
    let known = known.or_else(|| memgate_policy::resource::kind(group, kind));
    known.is_some_and(|kind| !kind.namespaced) || workload::find(group, kind).is_some_and(is_of_cluster)
}

/// Whether objects of a kind are in no namespace, so that kustomize does not give them one.
pub(crate) fn is_of_no_namespace(group: &str, kind: &str) -> bool {
    const OTHERS: [&str; 4] = ["Namespace", "PersistentVolume", "CustomResourceDefinition", "StorageClass"];
    is_cluster_scoped(group, kind) || OTHERS.contains(&kind) || kind.starts_with("Cluster")
}

/// Whether the objects of a workload are in no namespace, so that its pods may be in any.
pub(crate) fn is_of_cluster(workload: &Workload) -> bool {
    workload.kind.starts_with("Cluster")
}
