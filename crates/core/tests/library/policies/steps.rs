//! How many steps a rule takes for a view with many of everything: counted, not measured, so that the machine does not
//! matter. They grow in a line.

use memgate_core::state;
use memgate_model::memory_view::MemoryView;
use memgate_model::typed_rule::{JudgedView, NamespaceLabels, RuleOutcome};
use memgate_primitives::budget::{Budget, MAX_ENTRIES, MAX_STEPS, MAX_VARIABLES};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::views::view;
use super::{admitted, case, denies, denying, memory, messages, object, of_policies, reported};

/// The view of an object of this family, in a state without other objects.
fn view_of(family: &str, object: &Value) -> MemoryView {
    let family = memgate_platforms::find(family).expect("a family");
    let (view, _) = view(family, object, "team", &state::empty(memgate_platforms::default_settings()));
    view.expect("a view")
}

/// How many steps the rule takes for a view, and what it finds; `None` where that is more than a decision may take.
fn steps(rule: &Value, view: &MemoryView) -> Option<(usize, RuleOutcome)> {
    let mut rule = rule.clone();
    rule["id"] = json!("it");
    let (policy, faults) = memgate_policy::read::policy(&denying(&json!([rule])), &memgate_platforms::ALL);
    assert!(faults.is_empty(), "{:?}", messages(&faults));
    let check = &policy.rules.first().expect("a rule").check;
    let outcome = |most: usize| {
        let (budget, labels) = (Budget::of_steps(most), BTreeMap::new());
        let (namespace_labels, tables) = (NamespaceLabels { name: "team", labels: Some(&labels) }, &[]);
        let judged = JudgedView {
            view,
            user: None,
            tables,
            old: None,
            namespace_labels,
            budget: &budget,
            subject_namespace: "team",
            labels: &labels,
            sent: None,
        };
        let mut outcome = RuleOutcome::default();
        check.judge(&judged, &mut outcome);
        (!budget.has_ended()).then_some(outcome)
    };
    let (mut low, mut high) = (0, usize::try_from(MAX_STEPS).expect("a number"));
    let found = outcome(high)?;
    while low < high {
        let middle = usize::midpoint(low, high);
        if outcome(middle).is_some() { high = middle } else { low = middle + 1 }
    }
    Some((high, found))
}

/// That the steps for a quarter of so many, a half and all of them grow in a line.
fn expect_linear(what: &str, most: usize, make: impl Fn(usize) -> (Value, MemoryView)) {
    let counts = [most / 4, most / 2, most].map(|count| {
        let (rule, view) = make(count);
        let counted = steps(&rule, &view).map(|(steps, _)| steps);
        assert!(counted.is_some_and(|steps| steps > 0), "{what}: {count} take {counted:?}");
        counted.unwrap_or_default()
    });
    // Whatever the first quarter costs, the second half costs at most twice what the second quarter does.
    let [quarter, half, all] = counts;
    assert!(all - half <= 2 * (half - quarter) + all / 100 + 8, "{what}: {counts:?}");
}

fn secrets(count: usize) -> MemoryView {
    let header = |number: usize| {
        let secret = json!({"name": format!("s{number:05}"), "key": "k"});
        json!({"name": "Cookie", "value": {"valueFrom": {"secretKeyRef": secret}}})
    };
    let headers: Vec<Value> = (0..count).map(header).collect();
    let address = json!({"value": "http://memory.team.svc"});
    view_of(
        "ark",
        &object("ark.mckinsey.com/v1alpha1", "Memory", &json!({"address": address, "headers": headers})),
    )
}

/// Patterns that a name does not fit, with this at the end of each.
fn patterns_with(count: usize, end: &str) -> Vec<String> {
    (0..count).map(|number| format!("{{tenant}}*{}{number:03}{end}", "a".repeat(100))).collect()
}

fn patterns(count: usize) -> Vec<String> {
    patterns_with(count, "")
}

#[test]
fn patterns_of_tenants_against_names_collections_and_secrets() {
    let tenancy =
        |field: &str, count| json!({"tenancy": {"from": {"namespace": true}, (field): patterns(count)}});
    let named = |name: String| MemoryView { name, ..view_of("arkonis", &memory("redis")) };
    expect_linear("names", 256, |count| (tenancy("names", count), named(format!("team{}", "a".repeat(249)))));
    expect_linear("long names", 40_000, |count| {
        (tenancy("names", 16), named(format!("team{}", "a".repeat(count))))
    });
    expect_linear("collections", 256, |count| {
        let store = json!({"provider": "qdrant", "endpoint": "http://q", "collection": format!("team{}", "a".repeat(2_000))});
        let mut memory = memory("vector-store");
        memory["spec"]["vectorStore"] = store;
        (tenancy("collection", count), view_of("arkonis", &memory))
    });
    expect_linear("Secrets", 2_000, |count| (tenancy("secrets", 4), secrets(count)));
    expect_linear("patterns of Secrets", 256, |count| (tenancy("secrets", count), secrets(20)));
    // Names that differ at once from each pattern cost little, and the longest list for very many Secrets ends.
    assert!(steps(&tenancy("secrets", 256), &secrets(MAX_ENTRIES)).is_some());
    // Names that have to be followed to their end cost as much as that takes.
    let followed = |field: &str, count| json!({"tenancy": {"from": {"namespace": true}, (field): patterns_with(count, "*")}});
    let long = || named(format!("team{}", "a".repeat(249)));
    expect_linear("followed names", 256, |count| (followed("names", count), long()));
    let long_secrets = |count: usize| {
        let mut view = secrets(count);
        for secret in &mut view.secrets {
            secret.name = format!("team{}", "a".repeat(249));
        }
        view
    };
    assert!(steps(&followed("secrets", 256), &long_secrets(MAX_ENTRIES)).is_none());
}

