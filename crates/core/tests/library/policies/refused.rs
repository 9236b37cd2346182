//! What is wrong with a policy is said at its place, in words that help; and what is odd, but not wrong, is taken.

use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::{denying, faults, memory, policy, reported};

#[test]
fn what_is_misspelt_is_refused_with_the_right_word() {
    let rule = |rule: Value| json!({"rules": [rule]});
    for (spec, pointer, words) in [
        (
            json!({"match": {"families": ["arkonsi"]}, "rules": []}),
            "/spec/match/families/0",
            "did you mean \"arkonis\"?",
        ),
        (
            json!({"match": {"kinds": ["ArkMemroy"]}, "rules": []}),
            "/spec/match/kinds/0",
            "did you mean \"ArkMemory\"?",
        ),
        (
            json!({"match": {"families": ["ark"], "kinds": ["ArkMemory"]}, "rules": []}),
            "/spec/match/kinds/0",
            "there is no kind \"ArkMemory\" of ark",
        ),
        (json!({"match": {"kinds": ["Deployment"]}, "rules": []}), "/spec/match/kinds/0", "use Pod"),
        (
            json!({"match": {"kinds": ["ArkEvent"]}, "rules": []}),
            "/spec/match/kinds/0",
            "there is no kind \"ArkEvent\" that policies judge; ArkEvent has no memory",
        ),
        (
            json!({"match": {"operations": ["DELETE"]}, "rules": []}),
            "/spec/match/operations/0",
            "use CREATE or UPDATE",
        ),
        (
            rule(json!({"id": "a", "immutable": ["endpoint.hots"]})),
            "/spec/rules/0/immutable/0",
            "did you mean \"endpoint.host\"?",
        ),
        (
            rule(json!({"id": "a", "on": ["pod"], "labels": {"required": ["a"]}})),
            "/spec/rules/0/on",
            "use roles",
        ),
        (
            rule(json!({"id": "a", "true": ["pod"], "labels": {"required": ["a"]}})),
            "/spec/rules/0/true",
            "use roles",
        ),
        (
            rule(json!({"id": "a", "retntion": {"max": "1d"}})),
            "/spec/rules/0/retntion",
            "did you mean \"retention\"?",
        ),
        (
            rule(json!({"id": "a", "retention": {"mx": "1d"}})),
            "/spec/rules/0/retention/mx",
            "did you mean \"max\"?",
        ),
        (rule(json!({"id": "a", "retention": {}})), "/spec/rules/0/retention", "asks for nothing"),
        (rule(json!({"id": "a", "expression": "true"})), "/spec/rules/0/expression", "reserved"),
        (rule(json!({"id": "a"})), "/spec/rules/0", "has no rule"),
        (
            rule(json!({"id": "a", "roles": ["pod"], "operations": {"deny": ["x"]}})),
            "/spec/rules/0/roles/0",
            "operations judges referrer only",
        ),
        (json!({"rules": [], "existing": "ratchets"}), "/spec/existing", "did you mean \"ratchet\"?"),
        (json!({"rules": [], "actions": {"audit": "deny"}}), "/spec/actions/audit", "use report or off"),
        (
            json!({"rules": [], "promote": {"at": "2027-01-15T00:00:00Z", "to": "report"}}),
            "/spec/promote/to",
            "not stricter",
        ),
        (json!({}), "/spec/rules", "is required"),
    ] {
        is_refused(&spec, pointer, words);
    }
}

