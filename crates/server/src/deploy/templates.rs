//! Objects that are kept as YAML: those of deploy/kustomize, read at compile time.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, to_value};

use crate::deploy::install_plan::InstallPlan;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;

/// The documents of a YAML text.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Value> + use<> {
    let source = Arc::new(Source::new("a template", text));
    values(&source, &mut Vec::new()).into_iter().map(|document| document.value().clone())
}

/// The first object of a YAML text; a default object when it cannot be read, which a test excludes.
pub(super) fn object<T: DeserializeOwned + Default>(text: &str) -> T {
    documents(text).next().and_then(|value| from_value(value).ok()).unwrap_or_default()
}

/// The objects of a YAML text, in the namespace of a plan.
pub(super) fn in_namespace(plan: &InstallPlan, text: &str) -> impl Iterator<Item = Value> + use<> {
    let namespace = plan.namespace.clone();
    documents(text).map(move |mut object| {
        if let Some(metadata) = object.get_mut("metadata") {
            let read = from_value::<ObjectMeta>(metadata.take()).unwrap_or_default();
            let read = ObjectMeta { namespace: Some(namespace.clone()), ..read };
            *metadata = to_value(read).unwrap_or_default();
        }
        object
    })
}
