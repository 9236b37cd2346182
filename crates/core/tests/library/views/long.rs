//! The views of objects with very long lists: all of it is there, and each element is looked at once.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use memgate_model::family::Family;
use memgate_model::memory_view::MemoryView;
use memgate_platforms::{ark, arkonis, orloj};
use serde_json::{Value, json};

use super::{snapshot, view};

/// As many as are read.
const MANY: usize = 10_000;

fn seen(family: &Family, object: &Value, state: &[Value]) -> MemoryView {
    let case = json!({ "state": state });
    view(family, object, "team", &snapshot(&case)).0.expect("a view")
}

fn object(api_version: &str, kind: &str, spec: &Value) -> Value {
    let metadata = json!({"name": "notes", "namespace": "team"});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
}

#[test]
fn many_headers() {
    let header = |number: usize| {
        let value = match number % 2 {
            0 => json!({"value": "x"}),
            _ => json!({"valueFrom": {"secretKeyRef": {"name": format!("s{number}"), "key": "k"}}}),
        };
        json!({"name": "Cookie", "value": value})
    };
    let headers: Vec<Value> = (0..MANY).map(header).collect();
    let memory = object("ark.mckinsey.com/v1alpha1", "Memory", &json!({"headers": headers}));
    let view = seen(&ark::FAMILY, &memory, &[]);
    assert_eq!((view.inline.len(), view.secrets.len()), (MANY / 2, MANY / 2));
    assert_eq!(view.inline[1].field.as_str(), "/spec/headers/2/value/value");
    let last = view.secrets.last().map(|secret| secret.field.as_str());
    assert_eq!(last, Some("/spec/headers/9999/value/valueFrom/secretKeyRef/name"));
}

#[test]
fn many_references() {
    let settings: Vec<Value> = (0..MANY).map(|number| json!({"name": format!("s{number}")})).collect();
    let spec = json!({"settings": settings, "runtime": {"loop": {"memory": {"ref": {"name": "notes"}}}}});
    let labels: Value = (0..MANY).map(|number| (format!("l{number}"), json!("x"))).collect();
    let mut memory = object("kubeswarm.io/v1alpha1", "SwarmMemory", &json!({"backend": "in-context"}));
    memory["metadata"]["labels"] = labels;
    let agent = object("kubeswarm.io/v1alpha1", "SwarmAgent", &spec);
    let view = seen(&arkonis::FAMILY, &agent, &[memory]);
    assert_eq!(view.references.len(), MANY + 1);
    assert_eq!(view.references[MANY].field.as_str(), "/spec/settings/9999/name");
    assert_eq!(view.sources[0].view.labels.len(), MANY);
}

#[test]
fn many_hosts_and_a_long_path() {
    let hosts: Vec<String> = (0..MANY).map(|number| format!("h{number}.data:80")).collect();
    let endpoint = format!("postgres://{}/{}", hosts.join(","), "token=x/".repeat(MANY));
    let spec =
        json!({"backend": "vector-store", "vectorStore": {"provider": "pgvector", "endpoint": endpoint}});
    let memory = object("kubeswarm.io/v1alpha1", "SwarmMemory", &spec);
    let view = seen(&arkonis::FAMILY, &memory, &[]);
    // So many are not compared.
    let endpoint = view.endpoint.expect("an endpoint");
    assert!(endpoint.is_ambiguous() && endpoint.hosts.len() == 1, "{:?}", endpoint.hosts);
}

#[test]
fn many_operations() {
    let allow: Vec<&str> = (0..MANY).map(|number| ["read", "memory.Read", "no"][number % 3]).collect();
    let agent = object("orloj.dev/v1", "Agent", &json!({"memory": {"ref": "notes", "allow": allow}}));
    let operations = seen(&orloj::FAMILY, &agent, &[]).operations.expect("operations");
    assert_eq!(operations.len(), 1);
}

/// Memories of many Kubernetes namespaces declare the same Orloj namespace.
#[test]
fn many_that_claim_one_name() {
    let claim = |number: usize| {
        let mut memory = object("orloj.dev/v1", "Memory", &json!({"provider": "http"}));
        memory["metadata"]["namespace"] = json!(format!("other-{number:05}"));
        memory["metadata"]["annotations"] = json!({"orloj.dev/target-namespace": "team"});
        memory
    };
    let claims: Vec<Value> = (0..MANY).map(claim).collect();
    let agent = object("orloj.dev/v1", "Agent", &json!({"memory": {"ref": "notes"}}));
    for (sources, found) in [(json!(["*"]), &["other-00000"][..]), (json!(["team"]), &[])] {
        let state = snapshot(&json!({"state": claims, "sourceNamespaces": sources}));
        let (view, _) = view(&orloj::FAMILY, &agent, "team", &state);
        let view = view.expect("a view");
        let namespaces: Vec<&str> =
            view.sources.iter().map(|source| source.view.namespace.as_str()).collect();
        assert_eq!(namespaces, found, "{sources}");
    }
}