/// Of ten thousand annotations those that the rule names are looked up, each in a step.
#[test]
fn annotations_are_looked_up() {
    let annotated = |count: usize| {
        let all = (0..count).map(|number| (format!("example.dev/{number:05}"), number.to_string()));
        MemoryView { annotations: Arc::new(all.collect()), ..view_of("arkonis", &memory("redis")) }
    };
    for condition in [("exists", json!(true)), ("matches", json!(["7*"])), ("in", json!(["none"]))] {
        let (name, value) = condition;
        let entry =
            |number: usize| json!({"path": format!("annotations[\"example.dev/{number:05}\"]"), name: value});
        let rule = |count: usize| json!({"fields": (0..count).map(entry).collect::<Vec<_>>()});
        let counted = |count| steps(&rule(10), &annotated(count)).expect("few steps");
        let ((few, of_few), (many, of_many)) = (counted(10), counted(MAX_ENTRIES));
        assert_eq!((few, of_few), (many, of_many), "{name}");
        expect_linear(name, 256, |count| (rule(count), annotated(MAX_ENTRIES)));
    }
    // The same through a decision, from the object.
    let mut memory = memory("in-context");
    let all = (0..MAX_ENTRIES).map(|number| (format!("example.dev/{number:05}"), number.to_string().into()));
    memory["metadata"]["annotations"] = Value::Object(all.collect());
    let entry = |key: &str| json!({"path": format!("annotations[\"example.dev/{key}\"]"), "exists": true});
    let rules = json!([{"id": "it", "fields": [entry("00000"), entry("09999"), entry("none")]}]);
    let found = reported(&[denying(&rules)], &memory);
    let [finding] = found.as_slice() else { panic!("{:?}", messages(&found)) };
    assert!(
        finding.message().contains("annotations[\"example.dev/none\"] is required"),
        "{}",
        finding.message()
    );
}

/// Each memory has one model, however long its name is.
#[test]
fn the_name_of_a_model() {
    let with_model = |length: usize| {
        let store = json!({"provider": "qdrant", "endpoint": "http://q", "collection": "c"});
        let embedding = json!({"model": "a".repeat(length), "provider": "openai"});
        let spec = json!({"backend": "vector-store", "vectorStore": store, "embedding": embedding});
        view_of("arkonis", &object("kubeswarm.io/v1alpha1", "SwarmMemory", &spec))
    };
    let hard: Vec<String> = (0..256).map(|number| format!("*{}{number:03}*", "a".repeat(125))).collect();
    for (condition, value, longest) in [
        ("in", json!(hard), 40_000),
        ("notIn", json!(hard), 40_000),
        ("equals", json!("none"), 40_000),
        ("matches", json!(["a*b*", "*b*"]), 40_000),
        ("matches", json!(&hard[..1]), 4_000),
        ("notMatches", json!(&hard[..1]), 4_000),
    ] {
        let rule = json!({"fields": [{"path": "embedding.model", condition: value}]});
        expect_linear(condition, longest, |length| (rule.clone(), with_model(length)));
    }
    let rule = |count: usize| json!({"fields": [{"path": "embedding.model", "matches": &hard[..count]}]});
    expect_linear("patterns", 64, |count| (rule(count), with_model(200)));
    assert!(steps(&rule(256), &with_model(1 << 20)).is_none(), "more than a decision may take");
}

/// A pod with as many variables as are read: the one behind all others is found, and with one more the pod is refused.
#[test]
fn twenty_eight_thousand_variables() {
    let kb = json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory", "metadata": {"name": "kb", "namespace": "team"},
        "spec": {"address": {"value": "http://kb"}},
    });
    let rules = json!([{"id": "it", "environment": {"overrides": "forbid"}}]);
    let state = [kb, denying(&rules)];
    let pod = |count: usize, name: &dyn Fn(usize) -> String| {
        let own = json!({"name": "ARK_MEMORY_URL", "value": "http://elsewhere"});
        let env = (1..count).map(|number| json!({"name": name(number), "value": "x"})).chain([own]);
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "team", "annotations": {"memgate.dev/ark-memory": "kb"}},
            "spec": {"containers": [{"name": "agent", "image": "a", "env": env.collect::<Vec<_>>()}]},
        })
    };
    let others: [(&str, &dyn Fn(usize) -> String); 4] = [
        ("unique", &|number| format!("V{number}")),
        ("equal", &|_| "V".to_owned()),
        ("of the memory", &|_| "ARK_MEMORY_URL".to_owned()),
        ("headers that it leaves out", &|number| format!("ARK_MEMORY_HEADER_{number}")),
    ];
    for (what, name) in others {
        // Of very many findings the last one is counted, and not reported.
        let own = if what.starts_with("headers") { "ARK_MEMORY_HEADER_" } else { "ARK_MEMORY_URL is set" };
        for (count, words) in
            [(MAX_VARIABLES, own), (MAX_VARIABLES + 1, "cannot be judged: the pod is too large")]
        {
            let admitted = admitted(&case(&state, &pod(count, name), &json!({}))).expect("can be read");
            let found = of_policies(admitted.decision.findings);
            let said = messages(&found);
            assert!(said.iter().any(|said| said.contains(words)), "{what} {count}: {said:?}");
            assert!(found.iter().any(denies), "{what} {count}: {said:?}");
        }
    }
}
