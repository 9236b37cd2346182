//! Objects that are kept as YAML: those of deploy/kustomize, read at compile time.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, from_value};

use crate::install_plan::InstallPlan;
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
