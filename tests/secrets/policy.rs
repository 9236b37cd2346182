//! A policy that nearly every object violates, to see the quotes of its rules.

use serde_json::{Value, json};

/// The policy: each typed rule, for all that it can judge.
pub(crate) fn policy() -> Value {
    let all = json!(["memory", "referrer", "pod"]);
    let of_all = |id: &str, rule: Value| json!({"id": id, "roles": all, "onUnknown": "deny", (id): rule});
    let rules = json!([
        of_all("backends", json!({"allow": ["none-such"], "durable": true})),
        of_all("providers", json!({"allow": ["none-such"]})),
        of_all("endpoint", json!({
            "schemes": ["none-such"], "hosts": ["**.none.such"], "ports": [1], "loopback": "forbid",
            "private": "forbid", "inCluster": "require", "fromSecret": true,
        })),
        of_all("secrets", json!({"inline": "forbid", "required": true, "names": ["none"], "namespaces": "same"})),
        of_all("retention", json!({"min": "500000h", "zero": "forbid"})),
        of_all("capacity", json!({"maxEntries": {"min": 2_000_000_000, "zero": "forbid"}, "storage": {"max": "1"}})),
        of_all("tenancy", json!({
            "from": {"namespace": true}, "collection": "none-{tenant}", "secrets": "none-{tenant}",
            "endpointHosts": "none-{tenant}",
        })),
        of_all("references", json!({"mustExist": ["ArkMemory", "Memory", "Agent"], "crossNamespace": "forbid"})),
        of_all("images", json!({"allow": ["none.such/**"], "digest": "require", "tags": {"deny": ["latest"]}})),
        {"id": "limits", "limits": {"required": ["cpu", "memory"], "max": {"cpu": "1u", "memory": "1"}}},
        {"id": "operations", "operations": {"allow": ["none-such"]}},
        of_all("sharing", json!({"visibility": ["none-such"], "maxWriters": 0})),
        of_all("immutable", json!(["endpoint.url", "endpoint.host", "endpoint.path", "collection", "inline", "secrets"])),
        of_all("labels", json!({"required": ["none-such"]})),
        of_all("fields", json!([
            {"path": "endpoint.url", "notMatches": ["*"]}, {"path": "endpoint.path", "in": ["none-such"]},
            {"path": "endpoint.host", "matches": ["**.none.such"]}, {"path": "collection", "equals": "none-such"},
            {"path": "endpoint", "exists": false},
        ])),
        {"id": "places", "onUnknown": "deny", "fields": [
            {"path": "secrets[].name", "matches": ["none"]}, {"path": "secrets[].key", "in": ["none"]},
            {"path": "secrets[].field", "notMatches": ["*"]}, {"path": "secrets", "exists": false},
            {"path": "inline[].field", "notMatches": ["*"]}, {"path": "inline", "exists": false},
            {"path": "annotations", "exists": false},
        ]},
        {"id": "environment", "onUnknown": "deny", "environment": {"overrides": "forbid"}},
        {"id": "several", "roles": all, "onUnknown": "deny", "anyOf": [
            {"fields": [{"path": "endpoint.url", "equals": "none-such"}]}, {"labels": {"required": ["none-such"]}},
        ]},
    ]);
    json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy", "metadata": {"name": "strict"},
        "spec": {"actions": {"admission": "deny"}, "existing": "enforce", "rules": rules},
    })
}
