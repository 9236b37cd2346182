//! Wrong values in each field of a policy, an exemption and an object: nothing panics, a wrong policy is never in
//! force, and what is said of a wrong object stands at a place that is there.

use std::collections::BTreeSet;

use memgate_model::finding::Finding;
use memgate_policy::read;
use serde_json::{Value, json};

use super::super::fields::{fields_of, set, wrong_values};
use super::super::views::{cases, state_of};
use super::every::strict_policy;
use super::{admitted, case, check_findings, data, faults, of_policies, places, policy};

/// A policy in which each field is set.
fn whole_policy() -> Value {
    let mut whole = strict_policy(&json!({"admission": "warn", "ci": "deny", "audit": "report"}));
    let data = data("strict");
    for (place, fields) in [("/spec", &data["spec"]), ("/spec/rules/0", &data["first_rule"])] {
        let object = whole.pointer_mut(place).and_then(Value::as_object_mut).expect("an object");
        object.extend(fields.as_object().expect("an object").clone());
    }
    whole
}

fn exemption() -> Value {
    data("strict")["exemption"].take()
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

/// Kinds of a platform that policies do not judge have no memory, and are not taken for misspelt ones.
#[test]
fn kinds_without_memory_are_not_misspelt_ones() {
    for family in memgate_platforms::ALL {
        let viewed: BTreeSet<&str> = family.views.kinds.iter().map(|(kind, _)| kind.kind).collect();
        let validated = family.kinds.validated.iter().map(|kind| kind.kind);
        let others = family.other_kinds().map(|(_, kind)| kind);
        for kind in validated.chain(others) {
            for target in [json!({"families": [family.name], "kinds": [kind]}), json!({"kinds": [kind]})] {
                let found = faults(&policy("org", &json!({"match": target, "rules": []})));
                let all_of_kind = || memgate_platforms::ALL.iter().flat_map(|family| family.views.kinds);
                let is_viewed = viewed.contains(kind)
                    || target.get("families").is_none() && all_of_kind().any(|(known, _)| known.kind == kind);
                let texts: Vec<String> = found.iter().map(|fault| fault.message().into_owned()).collect();
                let ends = [
                    format!("; {kind} has no memory"),
                    "; a workload stands for its pod: use Pod".to_owned(),
                ];
                let says = texts.iter().any(|text| ends.iter().any(|end| text.ends_with(end)));
                assert_eq!(says, !is_viewed, "{target}: {texts:?}");
                assert!(!texts.iter().any(|text| text.contains("did you mean")), "{target}: {texts:?}");
            }
        }
    }
}
