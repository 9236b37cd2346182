//! The table of docs/operate.md about the time while memgate is away: it names every kind of every platform, and whether
//! its writes pass or are refused.

#![expect(clippy::indexing_slicing, reason = "a test may panic, and reads JSON by indexing")]

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::objects::printed;

/// A platform and a resource, such as `arkmemories`.
type Resource = (String, String);
/// What becomes of a write: in a normal namespace, and in one that `policy-strict` knows.
type Outcomes = [String; 2];

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

/// A kind as rules name it.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') && !kind.ends_with("settings") => format!("{kind}es"),
        None if kind.ends_with("settings") => kind,
        None => format!("{kind}s"),
    }
}

/// The rows of the table that begin with the name of a platform.
fn documented(page: &str) -> BTreeMap<Resource, Outcomes> {
    let names: BTreeSet<&str> = memgate_platforms::ALL.iter().map(|family| family.name).collect();
    let mut all = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Some((name, kinds)) = cells[0].split_once(": ").filter(|(name, _)| names.contains(name)) else {
            continue;
        };
        let outcomes = [1, 2].map(|at| (*cells.get(at).expect("three cells")).to_owned());
        for kind in kinds.split(", ") {
            let known = all.insert((name.to_owned(), plural(kind)), outcomes.clone());
            assert_eq!(known, None, "{name}: {kind} is in two rows");
        }
    }
    all
}

#[test]
fn the_table_of_an_outage_is_what_is_installed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operate.md");
    let page = fs::read_to_string(page).expect("the page");
    assert_eq!(documented(&page), installed());
}
