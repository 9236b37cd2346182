//! Very many elements, very long values, and policies as large as they may be: what is said is bounded, and the work
//! does not grow faster than what is judged. How long it takes is measured in `benches`.

use serde_json::{Map, Value, json};

use super::budget::{BUDGETS, of_a_budget, timed};
use super::{
    admitted, case, check_findings, denies, denying, memory, messages, object, of_policies, policy, reported,
};

/// As many as are read.
const MANY: usize = 10_000;

/// How many findings are reported about an object.
const REPORTED: usize = 50;

/// A memory of ark with ten thousand headers, of which every other one is a credential in clear text.
fn headers() -> Value {
    let header = |number: usize| {
        let value = match number % 2 {
            0 => json!({"value": "x"}),
            _ => json!({"valueFrom": {"secretKeyRef": {"name": format!("s{number}"), "key": "k"}}}),
        };
        json!({"name": "Cookie", "value": value})
    };
    let headers: Vec<Value> = (0..MANY).map(header).collect();
    let address = json!({"value": "http://memory.team.svc"});
    object("ark.mckinsey.com/v1alpha1", "Memory", &json!({"address": address, "headers": headers}))
}

/// The longest list of patterns.
fn longest() -> Vec<String> {
    (0..256).map(|number| format!("*{}{number}*", "a".repeat(120))).collect()
}

#[test]
fn ten_thousand_findings_of_a_rule_are_counted() {
    let memory = headers();
    let rules = json!([{"id": "it", "secrets": {"inline": "forbid", "names": ["none"]}}]);
    let admitted = admitted(&case(&[denying(&rules)], &memory, &json!({}))).expect("can be read");
    let decision = admitted.decision;
    let denials = decision.findings.iter().filter(|finding| denies(finding)).count();
    assert_eq!(denials, REPORTED);
    assert!(decision.not_shown.denials >= MANY - REPORTED, "{:?}", decision.not_shown);
    check_findings(&of_policies(decision.findings), &memory);
}

/// Neither what is held of them nor what is reported grows with the number of rules.
#[test]
fn ten_thousand_findings_of_each_of_many_rules() {
    let memory = headers();
    let rule = |number: usize| json!({"id": format!("r{number}"), "secrets": {"names": &longest()[..16]}});
    let rules: Vec<Value> = (0..4).map(rule).collect();
    let admitted = admitted(&case(&[denying(&json!(rules))], &memory, &json!({}))).expect("can be read");
    assert_eq!(admitted.decision.findings.len(), REPORTED);
    assert_eq!(admitted.decision.not_shown.denials + REPORTED, 4 * MANY / 2 + of_family(&memory));
    check_findings(&of_policies(admitted.decision.findings), &memory);
}

/// How many denials the family has.
fn of_family(object: &Value) -> usize {
    let decision = admitted(&case(&[], object, &json!({}))).expect("can be read").decision;
    decision.findings.iter().filter(|finding| denies(finding)).count() + decision.not_shown.denials
}

/// Texts of any length against the longest list of the worst patterns, in twenty policies: what is too long is not
/// compared, and comparing the rest ends with the budget. A pattern for each character of a host of 140 KB took half a
/// second.
#[test]
fn long_texts_against_the_longest_lists_of_patterns() {
    let patterns = longest();
    let rules = json!([
        {"id": "hosts", "endpoint": {"hosts": patterns}},
        {"id": "names", "secrets": {"names": patterns}},
        {"id": "tenant", "tenancy": {"from": {"namespace": true}, "collection": "*a*a*a*a*b*", "endpointHosts": "*a*b*"}},
        {"id": "labels", "labels": {"values": {"team": patterns}}},
        {"id": "fixed", "immutable": ["endpoint", "secrets", "labels"]},
    ]);
    let spec = json!({"actions": {"admission": "deny"}, "rules": rules});
    let policies: Vec<Value> = (0..20).map(|number| policy(&format!("p{number}"), &spec)).collect();
    let limit = of_a_budget() * BUDGETS;
    for unit in ["a", "a.", "a,", "a@", "\\", "%61", "ä", "1.", "[", ":"] {
        let long = unit.repeat(140_000 / unit.len());
        let store = json!({
            "provider": "qdrant", "endpoint": format!("http://{long}"), "collection": long,
            "secretRef": {"name": long},
        });
        let spec = json!({"backend": "vector-store", "vectorStore": store});
        let mut memory = object("arkonis.dev/v1alpha1", "ArkMemory", &spec);
        memory["metadata"]["labels"] = json!({"team": long});
        for also in [json!({}), json!({"operation": "UPDATE", "oldObject": memory})] {
            let (admitted, time) = timed(&case(&policies, &memory, &also));
            let is_update = also["operation"] == "UPDATE";
            assert!(is_update || admitted.decision.findings.iter().any(denies), "{unit}");
            // Without the budget it is minutes in a debug build.
            assert!(time <= limit, "{unit}: {time:?} of {limit:?}");
        }
    }
}

