//! Odd texts in values that stand in messages.

use serde_json::{Value, json};

use super::{check_findings, denying, memory, object, policy, reported};

/// What must not reach a terminal, what ends a quote, and what looks like the beginning of a credential.
const ODD: [&str; 10] = [
    "a\"b", "\u{1b}[31mred", "\u{1b}]8;;http://evil\u{7}", "one\ntwo\r\t", "\u{0}\u{85}\u{9b}31m",
    "password='", "redis://u:", "{\"token\":\"", "Bearer 0123456789", "(memgate policy org/other)",
];

#[test]
fn in_labels() {
    let rules = json!([
        {"id": "values", "labels": {"values": {"app": ["a", "b"]}}},
        {"id": "tenant", "tenancy": {"from": {"objectLabel": "app"}, "secrets": "{tenant}-*"}},
    ]);
    for odd in ODD {
        let mut memory = memory("redis");
        memory["spec"]["redis"] = json!({"secretRef": {"name": odd}});
        memory["metadata"]["labels"] = json!({"app": odd, (odd): odd});
        let findings = reported(&[denying(&rules)], &memory);
        assert_eq!(findings.len(), 2, "{findings:?}");
        check_findings(&findings, &memory);
    }
}

#[test]
fn in_names_and_values() {
    let rules = json!([
        {"id": "backends", "backends": {"allow": ["redis"]}},
        {"id": "secrets", "secrets": {"names": ["a"], "namespaces": "same"}},
        {"id": "endpoint", "endpoint": {"schemes": ["https"], "hosts": ["a"], "ports": [1]}},
        {"id": "collection", "tenancy": {"from": {"namespace": true}, "collection": "{tenant}-*"}},
        {"id": "providers", "providers": {"allow": ["a"]}},
    ]);
    for odd in ODD {
        let store = json!({"provider": odd, "endpoint": odd, "collection": odd, "secretRef": {"name": odd}});
        let spec = json!({"backend": "vector-store", "vectorStore": store});
        let memory = object("arkonis.dev/v1alpha1", "ArkMemory", &spec);
        let findings = reported(&[denying(&rules)], &memory);
        assert!(findings.len() > 3, "{findings:?}");
        check_findings(&findings, &memory);
        let memory = super::memory(odd);
        let findings = reported(&[denying(&rules)], &memory);
        assert!(!findings.is_empty());
        check_findings(&findings, &memory);
    }
}

#[test]
fn in_keys_and_values_of_labels() {
    for odd in ODD {
        let rules = json!([
            {"id": "a", "labels": {"required": [odd], "values": {(odd): ["b"]}}},
            {"id": "b", "tenancy": {"from": {"namespaceLabel": odd}, "required": true}},
            {"id": "c", "tenancy": {"from": {"objectLabel": odd}, "required": true}},
        ]);
        let mut policy = denying(&rules);
        let expressions = json!([{"key": odd, "operator": "In", "values": [odd]}]);
        policy["spec"]["match"] =
            json!({"objectSelector": {"matchLabels": {(odd): odd}, "matchExpressions": expressions}});
        let faults = super::faults(&policy);
        assert_eq!(faults.len(), 8, "{faults:?}");
        for fault in faults {
            assert!(!fault.message().contains(char::is_control), "{:?}", fault.message());
        }
    }
}

#[test]
fn in_what_a_policy_says() {
    for odd in ODD {
        let rules = json!([
            {"id": "a", "backends": {"allow": [odd, "b"]}, "hint": odd, "docs": "https://a.example"},
            {"id": "b", "labels": {"required": ["team"], "values": {"app": [odd]}}, "hint": odd},
            {"id": "c", "tenancy": {"from": {"namespaceLabel": "team"}, "required": true}, "onUnknown": "deny"},
            {"id": "d", "tenancy": {"from": {"objectLabel": "team"}, "required": true}},
        ]);
        let policy = denying(&rules);
        assert!(super::faults(&policy).is_empty());
        let mut memory = memory("in-context");
        memory["metadata"]["labels"] = json!({"app": "x"});
        let findings = reported(&[policy], &memory);
        assert_eq!(findings.len(), 5, "{findings:?}");
        check_findings(&findings, &memory);
    }
}

#[test]
fn in_policies_that_are_refused() {
    for odd in ODD {
        let rules = json!([
            {"id": odd, "backends": {"allow": ["a"]}},
            {"id": "b", (odd): {}},
            {"id": "c", "backends": {(odd): true}, "severity": odd, "message": odd, "docs": odd},
            {"id": "d", "immutable": [odd]},
            {"id": "e", "endpoint": {"hosts": [format!("{odd}**")], "loopback": odd}},
            {"id": "f", "retention": {"max": odd}},
            {"id": "g", "capacity": {"storage": {"max": odd}}},
            {"id": "h", "references": {"mustExist": [odd]}},
        ]);
        let spec = json!({
            "match": {"families": [odd], "kinds": [odd], "names": [odd], "operations": [odd]},
            "promote": {"at": odd, "to": odd}, "rules": rules,
            "defaults": [{"family": odd, "kind": odd, "field": odd, "value": odd}],
            "exemptions": {"namespaces": [odd], "maxAge": odd}, (odd): odd,
        });
        for manifest in [policy("org", &spec), policy(odd, &spec)] {
            let faults = super::faults(&manifest);
            assert!(faults.len() > 15, "{faults:?}");
            check_findings(&faults, &manifest);
            let state: Vec<Value> = vec![manifest];
            let admitted = super::admitted(&super::case(&state, &memory("redis"), &json!({})));
            check_findings(&admitted.expect("can be read").decision.findings, &memory("redis"));
        }
    }
}