#[test]
fn dates_patterns_and_paths_that_are_wrong_are_refused() {
    let rule = |rule: Value| json!({"rules": [rule]});
    for (spec, pointer, words) in [
        (
            rule(json!({"id": "a", "labels": {"required": ["a"]}, "during": {}})),
            "/spec/rules/0/during",
            "needs from or until",
        ),
        (
            rule(
                json!({"id": "a", "labels": {"required": ["a"]}, "during": {"till": "2027-01-15T00:00:00Z"}}),
            ),
            "/spec/rules/0/during/till",
            "use from or until",
        ),
        (
            rule(json!({"id": "a", "labels": {"required": ["a"]}, "during": {"from": "2027-01-15"}})),
            "/spec/rules/0/during/from",
            "is not a point in time",
        ),
        (
            rule(json!({"id": "a", "labels": {"required": ["a"]}, "during": {
                "from": "2027-01-15T00:00:00Z", "until": "2027-01-15T01:00:00+01:00",
            }})),
            "/spec/rules/0/during/until",
            "must be after from",
        ),
        (
            rule(json!({"id": "a", "labels": {"required": ["a"]}, "during": "2027"})),
            "/spec/rules/0/during",
            "must be an object",
        ),
        (
            rule(json!({"id": "a", "endpoint": {"tls": "requires"}})),
            "/spec/rules/0/endpoint/tls",
            "did you mean \"require\"?",
        ),
        (
            rule(json!({"id": "a", "tenancy": {"from": {"namespace": true}, "names": []}})),
            "/spec/rules/0/tenancy/names",
            "must not be empty",
        ),
        (
            rule(json!({"id": "a", "tenancy": {"from": {"namespace": true}, "names": ["a", 1]}})),
            "/spec/rules/0/tenancy/names/1",
            "must be a string",
        ),
        (
            rule(json!({"id": "a", "tenancy": {"from": {"namespace": true}, "secrets": {"a": 1}}})),
            "/spec/rules/0/tenancy/secrets",
            "must be a list",
        ),
        (
            rule(json!({"id": "a", "tenancy": {"from": {"objectLabel": "api-token"}, "secrets": "a"}})),
            "/spec/rules/0/tenancy/from/objectLabel",
            "has the name of a credential",
        ),
        (
            rule(json!({"id": "a", "immutable": ["endpoint.tsl"]})),
            "/spec/rules/0/immutable/0",
            "did you mean \"endpoint.tls\"?",
        ),
    ] {
        is_refused(&spec, pointer, words);
    }
}

/// A policy is refused at this place in these words, wherever it is met.
fn is_refused(spec: &Value, pointer: &str, words: &str) {
    let manifest = policy("org", spec);
    let found = faults(&manifest);
    let fault = found.iter().find(|fault| fault.pointer.as_str() == pointer);
    assert!(fault.is_some_and(|fault| fault.message().contains(words)), "{pointer}: {found:#?}");
    // It is refused by the webhook in the same words, and has no force if it got in.
    let decision = super::admitted(&super::case(&[], &manifest, &json!({}))).expect("can be read").decision;
    assert!(!decision.allowed());
    assert_eq!(super::messages(&decision.findings), super::messages(&found));
    let judged = super::admitted(&super::case(&[manifest], &memory("in-context"), &json!({})));
    assert!(judged.expect("can be read").allowed());
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
                let says = texts.iter().any(|text| text.ends_with(&format!("; {kind} has no memory")));
                assert_eq!(says, !is_viewed, "{target}: {texts:?}");
                assert!(!texts.iter().any(|text| text.contains("did you mean")), "{target}: {texts:?}");
            }
        }
    }
}

#[test]
fn a_policy_that_matches_nothing_says_nothing() {
    let rules = json!([{"id": "none", "labels": {"required": ["none-such"]}}]);
    for matching in [
        json!({"names": ["none-such"]}),
        json!({"namespaces": ["none-such"]}),
        json!({"excludeNamespaces": ["*"]}),
        json!({"families": ["ark"]}),
        json!({"kinds": ["Pod"]}),
        json!({"objectSelector": {"matchLabels": {"none": "such"}}}),
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "none-such"}}}),
        json!({"operations": ["UPDATE"]}),
    ] {
        let spec = json!({"match": matching, "actions": {"admission": "deny"}, "rules": rules});
        let policy = policy("org", &spec);
        assert!(faults(&policy).is_empty(), "{matching}");
        assert!(reported(&[policy], &memory("in-context")).is_empty(), "{matching}");
    }
}

/// A Namespace that is not known has its name, and a rule that depends on its other labels only warns.
#[test]
fn an_unknown_namespace_only_warns() {
    let spec = json!({
        "match": {"namespaceSelector": {"matchLabels": {"env": "prod"}}}, "actions": {"admission": "deny"},
        "rules": [{"id": "durable", "backends": {"durable": true}}],
    });
    let findings = reported(&[policy("org", &spec)], &memory("in-context"));
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert!(!super::denies(finding));
    let help = finding.help_text().unwrap_or_default();
    assert_eq!(help, "Namespace \"team\" is unknown; give its manifest or --namespace-labels NS:K=V");
}

/// Of two policies of one name the later one counts, as in a cluster, where there can be but one.
#[test]
fn two_policies_of_one_name() {
    let first = denying(&json!([{"id": "durable", "backends": {"durable": true}}]));
    let second = denying(&json!([{"id": "none", "backends": {"deny": ["none-such"]}}]));
    assert_eq!(reported(&[second.clone(), first.clone()], &memory("in-context")).len(), 1);
    assert!(reported(&[first, second], &memory("in-context")).is_empty());
}
