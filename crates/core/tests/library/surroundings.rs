//! What surrounds a pod, with odd and very many values in it: a tenant writes them all.

#![allow(clippy::expect_used, reason = "a test stops where something is wrong")]

use memgate_core::decide::decide;
use memgate_core::patch::apply::{apply, check};
use memgate_core::state;
use memgate_model::decision::Decision;
use memgate_model::request::Request;
use serde_json::{Value, json};

/// The decision about a pod with this spec, which sympozium and ark know; and the pod after it.
fn decided(spec: &Value) -> (Decision, String) {
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    for (group, kind, name, spec) in [
        ("sympozium.ai", "Agent", "triage", json!({"skills": [{"skillPackRef": "memory"}]})),
        ("sympozium.ai", "SkillPack", "memory", json!({"skills": [{"name": "memory", "content": "c"}]})),
        ("ark.mckinsey.com", "Memory", "shared", json!({"address": {"value": "http://ark-broker"}})),
    ] {
        let metadata = json!({"name": name, "namespace": "ops"});
        let object = json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind, "metadata": metadata, "spec": spec});
        state::add(&mut snapshot, &object).expect("an object");
    }
    let metadata = json!({
        "labels": {"sympozium.ai/component": "agent-run", "sympozium.ai/instance": "triage"},
        "annotations": {"memgate.dev/ark-memory": "shared"},
    });
    let text = json!({"metadata": metadata, "spec": spec}).to_string();
    let decision = decide(&Request::to_create_pod("ops", "", &text), &snapshot);
    assert_eq!(check(&text, &decision.edits), Ok(()), "{spec}");
    let after = apply(&text, &decision.edits).expect("applies");
    let again = decide(&Request::to_create_pod("ops", "", &after), &snapshot);
    assert!(again.edits.is_empty(), "{:?}", again.edits);
    assert_eq!(codes(&again), codes(&decision), "the same pod gets the same answer");
    (decision, after)
}

fn codes(decision: &Decision) -> Vec<&str> {
    decision.findings.iter().map(|finding| finding.code.name).collect()
}

fn spec(with: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "agent", "image": "a"}]});
    if let (Some(to), Some(from)) = (spec.as_object_mut(), with.as_object()) {
        to.extend(from.clone());
    }
    spec
}

#[test]
fn takes_odd_types_for_nothing() {
    let odd =
        [json!(null), json!([]), json!({}), json!("svc.x"), json!(7), json!([null]), json!([7]), json!([{}])];
    for value in &odd {
        let aliases = json!({"dnsPolicy": "Default", "hostAliases": value});
        assert_eq!(codes(&decided(&spec(&aliases)).0), ["memgate/pod-dns"], "{aliases}");
        for config in [value.clone(), json!({"searches": value}), json!({"nameservers": value})] {
            let dns = json!({"dnsPolicy": "None", "dnsConfig": config});
            assert_eq!(codes(&decided(&spec(&dns)).0), ["memgate/pod-dns"], "{dns}");
        }
        for nodes in [
            json!({"nodeSelector": value}),
            json!({"affinity": value}),
            json!({"affinity": {"nodeAffinity": value}}),
            json!({"affinity": terms(value)}),
            json!({"affinity": terms(&json!([{"matchExpressions": value}]))}),
            json!({"affinity": terms(&json!([{"matchExpressions": [{"key": "kubernetes.io/os", "values": value}]}]))}),
            json!({"os": value}),
        ] {
            assert_eq!(codes(&decided(&spec(&nodes)).0), [""; 0], "{nodes}");
        }
    }
}

fn terms(terms: &Value) -> Value {
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
}

#[test]
fn reads_ten_thousand_alternatives_of_nodes() {
    let of = |system: &str| json!({"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": [system]}]});
    let mut all = vec![of("windows"); 10_000];
    let (decision, _) = decided(&spec(&json!({"affinity": terms(&json!(all))})));
    assert_eq!(codes(&decision), ["memgate/pod-windows"]);
    all.push(of("linux"));
    let (decision, after) = decided(&spec(&json!({"affinity": terms(&json!(all))})));
    assert!(codes(&decision).is_empty() && after.contains("wait-for-memory"), "{:?}", codes(&decision));
}

#[test]
fn reads_ten_thousand_proxies_and_a_long_list_of_exceptions() {
    let proxy = |name: &str, value: &str| json!({"name": name, "value": value});
    let proxies = || vec![proxy("HTTP_PROXY", "http://p"); 10_000];
    let with = |more: &[Value]| {
        let env: Vec<Value> = proxies().iter().chain(more).cloned().collect();
        codes(&decided(&json!({"containers": [{"name": "agent", "image": "a", "env": env}]})).0).join(" ")
    };
    let long = "10.0.0.0/8,".repeat(95_000);
    assert_eq!(with(&[]), "memgate/pod-proxy");
    assert_eq!(with(&[proxy("NO_PROXY", &long)]), "memgate/pod-proxy", "a list without the memory");
    assert_eq!(with(&[proxy("no_proxy", &format!("{long}.svc,ark-broker"))]), "");
    assert_eq!(with(&[proxy("HTTP_PROXY", "")]), "", "the last of several counts");
}

#[test]
fn reads_ten_thousand_names_in_one_value() {
    let uses: Vec<String> = (0..10_000).map(|number| format!("$(LATER_{number})$$(NOT)$(")).collect();
    let uses = uses.concat();
    let mut env = vec![json!({"name": "ARK_MEMORY_URL", "value": uses})];
    env.extend((0..10_000).rev().map(|number| json!({"name": format!("LATER_{number}"), "value": "x"})));
    let (decision, _) = decided(&json!({"containers": [{"name": "agent", "image": "a", "env": env}]}));
    let order = decision.findings.iter().filter(|finding| finding.code.name == "memgate/pod-env-order");
    let pointers: Vec<&str> = order.map(|finding| finding.pointer.as_str()).collect();
    assert_eq!(pointers, ["/spec/containers/0/env/0"]);
}
