//! What an apiserver asks about an object that is created.

use serde_json::{Value, json};

/// The review of the object, in this namespace.
pub(crate) fn review(namespace: &str, object: &Value) -> Value {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("/apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": group, "version": version, "kind": text("/kind")},
            "operation": "CREATE",
            "namespace": namespace,
            "name": text("/metadata/name"),
            "object": object,
        },
    })
}
