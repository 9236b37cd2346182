//! What one tenant can do to another, or to the program itself: addresses to be called, marks that
//! are forged, secrets, and what an answer gives away.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::TcpListener;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use memgate_core::admission;
use memgate_core::decide::decide;
use memgate_primitives::review_path::Phase;
use memgate_workbench::files::casefile::{Case, request};
use serde_json::{Value, json};

use crate::reviews;
use crate::running::{Setup, Victim, scene};
use crate::support::cases::cases;

fn review(group: &str, version: &str, kind: &str, object: &Value) -> Value {
    let kind = json!({"group": group, "version": version, "kind": kind});
    reviews::review(&[("kind", kind), ("name", Value::Null), ("object", object.clone())])
}

/// Spellings of addresses that lead back into the cluster or the machine. `PORT` is one where
/// the test listens.
const ADDRESSES: [&str; 16] = [
    "http://127.0.0.1:PORT",
    "http://localhost:PORT",
    "http://localhost.:PORT",
    "http://127.0.0.1.:PORT",
    "http://127.1:PORT",
    "http://2130706433:PORT",
    "http://0177.0.0.1:PORT",
    "http://0x7f000001:PORT",
    "http://[::1]:PORT",
    "http://[::ffff:127.0.0.1]:PORT",
    "http://0.0.0.0:PORT",
    "http://user:pass@127.0.0.1:PORT",
    "http://169.254.169.254/latest/meta-data",
    "http://[::ffff:169.254.169.254]/latest",
    "http://[fe80::1]:PORT",
    "http://127.0.0.1:PORT/../../etc",
];

/// S11 of stress/ATTACKS.md.
#[tokio::test]
async fn addresses_are_validated_and_never_called() {
    let trap = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    trap.set_nonblocking(true).unwrap();
    let port = trap.local_addr().unwrap().port().to_string();
    let victim = Victim::start(&[]).await;
    let (mut denied, mut warned) = (Vec::new(), Vec::new());
    for spelling in ADDRESSES {
        let address = spelling.replace("PORT", &port);
        let memories = [
            ("ark.mckinsey.com", "v1alpha1", "Memory", json!({"address": {"value": address}})),
            ("orloj.dev", "v1", "Memory", json!({"type": "vector", "provider": "http", "endpoint": address})),
            (
                "arkonis.dev",
                "v1alpha1",
                "ArkMemory",
                json!({"backend": "vector-store", "vectorStore": {"provider": "qdrant", "endpoint": address}}),
            ),
            (
                "core.orka.ai",
                "v1alpha1",
                "MemoryBackend",
                json!({
                    "protocol": {"omsVersion": "0.1", "profile": "orka.oms.v0alpha1"},
                    "deployment": {"mode": "external-endpoint", "endpoint": address.replace("http:", "https:")},
                    "clientAuth": {"bearerTokenSecretRef": {"name": "a", "key": "b"}},
                    "store": {"name": "blue"},
                }),
            ),
        ];
        for (group, version, kind, spec) in memories {
            let object = json!({"metadata": {"name": "m", "namespace": "team"}, "spec": spec});
            let response = victim.review("/validate", &review(group, version, kind, &object)).await.review();
            let codes = response["auditAnnotations"]["codes"].as_str().unwrap_or_default().to_owned();
            let reported = |code: &str| codes.split(',').any(|reported| reported == code);
            if reported("orloj/http-endpoint-blocked") {
                assert_eq!(response["allowed"], false, "{address}");
                denied.push(spelling);
            }
            if group == "ark.mckinsey.com" {
                assert!(reported("ark/memory-address-local"), "{address}: {response}");
            }
            if reported("orka/backend-endpoint-private") {
                warned.push(spelling);
            }
            if address.contains('@') && group != "core.orka.ai" {
                let credentials = [
                    "ark/memory-address-credentials",
                    "orloj/inline-credential",
                    "arkonis/endpoint-credentials",
                ];
                assert!(credentials.iter().any(|code| reported(code)), "{kind} {address}: {response}");
                assert!(!response.to_string().contains("user:pass"), "{kind}: {response}");
            }
        }
    }
    // Only what the platform's own dialler reads as an address: the rest is a name to it.
    let literal = |spelling: &&str| {
        !["localhost.", "127.0.0.1.", "127.1", "2130", "0177", "0x7f"]
            .iter()
            .any(|name| spelling.contains(name))
    };
    assert_eq!(denied, ADDRESSES.into_iter().filter(literal).collect::<Vec<_>>());
    let by_name =
        |spelling: &&str| !["127.1", "2130", "0177", "0x7f"].iter().any(|name| spelling.contains(name));
    assert_eq!(warned, ADDRESSES.into_iter().filter(by_name).collect::<Vec<_>>());
    assert_eq!(trap.accept().err().map(|error| error.kind()), Some(ErrorKind::WouldBlock), "it was called");
    victim.is_well().await;
}

