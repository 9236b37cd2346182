//! What an apiserver asks about an object that is created.

use serde_json::{Value, json};

/// The review of the object, in this namespace.
pub(crate) fn review(namespace: &str, object: &Value) -> Value {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": group, "version": version, "kind": object["kind"].as_str().unwrap_or_default()},
            "operation": "CREATE",
            "namespace": namespace,
            "name": object["metadata"]["name"].as_str().unwrap_or_default(),
            "object": object,
        },
    })
}
