//! What policies cost counts for one budget of the decision, which reads the flag of the caller. Where it ends, what a
//! denying policy may judge is refused.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use memgate_core::admission::Admitted;
use memgate_model::reason::Reason;
use memgate_primitives::budget::{Budget, MAX_VOLUMES};
use memgate_primitives::glob::Glob;
use memgate_workbench::files::casefile::Case;
use serde_json::{Value, json};

use super::{admitted, answer, asked, case, denies, memory, messages, object, policy};

/// A review takes no longer than comparing names until so many budgets have ended: two calls, each with parts for the
/// object, the stored one and the policies, and what findings take beyond the steps that they count for. A build for
/// tests optimizes comparing names more than the rest, so that up to 11 were measured.
pub(super) const BUDGETS: u32 = 24;

/// As long as names may be.
const LONGEST_NAME: usize = 253;

/// Patterns that are compared from each character of the longest name on, and that it does not fit.
pub(super) fn hard() -> Vec<String> {
    (0..255).map(|number| format!("*{}{number}*", "a".repeat(LONGEST_NAME / 2))).collect()
}

/// The time that the processor spends on something in this thread, whatever else the machine does.
fn spent<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let now = || {
        let text = fs::read_to_string("/proc/thread-self/schedstat").expect("a thread that is scheduled");
        let nanoseconds = text.split(' ').next().and_then(|text| text.parse().ok());
        Duration::from_nanos(nanoseconds.expect("a number"))
    };
    let start = now();
    let result = run();
    (result, now().saturating_sub(start))
}

/// The time that comparing names takes until a budget ends.
pub(super) fn of_a_budget() -> Duration {
    let (glob, name, budget) = (Glob::new(&*hard()[0]), "a".repeat(LONGEST_NAME), Budget::default());
    spent(|| {
        while !budget.has_ended() {
            assert!(!glob.matches(&name, &budget));
        }
    })
    .1
}

/// What both webhook calls say to a caller who has gone.
fn cancelled(case: &Case) -> Admitted {
    let (body, snapshot) = asked(case).expect("a state");
    answer(case, &body, &snapshot, Some(&AtomicBool::new(true))).expect("an answer")
}

/// What both webhook calls say, and the time that it takes, without that for reading the case.
pub(super) fn timed(case: &Case) -> (Admitted, Duration) {
    let (body, snapshot) = asked(case).expect("a state");
    let (admitted, time) = spent(|| answer(case, &body, &snapshot, None));
    (admitted.expect("can be read"), time)
}

/// Policies of this `match` that nothing satisfies.
fn unmet(matching: &Value, action: &str, count: usize) -> Vec<Value> {
    let rules = json!([{"id": "it", "labels": {"required": ["none"]}}]);
    let spec = json!({"match": matching, "actions": {"admission": action}, "rules": rules});
    (0..count).map(|number| policy(&format!("p{number}"), &spec)).collect()
}

/// An object of the longest name in a namespace of the longest name.
fn longest(mut object: Value) -> Value {
    object["metadata"]["name"] = json!("a".repeat(LONGEST_NAME));
    object["metadata"]["namespace"] = json!("a".repeat(LONGEST_NAME));
    object
}

fn pod(volumes: usize) -> Value {
    let volumes: Vec<Value> =
        (0..volumes).map(|it| json!({"name": format!("v{it}"), "emptyDir": {}})).collect();
    let mut pod =
        object("v1", "Pod", &json!({"containers": [{"name": "a", "image": "a"}], "volumes": volumes}));
    pod["metadata"]["labels"] = json!({"arkonis.dev/deployment": "scout"});
    longest(pod)
}

/// Each list of names that a policy matches.
fn matched_by_names() -> [Value; 3] {
    let last = [hard(), vec!["a*".to_owned()]].concat();
    [json!({"names": last}), json!({"namespaces": last}), json!({"excludeNamespaces": hard()})]
}

#[test]
fn names_that_cost_a_whole_budget_hide_nothing_from_a_policy() {
    let stored = longest(memory("redis"));
    let mut labelled = stored.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let update = json!({"operation": "UPDATE", "oldObject": stored});
    let other = json!({"operation": "UPDATE", "oldObject": longest(memory("in-context"))});
    let limit = of_a_budget() * BUDGETS;
    for matching in matched_by_names() {
        for (object, also, refused) in [
            (&pod(0), &json!({}), true),
            (&pod(MAX_VOLUMES + 1), &json!({}), true),
            (&stored, &json!({}), true),
            (&stored, &other, true),
            (&labelled, &update, false),
        ] {
            let (policies, kind) = (unmet(&matching, "deny", 3), &object["kind"]);
            let (admitted, time) = timed(&case(&policies, object, also));
            let findings: Vec<_> = super::of_policies(admitted.decision.findings);
            assert_eq!(findings.iter().any(denies), refused, "{kind} {also}: {:?}", messages(&findings));
            assert_eq!(findings.len(), 3, "{kind} {also}: {:?}", messages(&findings));
            assert!(time <= limit, "{kind} {also}: {time:?} of {limit:?}");
            let cancelled = cancelled(&case(&policies, object, also)).decision;
            assert!(
                cancelled.reason == Reason::Cancelled || refused && cancelled.findings.iter().any(denies)
            );
        }
        for (action, object) in [("warn", pod(0)), ("warn", stored.clone()), ("report", stored.clone())] {
            let admitted = admitted(&case(&unmet(&matching, action, 3), &object, &json!({})));
            let findings = super::of_policies(admitted.expect("can be read").decision.findings);
            assert!(!findings.iter().any(denies), "{:?}", messages(&findings));
        }
        let mut policies = unmet(&matching, "deny", 1);
        policies[0]["spec"]["existing"] = json!("enforce");
        let admitted = admitted(&case(&policies, &labelled, &update)).expect("can be read");
        assert!(admitted.decision.findings.iter().any(denies), "enforce does not look back");
    }
}

