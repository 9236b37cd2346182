//! Each type of rule on the objects of each family, as memory, as what refers to it and as a pod.
//!
//! The objects are those of the cases in `tests/views`.

use std::collections::BTreeSet;

use memgate_model::family::Family;
use memgate_model::memory_view::Role;
use memgate_policy::rules::TYPES;
use serde_json::{Value, json};

use super::super::cases::cases as case_files;
use super::super::views::{cases, state_of};
use super::{admitted, case, check_findings, data, of_policies, policy};

/// A rule of each type that nearly everything breaks.
fn strict() -> Vec<(String, Value)> {
    let rules = data("strict")["rules"].as_object().expect("rules").clone();
    rules.into_iter().collect()
}

/// A policy of these rules, each for every role that it may have, and of tenants by namespace besides.
pub(super) fn strict_policy(actions: &Value) -> Value {
    let of_type = |(name, rule): (String, Value)| {
        let natural = TYPES.iter().find(|known| known.name == name).expect("a type").natural;
        let takes = |role: &Role| natural.contains(role) || natural.contains(&Role::Memory);
        let roles: Vec<&str> = Role::ALL.into_iter().filter(takes).map(Role::name).collect();
        json!({"id": name.to_lowercase(), "roles": roles, "onUnknown": "deny", (name): rule})
    };
    let mut rules: Vec<Value> = strict().into_iter().map(of_type).collect();
    rules.push(data("strict")["own"].clone());
    policy("strict", &json!({"actions": actions, "rules": rules}))
}

/// The objects of all families with what is around them: those of the views, and those of some cases.
fn scenes() -> Vec<(String, Vec<Value>, Value)> {
    const FILES: [&str; 3] = ["policy/pods.yaml", "policy/rules.yaml", "sympozium/inject-harness.yaml"];
    let of_family = |(family, cases): (&Family, Vec<Value>)| {
        let scene = |view: Value| (family.name.to_owned(), state_of(&view), view["object"].clone());
        cases.into_iter().map(scene).collect::<Vec<_>>()
    };
    let of_views = cases().into_iter().flat_map(of_family);
    let of_rules = case_files().expect("case files").into_iter();
    let of_rules = of_rules.filter(|(file, _)| FILES.contains(&file.as_str()));
    let of_rules = of_rules.filter_map(|(file, case)| {
        let state = case.state.into_iter().filter(|object| object["kind"] != "MemoryPolicy").collect();
        Some((file.split('/').next()?.to_owned(), state, case.object?))
    });
    of_views.chain(of_rules).collect()
}

#[test]
fn each_rule_has_something_to_say_and_says_where() {
    let mut fired = BTreeSet::new();
    for (family, mut state, object) in scenes() {
        state.push(strict_policy(&json!({"admission": "deny"})));
        for also in [json!({}), json!({"operation": "UPDATE", "oldObject": changed(&object)})] {
            let Some(admitted) = admitted(&case(&state, &object, &also)) else { continue };
            let after = admitted.object.as_deref().unwrap_or("null");
            let after: Value = serde_json::from_str(after).expect("JSON");
            let findings = of_policies(admitted.decision.findings);
            check_findings(&findings, &after);
            for finding in findings {
                let rule = finding.policy.expect("a policy").rule.type_name;
                fired.insert((rule, family.clone(), object["kind"] == "Pod"));
            }
        }
    }
    for rule in &TYPES {
        assert!(fired.iter().any(|(name, _, _)| *name == rule.name), "{} never fired", rule.name);
    }
    for family in memgate_platforms::ALL {
        assert!(fired.contains(&("labels", family.name.to_owned(), false)), "nothing of {}", family.name);
        let of_pods = fired.contains(&("labels", family.name.to_owned(), true));
        assert_eq!(of_pods, !family.pods.selectors.is_empty(), "pods of {}", family.name);
    }
    assert!(fired.contains(&("backends", "arkonis".to_owned(), true)), "memory is judged on pods, too");
}

/// An object as it may have been before.
fn changed(object: &Value) -> Value {
    let mut old = object.clone();
    if let Some(labels) = old["metadata"]["labels"].as_object_mut() {
        labels.insert("was".to_owned(), json!("here"));
    }
    if let Some(spec) = old["spec"].as_object_mut() {
        spec.remove("backend");
    }
    old
}