/// S11 of stress/ATTACKS.md.
#[tokio::test]
async fn a_name_is_never_a_path() {
    let mut state = scene();
    let names = ["../../secrets/root", "team-b/notes", "notes%2f..", "..", "/", "notes?watch=1", "notes#x"];
    for (number, name) in names.iter().enumerate() {
        state["items"].as_array_mut().unwrap().push(json!({
            "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkAgent",
            "metadata": {"name": format!("agent-{number}"), "namespace": "team"},
            "spec": {"memoryRef": {"name": name}},
        }));
    }
    let victim = Victim::start_with(Setup { state, ..Setup::default() }).await;
    for (number, name) in names.iter().enumerate() {
        let labels = json!({"arkonis.dev/deployment": format!("agent-{number}")});
        let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "agent"}]}});
        let response = victim.review("/mutate", &review("", "v1", "Pod", &pod)).await.review();
        assert_eq!(response["allowed"], true, "{name}");
        assert!(response.get("patch").is_none(), "{name}: {response}");
        assert!(response["warnings"][0].is_string(), "{name}: {response}");
    }
    victim.is_well().await;
}

/// S12 of stress/ATTACKS.md.
#[tokio::test]
async fn forged_marks_gain_nothing() {
    let victim = Victim::start(&[]).await;
    let pod = |annotations: Value| {
        json!({
            "metadata": {"labels": {"arkonis.dev/deployment": "scout"}, "annotations": annotations},
            "spec": {"containers": [{"name": "agent"}]},
        })
    };
    let env_added = |response: &Value| {
        let patch = BASE64_STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
        String::from_utf8(patch).unwrap().contains("AGENT_MEMORY_BACKEND")
    };
    for forged in [
        "{}",
        "true",
        r#"{"version":"99","family":"arkonis","memory":"notes","env":["AGENT_MEMORY_BACKEND"]}"#,
        "\u{0}",
        &"x".repeat(200_000),
    ] {
        let object = pod(json!({"memgate.dev/injected": forged}));
        let response = victim.review("/mutate", &review("", "v1", "Pod", &object)).await.review();
        assert!(env_added(&response), "{response}");
    }
    // No label of a memory switches its validation off, and none that another controller sets.
    let bad = json!({"backend": "none"});
    for labels in [
        json!({}),
        json!({"memgate.dev/inject": "disabled"}),
        json!({"memgate.dev/inject": "required", "memgate.dev/validate": "false", "admission.gatekeeper.sh/ignore": "yes"}),
        json!({"arkonis.dev/deployment": "scout"}),
    ] {
        let object = json!({"metadata": {"name": "m", "namespace": "team", "labels": labels, "annotations": labels}, "spec": bad});
        let mut sent = review("arkonis.dev", "v1alpha1", "ArkMemory", &object);
        assert_eq!(victim.review("/validate", &sent).await.review()["allowed"], false, "{labels}");
        // A label that an update takes away does not make the rest of it unchanged.
        let mut old = object.clone();
        old["metadata"]["labels"] = json!({"memgate.dev/inject": "disabled"});
        old["spec"] = json!({"backend": "in-context"});
        sent["request"]["operation"] = json!("UPDATE");
        sent["request"]["oldObject"] = old;
        assert_eq!(victim.review("/validate", &sent).await.review()["allowed"], false, "{labels}");
    }
    // Opting out is the label's business, and the label's alone.
    let mut out = pod(json!({"memgate.dev/inject": "disabled"}));
    assert!(env_added(&victim.review("/mutate", &review("", "v1", "Pod", &out)).await.review()));
    out["metadata"]["labels"]["memgate.dev/inject"] = json!("disabled");
    assert!(victim.review("/mutate", &review("", "v1", "Pod", &out)).await.review().get("patch").is_none());
    victim.is_well().await;
}

