//! Policies that judge everything: each with a rule of every type, the longest lists, and patterns that what inputs are
//! made of nearly fits. Half of them deny; pods are only warned about, since a refused one gets no patch.

use serde_json::{Map, Value, json};

use crate::words::KEYS;

/// How many there are.
const COUNT: usize = 20;

/// The most entries of a list.
const ENTRIES: usize = 256;

/// The policies.
pub(crate) fn policies() -> Vec<Value> {
    (0..COUNT).map(policy).collect()
}

fn policy(number: usize) -> Value {
    let action = if number.is_multiple_of(2) { "deny" } else { "warn" };
    let rules: Vec<Value> = of_memory(number).chain(of_pods(number)).collect();
    json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy",
        "metadata": {"name": format!("p{number}")},
        "spec": {"actions": {"admission": action, "ci": action}, "rules": rules},
    })
}

/// The rules about memory and what refers to it.
fn of_memory(number: usize) -> impl Iterator<Item = Value> {
    let typed = typed(number).into_iter().filter(|(name, _)| !matches!(*name, "limits" | "environment"));
    typed.map(|(name, rule)| {
        let roles = match name {
            "operations" => json!(["referrer"]),
            "images" => json!(["memory"]),
            _ => json!(["memory", "referrer"]),
        };
        json!({"id": name, "roles": roles, "onUnknown": "deny", (name): rule})
    })
}

/// The rules about pods.
fn of_pods(number: usize) -> impl Iterator<Item = Value> {
    let action = json!({"admission": "warn", "ci": "warn"});
    let typed = typed(number).into_iter().filter(|(name, _)| *name != "operations");
    typed.map(move |(name, rule)| {
        json!({"id": format!("pod-{name}"), "roles": ["pod"], "action": action, "onUnknown": "warn", (name): rule})
    })
}

/// A rule of each type. Lists of different policies differ.
fn typed(number: usize) -> [(&'static str, Value); 15] {
    let many = |word: &dyn Fn(usize) -> String| -> Vec<String> {
        (number * 1000..number * 1000 + ENTRIES).map(word).collect()
    };
    let words = many(&|entry| format!("none-such-{entry}"));
    let globs = many(&|entry| match entry % 8 {
        0 => format!("*x*x*{entry}"),
        1 => format!("n?*a*-{entry}"),
        2 => format!("*-{entry}"),
        _ => format!("team-{entry}-*"),
    });
    let hosts = many(&|entry| match entry % 4 {
        0 => format!("*.*a*a.n{entry}"),
        1 => format!("**.n{entry}.svc"),
        _ => format!("n{entry}-*.team-{entry}.svc.cluster.local"),
    });
    let images = many(&|entry| match entry % 4 {
        0 => format!("**/x*/n{entry}"),
        _ => format!("registry-{entry}.example.com/**"),
    });
    let ports: Vec<usize> = (number * 1000 + 10_000..).take(ENTRIES).collect();
    let keys: Vec<String> = (0..ENTRIES).map(|entry| KEYS[0].word(entry)).collect();
    let values: Map<String, Value> =
        keys.iter().take(4).map(|key| (key.clone(), json!(&globs[..64]))).collect();
    let tenant = format!("{{tenant}}-*x*a*{number}");
    let [backends, providers, operations] = [(); 3].map(|()| json!({"allow": words, "deny": words}));
    [
        ("backends", backends),
        ("providers", providers),
        (
            "endpoint",
            json!({
                "schemes": words, "hosts": hosts, "ports": ports, "loopback": "forbid", "private": "forbid",
                "inCluster": "forbid", "fromSecret": true,
            }),
        ),
        (
            "secrets",
            json!({
                "inline": "forbid", "required": true, "names": globs, "namespaces": "same", "alsoNamespaces": words,
            }),
        ),
        ("retention", json!({"min": "500000h", "max": "1s", "zero": "forbid"})),
        ("capacity", json!({"maxEntries": {"min": 9, "max": 1, "zero": "forbid"}, "storage": {"max": "1"}})),
        (
            "tenancy",
            json!({
                "from": {"namespace": true}, "collection": tenant, "secrets": tenant, "endpointHosts": tenant,
            }),
        ),
        (
            "references",
            json!({
                "mustExist": ["ArkMemory", "Memory", "Agent", "Service"], "crossNamespace": "forbid",
            }),
        ),
        ("images", json!({"allow": images, "deny": images, "digest": "require", "tags": {"deny": words}})),
        ("limits", json!({"required": ["cpu", "memory"], "max": {"cpu": "1u", "memory": "1"}})),
        ("operations", operations),
        ("environment", json!({"overrides": "forbid"})),
        ("sharing", json!({"visibility": words, "maxWriters": 0})),
        ("immutable", json!(["backend", "collection", "endpoint", "endpoint.url", "secrets", "labels"])),
        ("labels", json!({"required": keys, "values": values})),
    ]
}
