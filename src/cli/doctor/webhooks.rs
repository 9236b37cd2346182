//! Whether the webhook configurations are there, and say what `memgate manifests` would print.
//!
//! An entry or a rule that is missing is a failure: nobody is asked. Other differences may be
//! wanted, so they are warnings.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::cli::doctor::check::Check;
use crate::cli::doctor::entry::{Entry, entries, requirements};
use crate::cli::doctor::evidence::Installation;
use crate::deploy::{Plan, webhooks};

const ID: &str = "webhooks";

/// How to get an installation right.
const APPLY: &str = "compare with `memgate manifests --only webhooks`, and apply it";

/// Judges both configurations by what would be installed now.
#[must_use]
pub fn checks(found: &Installation, plan: &Plan) -> Vec<Check> {
    let mutating = found.own_mutating().map(|config| entries(config.webhooks.as_ref()));
    let validating = found.own_validating().map(|config| entries(config.webhooks.as_ref()));
    let expected = (
        entries(webhooks::mutating(plan).webhooks.as_ref()),
        entries(webhooks::validating(plan).webhooks.as_ref()),
    );
    let unknown = |kind: &str, unknown: Option<Check>| {
        unknown.map(|check| Check { subject: subject(found, kind), ..check })
    };
    let (mutators, validators) = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration");
    let mut checks = unknown(mutators, found.mutating.unknown(ID, "")).map_or_else(
        || configuration(&subject(found, mutators), mutating.as_deref(), &expected.0),
        |check| vec![check],
    );
    checks.extend(unknown(validators, found.validating.unknown(ID, "")).map_or_else(
        || configuration(&subject(found, validators), validating.as_deref(), &expected.1),
        |check| vec![check],
    ));
    checks
}

fn subject(found: &Installation, kind: &str) -> String {
    format!("{kind} {}", found.name)
}

fn configuration(subject: &str, live: Option<&[Entry]>, expected: &[Entry]) -> Vec<Check> {
    let Some(live) = live else {
        let message = "there is no such configuration: the apiserver asks memgate about nothing";
        return vec![Check::fail(ID, subject, message).help("memgate manifests | kubectl apply -f -")];
    };
    let mut checks = Vec::new();
    for wanted in expected {
        match live.iter().find(|entry| entry.name == wanted.name) {
            Some(entry) => checks.extend(differences(subject, entry, wanted)),
            None => {
                let message = format!("the entry {} is missing", wanted.name);
                checks.push(Check::fail(ID, subject, message).help(APPLY));
            }
        }
    }
    let known = |entry: &&Entry| expected.iter().any(|wanted| wanted.name == entry.name);
    for entry in live.iter().filter(|entry| !known(entry)) {
        let message =
            format!("the entry {} is none that memgate would install for these families", entry.name);
        checks.push(Check::warn(ID, subject, message).help(APPLY));
    }
    if checks.is_empty() {
        let message = format!("{} entries, as memgate would install them", live.len());
        checks.push(Check::ok(ID, subject, message));
    }
    checks
}

/// What differs between a live entry and the one that would be installed.
fn differences(subject: &str, live: &Entry, wanted: &Entry) -> Vec<Check> {
    let mut checks = Vec::new();
    let name = &live.name;
    let mut warn =
        |what: String| checks.push(Check::warn(ID, subject, format!("{name}: {what}")).help(APPLY));
    if live.fails != wanted.fails {
        let policy = |fails| if fails { "Fail" } else { "Ignore" };
        warn(format!("failurePolicy is {}, not {}", policy(live.fails), policy(wanted.fails)));
    }
    if live.seconds != wanted.seconds {
        warn(format!("timeoutSeconds is {}, not {}", live.seconds, wanted.seconds));
    }
    if live.again != wanted.again {
        warn("reinvocationPolicy is not IfNeeded: what others add afterwards is not seen".to_owned());
    }
    let selectors = [
        ("namespaceSelector", &live.namespaces, &wanted.namespaces),
        ("objectSelector", &live.objects, &wanted.objects),
    ];
    for (field, live, wanted) in selectors {
        selector(field, live, wanted).into_iter().for_each(&mut warn);
    }
    let named = |entry: &Entry| -> BTreeSet<(String, String)> {
        entry.conditions.iter().map(|one| (one.name.clone(), one.expression.clone())).collect()
    };
    for (name, _) in named(wanted).difference(&named(live)) {
        warn(format!("the match condition {name} is missing or has changed"));
    }
    let wanted_names: BTreeSet<&String> = wanted.conditions.iter().map(|one| &one.name).collect();
    for condition in live.conditions.iter().filter(|one| !wanted_names.contains(&one.name)) {
        warn(format!("the match condition {} narrows it", condition.name));
    }
    let missing: Vec<String> = flat(&wanted.rules).difference(&flat(&live.rules)).cloned().collect();
    if !missing.is_empty() {
        let message = format!("{name}: it is not asked about {}", missing.join(", "));
        checks.push(Check::fail(ID, subject, message).help(APPLY));
    }
    checks
}

/// The requirements that are missing, and those that came on top.
fn selector(field: &str, live: &LabelSelector, wanted: &LabelSelector) -> Vec<String> {
    let (live, wanted) = (requirements(live), requirements(wanted));
    let missing = wanted.iter().filter(|one| !live.contains(one)).map(|one| (one, "no longer asks for"));
    let added = live.iter().filter(|one| !wanted.contains(one)).map(|one| (one, "also asks for"));
    let line =
        |(one, what): (&k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement, _)| {
            let values = one.values.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
            let values = if values.is_empty() { values } else { format!(" ({values})") };
            format!("{field} {what} {} {}{values}", one.key, one.operator)
        };
    missing.chain(added).map(line).collect()
}

