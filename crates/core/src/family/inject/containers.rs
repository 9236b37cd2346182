//! What the containers that memgate adds have in common: they pass Pod Security "restricted", have
//! requests and limits, and are probed.

use serde_json::{Value, json};

/// The user of containers in pods that name none; root will not do.
const USER: u32 = 1000;

/// What Pod Security "restricted" asks of a container, and the user where the pod names none.
/// Source: Kubernetes documentation, Pod Security Standards.
#[must_use]
pub fn security_context(pod_has_user: bool) -> Value {
    let mut context = json!({
        "readOnlyRootFilesystem": true,
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    if let (Value::Object(fields), false) = (&mut context, pod_has_user) {
        fields.insert("runAsUser".to_owned(), USER.into());
    }
    context
}

/// Requests and limits, each CPU and memory.
#[must_use]
pub fn resources(requests: (&str, &str), limits: (&str, &str)) -> Value {
    let amounts = |(cpu, memory): (&str, &str)| json!({"cpu": cpu, "memory": memory});
    json!({"requests": amounts(requests), "limits": amounts(limits)})
}

/// The port of a server that answers `GET /health`, and its probes: started within a minute, then looked
/// at every ten and thirty seconds.
#[must_use]
pub fn health_checked_port(port: u16) -> [(&'static str, Value); 4] {
    let health = json!({"path": "/health", "port": port});
    [
        ("ports", json!([{"name": "http", "containerPort": port}])),
        ("startupProbe", json!({"httpGet": health, "periodSeconds": 2, "failureThreshold": 30})),
        ("readinessProbe", json!({"httpGet": health, "periodSeconds": 10})),
        ("livenessProbe", json!({"httpGet": health, "initialDelaySeconds": 5, "periodSeconds": 30})),
    ]
}
