//! The common parts of the containers that memgate adds: they pass Pod Security "restricted", have requests
//! and limits, and have probes.

use serde_json::{Value, json};

/// The user of added containers in pods that do not set one, since root is not allowed.
const DEFAULT_USER_ID: u32 = 1000;

/// The security context that Pod Security "restricted" requires, with a user unless the pod sets one.
/// Source: Kubernetes documentation, Pod Security Standards.
pub(crate) fn security_context(pod_has_user: bool) -> Value {
    let mut context = json!({
        "readOnlyRootFilesystem": true,
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    if let (Value::Object(fields), false) = (&mut context, pod_has_user) {
        fields.insert("runAsUser".to_owned(), DEFAULT_USER_ID.into());
    }
    context
}

/// Requests and limits, each as CPU and memory.
pub(crate) fn resources(requests: (&str, &str), limits: (&str, &str)) -> Value {
    let quantities = |(cpu, memory): (&str, &str)| json!({"cpu": cpu, "memory": memory});
    json!({"requests": quantities(requests), "limits": quantities(limits)})
}

/// The port of a server that answers `GET /health`, and its probes: a minute to start, then readiness
/// every ten seconds and liveness every thirty.
pub(crate) fn health_checked_port(port: u16) -> [(&'static str, Value); 4] {
    let health = json!({"path": "/health", "port": port});
    [
        ("ports", json!([{"name": "http", "containerPort": port}])),
        ("startupProbe", json!({"httpGet": health, "periodSeconds": 2, "failureThreshold": 30})),
        ("readinessProbe", json!({"httpGet": health, "periodSeconds": 10})),
        ("livenessProbe", json!({"httpGet": health, "initialDelaySeconds": 5, "periodSeconds": 30})),
    ]
}