/// Both answers to a case, with the patch in clear text behind them.
fn answers(case: &Case) -> String {
    let review = request::review(case).to_string();
    let review = admission::parse(&review).unwrap();
    let snapshot = request::state(case).unwrap();
    let decision = decide(&review.request, &snapshot);
    let mut answered = String::new();
    for phase in [Phase::Mutate, Phase::Validate] {
        let response: Value =
            serde_json::from_slice(&admission::respond(phase, &review, &decision).unwrap()).unwrap();
        answered += &response.to_string();
        if let Some(patch) = response["response"]["patch"].as_str() {
            answered += std::str::from_utf8(&BASE64_STANDARD.decode(patch).unwrap()).unwrap();
        }
    }
    answered
}

const MARK: &str = "x-marks-the-spot";

/// Writes the mark over every text in a value.
fn mark(value: &mut Value, mark: &str) {
    match value {
        Value::String(text) => mark.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| self::mark(item, mark)),
        Value::Object(map) => map.values_mut().for_each(|value| self::mark(value, mark)),
        _ => {}
    }
}

/// Where a Secret's values would have to pass through: the state, and from there the answers.
/// S13 of stress/ATTACKS.md.
#[test]
fn no_value_of_a_secret_gets_into_the_state_or_out_of_it() {
    let encoded = BASE64_STANDARD.encode(MARK);
    let mut secrets = 0;
    for (file, mut case) in cases().unwrap() {
        for object in case.state.iter_mut().filter(|object| object["kind"] == "Secret") {
            mark(&mut object["data"], &encoded);
            mark(&mut object["stringData"], MARK);
            secrets += 1;
        }
        let state = format!("{:?}", request::state(&case).unwrap());
        let answered = answers(&case);
        for text in [MARK, encoded.as_str()] {
            assert!(!state.contains(text), "{file}: {}: the state holds a value", case.name);
            assert!(!answered.contains(text), "{file}: {}: {answered}", case.name);
        }
    }
    assert!(secrets > 10, "{secrets} Secrets are too few to say anything");
}

/// Cases of ark, whose memories are reached at the address that their status holds.
const OF_STATUS: [&str; 3] = [
    "prefers-the-resolved-address-to-a-number",
    "rejects-a-pod-by-a-stale-address-of-ark",
    "takes-the-resolved-address-without-the-service",
];

/// S14 of stress/ATTACKS.md.
#[test]
fn answers_hold_nothing_of_the_status_of_others() {
    let mut named = BTreeSet::new();
    let mut marked = 0;
    for (_, mut case) in cases().unwrap() {
        for object in case.state.iter_mut().filter(|object| object.get("status").is_some()) {
            mark(&mut object["status"], MARK);
            marked += 1;
        }
        if answers(&case).contains(MARK) {
            named.insert(case.name);
        }
    }
    assert!(marked > 10, "{marked} objects with a status are too few to say anything");
    assert_eq!(named.iter().map(String::as_str).collect::<Vec<_>>(), OF_STATUS);
}

/// Cases whose answer depends on a name in another namespace, because their platform reads there.
const ACROSS: [&str; 26] = [
    // ark: whether any namespace has the default Memory, in files.
    "accepts-a-default-memory-that-some-namespace-has",
    // ark: a Query and an annotation may name a namespace, and so may what a Memory's address comes from.
    "accepts-headers-to-a-known-service-of-another-namespace",
    "finds-a-service-of-another-namespace",
    "injects-a-fragment-of-another-namespace",
    "injects-a-service-of-the-namespace-of-the-memory",
    "injects-the-address-of-a-memory-of-another-namespace",
    "leaves-a-config-map-of-another-namespace",
    "leaves-a-path-with-a-query-of-another-namespace",
    "leaves-a-query-of-another-namespace",
    "leaves-a-query-without-path-of-another-namespace",
    "leaves-a-resolved-address-with-credentials-elsewhere",
    "leaves-a-resolved-query-of-another-namespace",
    "leaves-a-secret-of-another-namespace",
    "leaves-credentials-of-another-namespace",
    "leaves-headers-out-of-another-namespace-with-one-warning-for-each",
    "leaves-resolved-credentials-of-another-namespace",
    "never-takes-the-resolved-address-of-a-secret",
    // orka: a Task may name an agent of another namespace.
    "rejects-memory-against-an-agent-elsewhere",
    "takes-an-agent-of-the-namespace-that-the-task-names",
    "takes-the-namespace-that-the-worker-says",
    // ark again.
    "takes-the-resolved-address-of-a-config-map-elsewhere",
    "warns-of-a-memory-of-another-namespace",
    "warns-of-a-service-of-another-namespace",
    // orka again.
    "warns-of-an-agent-in-another-namespace",
    // ark: who uses a Memory that is deleted, wherever it is.
    "warns-of-queries-in-sort-order",
    // ark: the same as of queries.
    "warns-of-the-end-of-a-memory-that-another-namespace-uses",
];