#[test]
fn an_update_with_ten_thousand_findings_that_are_stored() {
    let memory = headers();
    let rules = json!([{"id": "it", "secrets": {"inline": "forbid", "names": ["none"]}}]);
    let also = json!({"operation": "UPDATE", "oldObject": memory});
    let admitted = admitted(&case(&[denying(&rules)], &memory, &also)).expect("can be read");
    let denials = of_policies(admitted.decision.findings).into_iter().filter(denies);
    assert_eq!(denials.count(), 0);
    assert!(admitted.decision.not_shown.warnings >= MANY - REPORTED);
}

#[test]
fn an_agent_with_ten_thousand_skills() {
    let skills: Vec<Value> =
        (0..MANY).map(|number| json!({"skillPackRef": format!("skill-{number}")})).collect();
    let agent =
        object("sympozium.ai/v1alpha1", "Agent", &json!({"skills": skills, "memory": {"enabled": true}}));
    let rules = json!([{"id": "backends", "backends": {"deny": ["configmap", "sqlite"]}}]);
    let findings = reported(&[denying(&rules)], &agent);
    assert_eq!(findings.len(), 1, "{findings:?}");
    check_findings(&findings, &agent);
}

/// 64 rules of 256 patterns each, against values of ten thousand characters: no pattern is tried twice.
#[test]
fn the_largest_policy_against_long_values() {
    let long = "a".repeat(MANY);
    let mut memory = memory("vector-store");
    memory["metadata"]["labels"] = json!({"app": long});
    let secret = json!({"name": long});
    memory["spec"]["vectorStore"] = json!({"provider": long, "endpoint": format!("http://{long}"), "collection": long, "secretRef": secret});
    let rule = |number: usize| {
        let id = format!("r{number}");
        match number % 4 {
            0 => json!({"id": id, "labels": {"values": {"app": short()}}}),
            1 => json!({"id": id, "secrets": {"names": short()}}),
            2 => json!({"id": id, "endpoint": {"hosts": short()}}),
            _ => json!({"id": id, "providers": {"allow": longest()}}),
        }
    };
    let rules: Vec<Value> = (0..64).map(rule).collect();
    let policy = denying(&json!(rules));
    assert_eq!(super::faults(&policy).first().map(|fault| fault.message().into_owned()), None);
    let findings = reported(&[policy], &memory);
    assert!(!findings.is_empty());
    check_findings(&findings, &memory);
}

/// Patterns that stop at the first character which does not fit, and some that do not.
fn short() -> Vec<String> {
    (0..256)
        .map(|number| if number % 64 == 0 { format!("*a*b{number}*") } else { format!("b{number}*") })
        .collect()
}

/// The longest lists and names leave room for the name of the rule.
#[test]
fn what_names_the_rule_is_never_cut() {
    let mut memory = memory("none-such");
    memory["metadata"]["labels"] = json!({"app": "ä".repeat(5_000)});
    let name = "ä".repeat(5_000);
    memory["spec"]["redis"] = json!({"secretRef": {"name": name}});
    memory["spec"]["backend"] = json!("redis");
    let rules = json!([
        {"id": "backends", "backends": {"allow": longest()}},
        {"id": "secrets", "secrets": {"names": longest()}},
        {"id": "labels", "labels": {"values": {"app": ["ä".repeat(63)]}}},
        {"id": "tenant", "tenancy": {"from": {"objectLabel": "app"}, "secrets": format!("{}{{tenant}}", "ä".repeat(200))}},
    ]);
    let findings = reported(&[denying(&rules)], &memory);
    assert_eq!(findings.len(), 4, "{findings:?}");
    check_findings(&findings, &memory);
}

