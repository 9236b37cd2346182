//! The generic rules `fields` and `anyOf`: which conditions fit which paths, what they cost, that they agree with typed
//! rules, and that nothing secret is in what they say.

use memgate_model::finding::{Finding, Severity};
use memgate_model::memory_view::{Holds, MemoryView, Role, SecretView, ViewPath};
use memgate_model::typed_rule::{JudgedView, NamespaceLabels, RuleOutcome};
use memgate_primitives::budget::{BYTES_PER_STEP, Budget, MAX_STEPS, MIN_STEPS_PER_FINDING};
use memgate_primitives::pointer::Pointer;
use serde_json::{Value, json};

use super::{
    admitted, case, data, denies, denying, faults, memory, messages, object, of_policies, policy, reported,
};

/// A policy of one rule.
fn of_rule(rule: &Value) -> Value {
    let mut rule = rule.clone();
    rule["id"] = json!("it");
    denying(&json!([rule]))
}

fn of_fields(entries: &Value) -> Value {
    of_rule(&json!({"fields": entries}))
}

fn paths() -> Vec<ViewPath> {
    ViewPath::all(memgate_platforms::ALL.into_iter().filter_map(|family| family.views.own_namespace_path))
}

/// A value that fits each condition for what a path holds; `None` where the condition does not fit.
fn fitting(holds: Holds, condition: &str) -> Option<Value> {
    let is_text = matches!(holds, Holds::Text | Holds::Texts);
    let number = match holds {
        Holds::Integer => Some(json!(7)),
        Holds::Quantity => Some(json!("7Gi")),
        _ => None,
    };
    match condition {
        "in" | "notIn" => is_text.then(|| json!(["a"])).or_else(|| number.map(|number| json!([number]))),
        "matches" | "notMatches" => is_text.then(|| json!(["a*"])),
        "min" | "max" => number,
        "equals" => {
            is_text.then(|| json!("a")).or(number).or_else(|| (holds == Holds::Flag).then(|| json!(true)))
        }
        _ => Some(json!(true)),
    }
}

const CONDITIONS: [&str; 8] = ["in", "notIn", "matches", "notMatches", "min", "max", "equals", "exists"];

