//! The table of docs/operate.md about the time while memgate is away: it names every kind of every platform, and whether
//! its writes pass or are refused.

#![expect(clippy::indexing_slicing, reason = "a test may panic, and reads JSON by indexing")]

use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::objects::printed;
use crate::support::outage::{Outcomes, Resource, documented};

/// Every rule for creations but those for pods, with its entry.
fn rules(arguments: &[&str]) -> Vec<(Value, Value)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let objects = printed(arguments);
    let entries = objects.values().flat_map(|object| list(&object["webhooks"]));
    let rules =
        entries.flat_map(|entry| list(&entry["rules"]).into_iter().map(move |rule| (entry.clone(), rule)));
    rules
        .filter(|(_, rule)| list(&rule["operations"]).contains(&json!("CREATE")))
        .filter(|(_, rule)| !list(&rule["resources"]).contains(&json!("pods")))
        .collect()
}

fn resources(rule: &Value) -> impl Iterator<Item = String> + '_ {
    rule["resources"].as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned))
}

/// Whether an entry is about a namespace with the label of `policy-strict`, or about one without it.
fn is_about(entry: &Value, is_strict: bool) -> bool {
    let expressions = entry["namespaceSelector"]["matchExpressions"].as_array().into_iter().flatten();
    expressions.filter(|it| it["key"] == "memgate.dev/policy").all(|it| (it["operator"] == "In") == is_strict)
}

/// What the installed entries do.
fn installed() -> BTreeMap<Resource, Outcomes> {
    let mut all = BTreeMap::new();
    for name in memgate_platforms::ALL.map(|family| family.name) {
        let family = format!("--family={name}");
        let rules = rules(&[&family, "--component=policy-strict"]);
        let of_policies = |entry: &Value| entry["name"] == "policies.memgate.dev";
        for (_, rule) in rules.iter().filter(|(entry, _)| !of_policies(entry)) {
            for resource in resources(rule) {
                let outcome = |is_strict| {
                    let mut about = rules.iter().filter(|(entry, _)| is_about(entry, is_strict));
                    let refuses = about.any(|(entry, rule)| {
                        entry["failurePolicy"] == "Fail" && resources(rule).any(|it| it == resource)
                    });
                    if refuses { "refused" } else { "pass" }.to_owned()
                };
                all.insert((name.to_owned(), resource.clone()), [outcome(false), outcome(true)]);
            }
        }
    }
    all
}

#[test]
fn the_table_of_an_outage_is_what_is_installed() {
    assert_eq!(documented(), installed());
}