/// A pod of ark with a thousand containers that each have an address of their own, which is a memory of its own.
fn pod_of_memories(count: usize) -> Value {
    let container = |number: usize| {
        let value = format!("http://evil.example.com/{number}");
        json!({"name": format!("c{number}"), "image": "a", "env": [{"name": "ARK_MEMORY_URL", "value": value}]})
    };
    let containers: Vec<Value> = (0..count).map(container).collect();
    let mut pod = object("v1", "Pod", &json!({"containers": containers}));
    pod["metadata"]["annotations"] = json!({"memgate.dev/ark-memory": "notes"});
    pod
}

/// Twenty policies of ten rules about hosts, with so many exemptions each that cover other names, and an ark memory.
fn of_hosts(action: &str, exemptions: usize) -> Vec<Value> {
    let address = json!({"address": {"value": "http://good.example.com"}});
    let mut all = vec![object("ark.mckinsey.com/v1alpha1", "Memory", &address)];
    let rules: Vec<Value> = (0..10)
        .map(|it| json!({"id": format!("r{it}"), "roles": ["pod"], "endpoint": {"hosts": ["good.example.com"]}}))
        .collect();
    let ids: Vec<&Value> = rules.iter().map(|rule| &rule["id"]).collect();
    for number in 0..20 {
        let terms = json!({"namespaces": ["ex"], "maxAge": "366d"});
        let spec = json!({"actions": {"admission": action}, "rules": rules, "exemptions": terms});
        all.push(policy(&format!("p{number}"), &spec));
        all.extend((0..exemptions).map(|it| json!({
            "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicyExemption",
            "metadata": {"name": format!("e{number}-{it}"), "namespace": "ex"},
            "spec": {
                "policy": format!("p{number}"), "rules": ids, "reason": "because of reasons",
                "target": {"namespaces": ["team"], "names": [format!("scratch-{it}-*"), "n*-old", "*-tmp"]},
                "from": "2027-01-15T00:00:00Z", "expiresAt": "2027-03-01T00:00:00Z",
            },
        })));
    }
    all
}

#[test]
fn a_thousand_memories_against_rules_and_exemptions() {
    let limit = of_a_budget() * BUDGETS;
    for (action, exemptions, memories) in
        [("deny", 0, 1_000), ("deny", 50, 1_000), ("deny", 50, 1), ("warn", 50, 1_000), ("warn", 50, 1)]
    {
        let case = case(&of_hosts(action, exemptions), &pod_of_memories(memories), &json!({}));
        let (admitted, time) = timed(&case);
        let is_denied = admitted.decision.findings.iter().any(denies);
        assert_eq!(is_denied, action == "deny", "{:?}", messages(&admitted.decision.findings));
        assert!(time <= limit, "{action} {exemptions} {memories}: {time:?} of {limit:?}");
        if memories > 1 {
            assert_eq!(cancelled(&case).decision.reason, Reason::Cancelled);
        }
    }
}

/// Users of very many groups, and words of any length, count too.
#[test]
fn groups_and_words_count() {
    let groups = |start: &str, count: usize| -> Vec<String> {
        (0..count).map(|it| format!("{start}{it:06}")).collect()
    };
    let limit = of_a_budget() * BUDGETS;
    let matching = json!({"excludeGroups": groups("a", 256)});
    let policies = unmet(&matching, "deny", 20);
    let user = json!({"user": {"name": "t", "groups": groups("b", 10_000)}});
    for object in [pod(0), longest(memory("redis"))] {
        let case = case(&policies, &object, &user);
        let (admitted, time) = timed(&case);
        assert!(admitted.decision.findings.iter().any(denies));
        assert!(time <= limit, "{time:?} of {limit:?}");
        assert_eq!(cancelled(&case).decision.reason, Reason::Cancelled);
    }
    let words: Vec<Value> = (0..64)
        .map(|it| json!({"id": format!("r{it}"), "when": {"backends": ["none"]}, "backends": {"deny": ["none"]}}))
        .collect();
    let spec = json!({"actions": {"admission": "deny"}, "rules": words});
    let policies: Vec<Value> = (0..20).map(|number| policy(&format!("p{number}"), &spec)).collect();
    let case = case(&policies, &memory(&"Ä".repeat(500_000)), &json!({}));
    let (admitted, time) = timed(&case);
    assert!(time <= limit, "{time:?} of {limit:?}");
    assert!(super::of_policies(admitted.decision.findings).iter().any(denies));
    assert_eq!(cancelled(&case).decision.reason, Reason::Cancelled);
}