/// Every condition on every path: taken where it fits, and else refused with what there is.
#[test]
fn each_condition_on_each_path_fits_or_is_refused() {
    let mut wrong = Vec::new();
    for path in paths() {
        for condition in CONDITIONS {
            let fits = fitting(path.holds, condition);
            let value = fits.clone().or_else(|| {
                [Holds::Text, Holds::Integer].into_iter().find_map(|holds| fitting(holds, condition))
            });
            let found = faults(&of_fields(&json!([{"path": path.path, condition: value}])));
            let refused = found.iter().any(|it| it.message().contains("; use "));
            if fits.is_some() != found.is_empty() || fits.is_none() && !refused {
                wrong.push(format!("{} {condition}: {:?}", path.path, messages(&found)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A memory with so many Secrets, whose names have so many characters.
fn of_secrets(count: usize, chars: usize) -> MemoryView {
    let secret = |number: usize| SecretView {
        name: format!("{number:0>chars$}"),
        namespace: "team".to_owned(),
        key: None,
        field: Pointer::new("/spec/headers").index(number).key("name"),
        origin: None,
    };
    let secrets = (0..count).map(secret).collect();
    MemoryView { secrets, ..MemoryView::new("ark", Role::Memory, "Memory", "team", "notes") }
}

/// The steps that judging a view by the rules of a policy counts, with the number of violations.
fn judged(manifest: &Value, view: &MemoryView) -> (usize, usize) {
    let (policy, faults) = memgate_policy::read::policy(manifest, &memgate_platforms::ALL);
    assert!(faults.is_empty(), "{:?}", messages(&faults));
    let (budget, mut outcome) = (Budget::default(), RuleOutcome::default());
    let namespace_labels = NamespaceLabels { name: "team", labels: None };
    let judged = JudgedView {
        view,
        user: None,
        tables: &[],
        old: None,
        namespace_labels,
        budget: &budget,
        subject_namespace: "team",
        sent: None,
        labels: &view.labels,
    };
    for rule in &policy.rules {
        rule.check.judge(&judged, &mut outcome);
    }
    let left = (0..=MAX_STEPS).take_while(|_| budget.step()).count();
    (MAX_STEPS as usize - left, outcome.violations.len())
}

/// As many entries on names of Secrets as a rule is to have, with one condition.
fn entries(count: usize, condition: &str, value: &Value) -> Value {
    json!(vec![json!({"path": "secrets[].name", condition: value}); count])
}

/// What a rule counts grows with the elements, with its entries, and with its patterns; a list of exact values costs as
/// much as one value.
#[test]
fn ten_thousand_elements_are_charged() {
    let names = |count: usize| json!((0..count).map(|it| format!("none{it}")).collect::<Vec<_>>());
    let patterns = |count: usize| json!((0..count).map(|it| format!("*x{it:03}*")).collect::<Vec<_>>());
    let steps = |rule: &Value, secrets: usize| judged(&of_fields(rule), &of_secrets(secrets, 20)).0;
    for (condition, of) in [("notIn", &names as &dyn Fn(usize) -> Value), ("notMatches", &patterns)] {
        let one = steps(&entries(1, condition, &of(1)), 1_000);
        assert!(one >= 1_000 / 2, "{condition}: {one}");
        let ten_thousand = steps(&entries(1, condition, &of(1)), 10_000);
        assert!(ten_thousand.abs_diff(one * 10) <= 20, "{condition}: {ten_thousand} and {one}");
        let entries_of = steps(&entries(10, condition, &of(1)), 1_000);
        assert!(entries_of.abs_diff(one * 10) <= 20, "{condition}: {entries_of} and {one}");
        let values = steps(&entries(1, condition, &of(100)), 1_000);
        let expected = if condition == "notIn" { one..=one } else { one * 25..=one * 100 };
        assert!(expected.contains(&values), "{condition}: {values} and {one}");
    }
    // The whole rule on the whole object is more than one part of a decision counts.
    for (condition, value) in
        [("in", names(256)), ("notIn", names(256)), ("matches", patterns(256)), ("notMatches", patterns(256))]
    {
        let (steps, violations) =
            judged(&of_fields(&entries(256, condition, &value)), &of_secrets(10_000, 20));
        assert_eq!(steps, MAX_STEPS as usize, "{condition}");
        assert!(violations <= 10_000 + MAX_STEPS as usize / MIN_STEPS_PER_FINDING as usize, "{violations}");
    }
}

/// The longest patterns on the longest names end with the budget, whichever rule they are in.
#[test]
fn the_longest_patterns_are_charged() {
    let hard: Vec<String> = (0..32).map(|it| format!("*{}x{it:03}*", "0".repeat(125))).collect();
    let (few, many) = (of_secrets(10, 253), of_secrets(10_000, 253));
    for condition in ["matches", "notMatches"] {
        let one = judged(&of_fields(&entries(1, condition, &json!(hard[..1]))), &few).0;
        // From each of 128 characters on, 125 of them fit.
        assert!(one >= 10 * 128 * 125 / BYTES_PER_STEP, "{condition}: {one}");
        let all = judged(&of_fields(&entries(1, condition, &json!(hard[..8]))), &few).0;
        assert!(all.abs_diff(one * 8) <= one, "{condition}: {all} and {one}");
        let fields = json!({"fields": entries(1, condition, &json!(hard))});
        let rule = |number: usize| json!({"id": format!("r{number}"), "anyOf": vec![&fields; 8]});
        let large = denying(&json!((0..64).map(rule).collect::<Vec<_>>()));
        assert_eq!(judged(&large, &many), (MAX_STEPS as usize, 0), "{condition}");
    }
}

/// 64 rules of eight alternatives about ten thousand elements: each alternative counts, and each of its violations.
#[test]
fn alternatives_are_charged() {
    let fields = |name: &str| json!({"fields": entries(1, "in", &json!([name]))});
    let rule = |number: usize, alternatives: usize| {
        let all: Vec<Value> = (0..alternatives).map(|it| fields(&format!("none{it}"))).collect();
        json!({"id": format!("r{number}"), "anyOf": all})
    };
    let policy = |rules: usize, alternatives: usize| {
        denying(&json!((0..rules).map(|it| rule(it, alternatives)).collect::<Vec<_>>()))
    };
    let (two, found) = judged(&policy(1, 2), &of_secrets(1_000, 20));
    assert_eq!(found, 1);
    let (eight, _) = judged(&policy(1, 8), &of_secrets(1_000, 20));
    assert!(eight.abs_diff(two * 4) <= 20, "{eight} and {two}");
    let (four, found) = judged(&policy(4, 8), &of_secrets(1_000, 20));
    assert!(four.abs_diff(eight * 4) <= 20 && found == 4, "{four} and {eight}");
    let (all, found) = judged(&policy(64, 8), &of_secrets(10_000, 20));
    assert_eq!(all, MAX_STEPS as usize);
    assert!(found < 64, "{found}");
}

/// What is too large to be judged is refused by what denies, and nothing of it passes.
#[test]
fn what_is_too_large_to_judge_is_refused() {
    let header = |number: usize| {
        let secret = json!({"name": format!("s{number}"), "key": "k"});
        json!({"name": "Cookie", "value": {"valueFrom": {"secretKeyRef": secret}}})
    };
    let headers: Vec<Value> = (0..10_000).map(header).collect();
    let address = json!({"value": "http://memory.team.svc"});
    let memory =
        object("ark.mckinsey.com/v1alpha1", "Memory", &json!({"address": address, "headers": headers}));
    for (count, condition, value, message) in [
        (1, "matches", json!(["none-*"]), "must match none-*"),
        (256, "notIn", json!(["none"]), "the object is too large"),
    ] {
        let policies = [of_fields(&entries(count, condition, &value))];
        let admitted = admitted(&case(&policies, &memory, &json!({}))).expect("can be read");
        let findings = of_policies(admitted.decision.findings);
        let says = |it: &Finding| denies(it) && it.message().contains(message);
        assert!(!findings.is_empty() && findings.iter().all(says), "{:?}", messages(&findings));
    }
}

#[test]
fn a_policy_as_large_as_it_may_be_is_read_and_judged() {
    let entry = |number: usize| json!({"path": "collection", "matches": [format!("*{}{number:03}*", "a".repeat(125)), "*"]});
    let entries: Vec<Value> = (0..256).map(entry).collect();
    let alternatives: Vec<Value> = (0..8).map(|_| json!({"fields": &entries[..32]})).collect();
    let rules: Vec<Value> =
        (0..64).map(|number| json!({"id": format!("r{number}"), "anyOf": alternatives})).collect();
    let large = denying(&json!(rules));
    assert!(faults(&large).is_empty(), "{:?}", messages(&faults(&large)));
    assert!(faults(&of_fields(&json!(entries))).is_empty());
    let store =
        json!({"provider": "qdrant", "endpoint": "http://q.team.svc", "collection": "a".repeat(100_000)});
    let memory = object(
        "arkonis.dev/v1alpha1",
        "ArkMemory",
        &json!({"backend": "vector-store", "vectorStore": store}),
    );
    let admitted = admitted(&case(&[large], &memory, &json!({}))).expect("can be read");
    assert!(admitted.decision.findings.len() <= 100);
}

/// What is at the places of secrets is in no message, whichever path and condition a rule names.
#[test]
fn no_credential_is_shown() {
    const MARKER: &str = "hunter2swordfish";
    let store = json!({
        "provider": "qdrant", "endpoint": format!("http://user:{MARKER}@q.example.com:6333/db?api_key={MARKER}"),
        "collection": "notes", "secretRef": {"name": "s"},
    });
    let arkonis = object(
        "arkonis.dev/v1alpha1",
        "ArkMemory",
        &json!({"backend": "vector-store", "vectorStore": store}),
    );
    let headers = json!([{"name": "Authorization", "value": {"value": MARKER}}]);
    let address = json!({"value": format!("https://{MARKER}:{MARKER}@memory.team.svc")});
    let ark = object("ark.mckinsey.com/v1alpha1", "Memory", &json!({"address": address, "headers": headers}));
    for memory in [arkonis, ark] {
        for path in paths() {
            for (condition, value) in [
                ("exists", Some(json!(false))),
                ("notMatches", fitting(path.holds, "matches").map(|_| json!(["*"]))),
                ("in", fitting(path.holds, "in")),
                ("equals", fitting(path.holds, "equals")),
                ("min", fitting(path.holds, "min")),
            ] {
                let Some(value) = value else { continue };
                let entry = json!({"path": path.path, condition: value});
                for rule in [
                    json!({"fields": [entry]}),
                    json!({"anyOf": [{"fields": [entry]}, {"labels": {"required": ["x"]}}]}),
                ] {
                    let findings = reported(&[of_rule(&rule)], &memory);
                    let said = messages(&findings).join("\n");
                    assert!(!said.contains(MARKER), "{rule}: {said}");
                }
            }
        }
    }
}

/// A typed rule and the conditions that say the same fire at the same places, and know the same stored violations.
#[test]
fn a_typed_rule_and_the_same_conditions_agree() {
    let redis = |entries: u32| {
        let mut memory = memory("redis");
        let secret = json!({"name": format!("s{entries}")});
        memory["spec"]["redis"] =
            json!({"secretRef": secret, "maxEntries": entries, "ttlSeconds": entries * 60});
        memory
    };
    let store = |provider: &str| {
        let mut memory = memory("vector-store");
        let endpoint = format!("https://user:{provider}-password@q.example.com:6333");
        memory["spec"]["vectorStore"] =
            json!({"provider": provider, "endpoint": endpoint, "collection": "notes", "ttlSeconds": 60});
        memory
    };
    let objects = [memory("in-context"), redis(5), redis(50), store("qdrant"), store("weaviate")];
    let mut fired = 0;
    for twin in data("twins").as_array().expect("a list") {
        let (typed, entries) = (&twin["typed"], &twin["fields"]);
        for object in &objects {
            let updates = objects.iter().map(|old| json!({"operation": "UPDATE", "oldObject": old}));
            for also in updates.chain([json!({})]) {
                let found = |rule: &Value| -> Vec<(Pointer, Severity)> {
                    let admitted = admitted(&case(&[of_rule(rule)], object, &also)).expect("can be read");
                    let findings = of_policies(admitted.decision.findings).into_iter();
                    findings.map(|it| (it.pointer, it.severity)).collect()
                };
                let by_type = found(typed);
                assert_eq!(by_type, found(&json!({"fields": entries})), "{typed} {object} {also}");
                fired += by_type.len();
            }
        }
    }
    assert!(fired > 100, "{fired}");
}

/// The roles of a rule without `roles`.
#[test]
fn a_rule_judges_the_roles_of_its_paths() {
    let judged = |rule: Value| {
        let manifest = policy("org", &json!({"rules": [rule]}));
        let (policy, faults) = memgate_policy::read::policy(&manifest, &memgate_platforms::ALL);
        assert!(faults.is_empty(), "{faults:?}");
        policy.rules[0].roles.clone()
    };
    let of_fields = |paths: &[&str]| {
        let entries: Vec<Value> = paths.iter().map(|path| json!({"path": path, "exists": true})).collect();
        judged(json!({"id": "a", "fields": entries}))
    };
    assert_eq!(of_fields(&["backend"]), [Role::Memory]);
    assert_eq!(of_fields(&["name", "labels[\"a\"]"]), [Role::Memory]);
    assert_eq!(of_fields(&["secrets[].name"]), [Role::Memory]);
    assert_eq!(of_fields(&["operations"]), [Role::Referrer]);
    assert_eq!(of_fields(&["operations", "backend"]), [Role::Referrer]);
    assert_eq!(of_fields(&["containers[].tag"]), [Role::Memory, Role::Pod]);
    let any_of = |one: Value, two: Value| judged(json!({"id": "a", "anyOf": [one, two]}));
    let (backends, labels) = (json!({"backends": {"durable": true}}), json!({"labels": {"required": ["a"]}}));
    assert_eq!(any_of(backends.clone(), labels.clone()), [Role::Memory]);
    assert_eq!(any_of(json!({"limits": {"required": ["cpu"]}}), backends), [Role::Pod]);
    assert_eq!(any_of(labels.clone(), labels), Role::ALL);
}