/// A name in another namespace must not change the answer: or a tenant could ask who is there. The
/// objects of orloj and sympozium are not of one namespace: their platforms look for them in all.
/// S14 of stress/ATTACKS.md.
#[test]
fn answers_do_not_depend_on_names_in_other_namespaces() {
    let mut named = BTreeSet::new();
    let mut relocated = 0;
    let of_one_namespace =
        |file: &str| ["ark/", "arkonis/", "orka/"].iter().any(|family| file.starts_with(family));
    for (_, case) in cases().unwrap().into_iter().filter(|(file, _)| of_one_namespace(file)) {
        let own = request::review(&case)["request"]["namespace"].clone();
        let mut renamed = case.clone();
        for object in &mut renamed.state {
            let foreign = object["kind"] != "Namespace"
                && object["metadata"].get("namespace").is_some_and(|namespace| *namespace != own);
            if let (true, Some(name)) = (foreign, object["metadata"]["name"].as_str()) {
                object["metadata"]["name"] = json!(format!("{name}-elsewhere"));
                relocated += 1;
            }
        }
        if answers(&renamed) != answers(&case) {
            named.insert(case.name);
        }
    }
    assert!(relocated > 20, "{relocated} objects elsewhere are too few to say anything");
    assert_eq!(named.iter().map(String::as_str).collect::<Vec<_>>(), ACROSS);
}

/// Forbids whatever the memory of another namespace may be, and asks pods and agents for it.
fn of_foreign_memory() -> Value {
    let rule = |id: &str, rule: Value| json!({"id": id, "roles": ["referrer", "pod"], (id): rule});
    let rules = json!([
        rule("backends", json!({"allow": ["none-such"]})),
        rule("providers", json!({"allow": ["none-such"]})),
        rule("endpoint", json!({"schemes": ["none-such"], "hosts": ["none-such"], "ports": [1]})),
        rule(
            "tenancy",
            json!({"from": {"namespace": true}, "collection": "none", "secrets": "none", "endpointHosts": "none"})
        ),
    ]);
    json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy", "metadata": {"name": "foreign"},
        "spec": {"actions": {"admission": "deny"}, "rules": rules},
    })
}

/// What a policy says of memory in another namespace tells none of its values: they print as `…`.
/// S14 of stress/ATTACKS.md.
#[test]
fn policies_tell_no_values_of_other_namespaces() {
    let memory = json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory",
        "metadata": {"name": "notes", "namespace": "other", "labels": {"app": MARK}},
        "spec": {
            "address": {"value": format!("http://{MARK}.example.com:8080")},
            "headers": [{"name": "Cookie", "value": {"valueFrom": {"secretKeyRef": {"name": MARK, "key": "k"}}}}],
        },
    });
    let query = json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Query", "metadata": {"name": "ask", "namespace": "team"},
        "spec": {"input": "x", "target": {"type": "agent", "name": "a"}, "memory": {"name": "notes", "namespace": "other"}},
    });
    let case = json!({
        "name": "it", "state": [memory, of_foreign_memory()], "object": query, "expect": {"allowed": true},
    });
    let case = memgate_workbench::files::casefile::read::read(&case).unwrap().remove(0);
    let answered = answers(&case);
    for rule in ["foreign/backends", "foreign/endpoint", "foreign/tenancy"] {
        assert!(answered.contains(rule), "{rule}: {answered}");
    }
    assert!(answered.contains("\\\"…\\\"") && !answered.contains(MARK), "{answered}");
}
