//! What scenarios are played with: an ArkMemory, an ArkAgent that claims it, and its pod.

use serde_json::{Value, json};

/// A redis memory that is as it should be.
pub(crate) fn memory(name: &str) -> Value {
    memory_of(name, &json!({"backend": "redis", "redis": {"secretRef": {"name": "notes-redis"}}}))
}

/// A memory with this spec.
pub(crate) fn memory_of(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// An agent that claims a memory.
pub(crate) fn agent(name: &str, memory: &str) -> Value {
    json!({
        "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkAgent",
        "metadata": {"name": name},
        "spec": {
            "model": "llama3.2", "systemPrompt": "You scout for facts.", "memoryRef": {"name": memory},
        },
    })
}

/// A pod of an agent, with a variable that it came with, and further labels.
pub(crate) fn pod(name: &str, agent: &str, labels: &[(&str, &str)]) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"arkonis.dev/deployment": agent}},
        "spec": pod_spec(),
    });
    for (key, value) in labels {
        pod["metadata"]["labels"][key] = json!(value);
    }
    pod
}

/// A pod of the agent `scout` that a ReplicaSet controls.
pub(crate) fn owned_pod(name: &str) -> Value {
    let mut owned = pod(name, "scout", &[]);
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "scout-7d9f4b6c5", "uid": "scout",
        "controller": true,
    }]);
    owned
}

/// What the pods of an agent are made of.
pub(crate) fn pod_spec() -> Value {
    json!({
        "containers": [
            {"name": "agent", "image": "agent", "env": [{"name": "AGENT_MODEL", "value": "llama3.2"}]},
        ],
    })
}

/// A Deployment whose pods have the label of the agent `scout`.
pub(crate) fn deployment(replicas: u32) -> Value {
    let labels = json!({"app.kubernetes.io/name": "agent", "arkonis.dev/deployment": "scout"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "scout-agent"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
        },
    })
}

/// The variables that a pod gets from [`memory`], in order.
pub(crate) const INJECTED: [&str; 3] =
    ["AGENT_MEMORY_BACKEND", "AGENT_MEMORY_REDIS_URL", "AGENT_MEMORY_REDIS_TTL"];

/// The same, with the variable that [`pod`] came with.
pub(crate) const COMPLETE: [&str; 4] =
    ["AGENT_MEMORY_BACKEND", "AGENT_MEMORY_REDIS_URL", "AGENT_MEMORY_REDIS_TTL", "AGENT_MODEL"];

/// The names of the variables of a pod's container `agent`, in order.
pub(crate) fn env_names(pod: &Value) -> Vec<&str> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let agent = containers.into_iter().find(|container| container["name"] == "agent");
    let env = agent.and_then(|container| container["env"].as_array()).into_iter().flatten();
    env.filter_map(|entry| entry["name"].as_str()).collect()
}