/// Rules, one operation on one resource each.
fn flat(rules: &[RuleWithOperations]) -> BTreeSet<String> {
    let mut flat = BTreeSet::new();
    let each = |list: &'_ Option<Vec<String>>| list.clone().unwrap_or_default();
    for rule in rules {
        for group in each(&rule.api_groups) {
            for version in each(&rule.api_versions) {
                for resource in each(&rule.resources) {
                    let dot = if group.is_empty() { "" } else { "." };
                    let all = each(&rule.operations);
                    flat.extend(all.iter().map(|one| format!("{one} of {resource}{dot}{group}/{version}")));
                }
            }
        }
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::check::Status;
    use crate::cli::doctor::evidence::{Listed, Seen};
    use crate::cli::manifests::usual_plan;
    use crate::model::settings::Family;

    /// A cluster in which memgate is installed as it prints itself, and then changed.
    fn judged(change: impl FnOnce(&mut Installation)) -> Vec<Check> {
        let plan = usual_plan("memgate-system", &Family::ALL);
        let listed = |items| Seen::Found(Listed { items, cut: false });
        let mut found = Installation {
            name: "memgate".to_owned(),
            mutating: listed(vec![webhooks::mutating(&plan)]),
            validating: Seen::Found(Listed { items: vec![webhooks::validating(&plan)], cut: false }),
            ..Installation::default()
        };
        change(&mut found);
        let mut checks = checks(&found, &plan);
        checks.retain(|check| check.status != Status::Ok);
        checks
    }

    fn first_mutator(
        found: &mut Installation,
    ) -> &mut Vec<k8s_openapi::api::admissionregistration::v1::MutatingWebhook> {
        match &mut found.mutating {
            Seen::Found(listed) => listed.items[0].webhooks.as_mut().expect("webhooks"),
            _ => panic!("it was found"),
        }
    }

    fn only(checks: &[Check]) -> (Status, &str) {
        match checks {
            [one] => (one.status, &one.message),
            other => panic!("{other:#?}"),
        }
    }

    #[test]
    fn what_is_printed_is_complete() {
        assert_eq!(judged(|_| ()), []);
    }

    #[test]
    fn says_what_is_not_there() {
        let checks = judged(|found| found.mutating = Seen::Found(Listed::default()));
        assert_eq!(checks.len(), 1);
        assert!(checks[0].message.starts_with("there is no such configuration"));
        let checks = judged(|found| found.mutating = Seen::Unknown("you may not list".to_owned()));
        assert_eq!(only(&checks), (Status::Unknown, "you may not list"));
    }

    #[test]
    fn says_which_entry_is_missing_or_new() {
        let checks = judged(|found| drop(first_mutator(found).remove(0)));
        assert_eq!(only(&checks), (Status::Fail, "the entry arkonis.pods.memgate.dev is missing"));
        let checks = judged(|found| {
            let webhooks = first_mutator(found);
            let mut other = webhooks[0].clone();
            other.name = "other.memgate.dev".to_owned();
            webhooks.push(other);
        });
        assert_eq!(only(&checks).0, Status::Warn);
        assert!(only(&checks).1.starts_with("the entry other.memgate.dev is none"));
    }

    #[test]
    fn says_what_has_changed() {
        let name = "arkonis.pods.memgate.dev";
        for (change, status, expected) in [
            (
                (|webhook| webhook.failure_policy = Some("Fail".to_owned()))
                    as fn(&mut k8s_openapi::api::admissionregistration::v1::MutatingWebhook),
                Status::Warn,
                "failurePolicy is Fail, not Ignore",
            ),
            (|webhook| webhook.timeout_seconds = Some(30), Status::Warn, "timeoutSeconds is 30, not 2"),
            (
                |webhook| webhook.reinvocation_policy = None,
                Status::Warn,
                "reinvocationPolicy is not IfNeeded: what others add afterwards is not seen",
            ),
            (
                |webhook| webhook.object_selector = None,
                Status::Warn,
                "objectSelector no longer asks for arkonis.dev/deployment Exists",
            ),
            (
                |webhook| drop(webhook.match_conditions.as_mut().expect("conditions").remove(0)),
                Status::Warn,
                "the match condition not-node is missing or has changed",
            ),
            (|webhook| webhook.rules = None, Status::Fail, "it is not asked about CREATE of pods/v1"),
        ] {
            let checks = judged(|found| change(&mut first_mutator(found)[0]));
            let first = checks.first().expect("a difference");
            assert_eq!(
                (first.status, first.message.as_str()),
                (status, format!("{name}: {expected}").as_str())
            );
        }
    }

    #[test]
    fn says_what_narrows_an_entry() {
        let checks = judged(|found| {
            let webhook = &mut first_mutator(found)[0];
            let selector = webhook.namespace_selector.as_mut().expect("a selector");
            selector.match_labels = Some([("team".to_owned(), "a".to_owned())].into());
        });
        let expected = "arkonis.pods.memgate.dev: namespaceSelector also asks for team In (a)";
        assert_eq!(only(&checks), (Status::Warn, expected));
    }
}