#[test]
fn a_policy_with_ten_thousand_unknown_fields() {
    let with_fields = |count: usize| {
        let fields: Map<String, Value> =
            (0..count).map(|number| (format!("field-{number}"), json!(1))).collect();
        let mut spec = Value::Object(fields);
        spec["rules"] = json!([{"id": "a", "labels": {"required": ["a"]}}]);
        policy("org", &spec)
    };
    // With `rules` as many as are read.
    let manifest = with_fields(MANY - 1);
    let decision = admitted(&case(&[], &manifest, &json!({}))).expect("can be read").decision;
    assert_eq!((decision.findings.len(), decision.not_shown.denials), (REPORTED, MANY - 1 - REPORTED));
    let messages = messages(&decision.findings);
    assert!(messages[0].starts_with("spec.field-0: unknown field \"field-0\""), "{}", messages[0]);
    assert!(messages[REPORTED - 1].starts_with("spec.field-49: "), "{}", messages[REPORTED - 1]);
    // A larger one is refused for its size, and may be changed where it is stored.
    let manifest = with_fields(MANY);
    for (also, refuses) in [(json!({}), true), (json!({"operation": "UPDATE", "oldObject": manifest}), false)]
    {
        let decision = admitted(&case(&[], &manifest, &also)).expect("can be read").decision;
        let [finding] = decision.findings.as_slice() else { panic!("{:?}", decision.findings) };
        assert_eq!((finding.code_name(), denies(finding)), ("memgate/over-limit", refuses));
        assert_eq!(finding.pointer.as_str(), "/spec");
    }
}

#[test]
fn lists_that_are_longer_than_they_may_be() {
    let names: Vec<String> = (0..MANY).map(|number| format!("n{number}")).collect();
    let rules: Vec<Value> =
        (0..MANY).map(|number| json!({"id": format!("r{number}"), "labels": {"required": ["a"]}})).collect();
    for spec in [
        json!({"match": {"namespaces": names}, "rules": [{"id": "a", "labels": {"required": ["a"]}}]}),
        json!({"rules": rules}),
        json!({"rules": [{"id": "a", "backends": {"allow": names}}]}),
        json!({"rules": [{"id": "a", "labels": {"required": ["a"]}}], "exemptions": {"namespaces": names, "maxAge": "1d"}}),
    ] {
        let faults = super::faults(&policy("org", &spec));
        let [fault] = faults.as_slice() else { panic!("{} faults", faults.len()) };
        assert!(fault.message().contains("must have at most"), "{}", fault.message());
    }
}

/// Users of an object whose views take too many steps, and those that are being deleted, hide none of those behind them: the
/// write is refused by each policy that could match one.
#[test]
fn large_users_of_a_written_object_hide_no_others() {
    let api = "kagent.dev/v1alpha2";
    let config = |host: &str| {
        let spec = json!({
            "provider": "OpenAI", "model": "text-embedding-3-small", "apiKeySecret": "openai", "apiKeySecretKey": "key",
            "openAI": {"baseUrl": format!("https://{host}/v1")},
        });
        object(api, "ModelConfig", &spec)
    };
    let agent = |name: &str, labels: Value| {
        let memory = json!({"modelConfig": "notes", "ttlDays": 15});
        let spec = json!({"type": "Declarative", "declarative": {"modelConfig": "notes", "systemMessage": "x", "memory": memory}});
        let mut agent = object(api, "Agent", &spec);
        agent["metadata"] = json!({"name": name, "namespace": "team", "labels": labels});
        agent
    };
    let many: Value =
        (0..2_000).map(|label| (format!("{label}{}", "a".repeat(50)), json!("b".repeat(60)))).collect();
    let rules = json!([{"id": "it", "endpoint": {"hosts": ["good.example"]}}]);
    let mut policy = denying(&rules);
    policy["spec"]["match"] = json!({"objectSelector": {"matchLabels": {"judged": "yes"}}});
    for (count, labels, is_leaving) in [(1, &many, false), (120, &many, false), (300, &json!({}), true)] {
        let mut state: Vec<Value> =
            (0..count).map(|number| agent(&format!("a{number}"), labels.clone())).collect();
        for agent in state.iter_mut().filter(|_| is_leaving) {
            agent["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        state.extend([policy.clone(), config("good.example"), agent("z", json!({"judged": "yes"}))]);
        let update = json!({"operation": "UPDATE", "oldObject": config("good.example")});
        let case = case(&state, &config("evil.example"), &update);
        let decision = admitted(&case).expect("can be read").decision;
        assert!(decision.findings.iter().any(denies), "{count}: {:?}", messages(&decision.findings));
    }
}
