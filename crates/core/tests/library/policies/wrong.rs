//! Wrong values in each field of a policy, an exemption and an object: nothing panics, a wrong policy is never in
//! force, and what is said of a wrong object stands at a place that is there.

use memgate_model::finding::Finding;
use memgate_policy::read;
use serde_json::{Value, json};

use super::super::fields::{fields_of, set, wrong_values};
use super::super::views::{cases, state_of};
use super::every::strict_policy;
use super::{admitted, case, check_findings, of_policies, places, policy};

/// A policy in which each field is set.
fn whole_policy() -> Value {
    let mut whole = strict_policy(&json!({"admission": "warn", "ci": "deny", "audit": "report"}));
    let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]});
    whole["spec"]["match"] = json!({
        "families": ["arkonis"], "kinds": ["ArkMemory"], "namespaces": ["team-*"], "excludeNamespaces": ["team-b"],
        "namespaceSelector": selector, "objectSelector": selector, "names": ["n*"], "excludeUsers": ["u"],
        "excludeGroups": ["g"], "operations": ["CREATE"],
    });
    whole["spec"]["promote"] = json!({"at": "2027-01-15T00:00:00Z", "to": "deny"});
    whole["spec"]["existing"] = json!("enforce");
    whole["spec"]["exemptions"] = json!({"namespaces": ["ex"], "maxAge": "90d"});
    whole["spec"]["defaults"] =
        json!([{"family": "arkonis", "kind": "ArkMemory", "field": "/spec/redis/maxEntries", "value": 5}]);
    let rule = &mut whole["spec"]["rules"][0];
    for (field, value) in [
        ("when", json!({"backends": ["redis"], "providers": ["qdrant"]})),
        ("action", json!({"admission": "deny", "ci": "warn", "audit": "off"})),
        ("message", json!("no")),
        ("hint", json!("do")),
        ("docs", json!("https://example.com/a")),
        ("severity", json!("high")),
        ("exemptable", json!(false)),
    ] {
        rule[field] = value;
    }
    whole
}

fn exemption() -> Value {
    json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicyExemption",
        "metadata": {"name": "legacy", "namespace": "ex"},
        "spec": {
            "policy": "org", "rules": ["a"], "reason": "moves to redis in March",
            "target": {
                "namespaces": ["team"], "families": ["arkonis"], "kinds": ["ArkMemory"], "names": ["n*"],
                "selector": {"matchLabels": {"a": "b"}},
            },
            "from": "2027-01-15T00:00:00Z", "expiresAt": "2027-03-01T00:00:00Z", "ticket": "T-1", "approvedBy": "me",
        },
    })
}

/// What of a JSON type another value can stand for it.
fn is_of_its_type(was: &Value, wrong: &Value) -> bool {
    wrong.is_null()
        || matches!(
            (was, wrong),
            (Value::Bool(_), Value::Bool(_))
                | (Value::Number(_), Value::Number(_))
                | (Value::String(_), Value::String(_))
                | (Value::Array(_), Value::Array(_))
                | (Value::Object(_), Value::Object(_))
        )
}

/// Puts each wrong value in each place, and calls `read` for what is wrong then.
fn each_wrong_value(good: &Value, read: impl Fn(&Value) -> Vec<Finding>) {
    assert!(read(good).is_empty(), "{:?}", read(good));
    for place in places(good).iter().filter(|place| place.as_str().starts_with("/spec")) {
        let was = good.pointer(place.as_str()).expect("a place");
        for wrong in wrong_values() {
            let mut bad = good.clone();
            assert!(set(&mut bad, place, Some(&wrong)));
            let faults = read(&bad);
            let is_quantity = wrong.is_number() && place.as_str().contains("/max");
            // One pattern is a list of one, and the other way round.
            let is_pattern = (wrong.is_string() || wrong.is_array()) && place.as_str().contains("/tenancy/");
            let may_be = is_of_its_type(was, &wrong) || is_quantity || is_pattern;
            assert!(may_be || !faults.is_empty(), "{place} may be {wrong}");
            for fault in &faults {
                assert!(!fault.message().contains(char::is_control), "{:?}", fault.message());
            }
        }
    }
}

#[test]
fn in_policies() {
    each_wrong_value(&whole_policy(), |manifest| {
        let (policy, faults) = read::policy(manifest, &memgate_platforms::ALL);
        assert_eq!(policy.invalid.is_some(), !faults.is_empty());
        assert!(faults.is_empty() || policy.rules.is_empty() && policy.defaults.is_empty());
        faults
    });
}

#[test]
fn in_exemptions() {
    each_wrong_value(&exemption(), |manifest| {
        let (exemption, faults) = read::exemption(manifest, &memgate_platforms::ALL);
        assert_eq!(exemption.is_some(), faults.is_empty());
        faults
    });
}

/// The object as a whole, its metadata and its spec, of both kinds and of what they judge.
#[test]
fn in_what_holds_the_fields() {
    for good in [whole_policy(), exemption(), super::memory("in-context")] {
        for place in
            ["/metadata", "/metadata/name", "/metadata/namespace", "/metadata/labels", "/spec", "/status"]
        {
            for wrong in wrong_values() {
                let mut bad = good.clone();
                assert!(set(&mut bad, &memgate_primitives::pointer::Pointer::new(place), Some(&wrong)));
                let state = [whole_policy(), exemption(), bad.clone()];
                let decided = admitted(&case(&state, &bad, &json!({})));
                for finding in decided.into_iter().flat_map(|admitted| admitted.decision.findings) {
                    assert!(!finding.message().contains(char::is_control), "{:?}", finding.message());
                }
            }
        }
    }
}

/// A policy that is wrong and got in says so of each object that it would judge, and refuses none.
#[test]
fn a_wrong_policy_says_so() {
    for wrong in wrong_values().into_iter().filter(|wrong| !wrong.is_null()) {
        let manifest = policy("org", &json!({"actions": {"admission": "deny"}, "rules": wrong}));
        if wrong.as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        let decision = admitted(&case(&[manifest], &super::memory("in-context"), &json!({})))
            .expect("can be read")
            .decision;
        let codes: Vec<&str> = decision.findings.iter().map(Finding::code_name).collect();
        assert!(codes.contains(&"policy/invalid") && decision.allowed(), "{wrong}: {codes:?}");
    }
}

/// Each field of each object of the views has some of the wrong values, in turns, under every rule.
#[test]
fn in_objects() {
    const TURNS: usize = 10;
    let (mut judged, mut turn) = (0, 0);
    for (_, cases) in cases() {
        for view in cases {
            let mut state = state_of(&view);
            state.push(strict_policy(&json!({"admission": "deny"})));
            for field in fields_of(&view["object"]) {
                turn += 1;
                for wrong in wrong_values().into_iter().skip(turn % TURNS).step_by(TURNS) {
                    let mut object = view["object"].clone();
                    if !set(&mut object, &field, Some(&wrong)) {
                        continue;
                    }
                    let Some(admitted) = admitted(&case(&state, &object, &json!({}))) else { continue };
                    let after = admitted.object.as_deref().unwrap_or("null");
                    let after = serde_json::from_str(after).expect("JSON");
                    let findings = of_policies(admitted.decision.findings);
                    judged += findings.len();
                    check_findings(&findings, &after);
                }
            }
        }
    }
    assert!(judged > 1_000, "{judged} findings are too few to say anything");
}
