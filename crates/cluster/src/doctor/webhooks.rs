//! Whether the webhook configurations exist, and equal the output of `memgate manifests`.
//!
//! An entry or a rule that is missing is a failure, since memgate is not called. Other differences may
//! be wanted, so they are warnings.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::cluster_state::Installation;
use crate::doctor::check::{Check, unreadable};
use crate::webhook_entry::{WebhookEntry, entries, requirements};
use memgate_install::objects::Objects;

const ID: &str = "webhooks";

/// How to correct an installation.
const APPLY: &str = "compare with `memgate manifests --only webhooks`, and apply it";

/// The differences of both configurations from those that would be installed now.
pub fn checks(found: &Installation, wanted: &Objects) -> Vec<Check> {
    let both = found.configurations().into_iter().zip([&wanted.mutating, &wanted.validating]);
    let checks = both.flat_map(|((call, listed), wanted)| {
        let subject = found.own_title(call);
        match unreadable(listed, ID, &subject) {
            Some(unknown) => vec![unknown],
            None => configuration(&subject, found.own_entries(call).as_deref(), &entries(wanted)),
        }
    });
    checks.collect()
}

fn configuration(subject: &str, live: Option<&[WebhookEntry]>, expected: &[WebhookEntry]) -> Vec<Check> {
    let Some(live) = live else {
        let message = "there is no such configuration: the apiserver asks memgate about nothing";
        return vec![Check::fail(ID, subject, message).help(
            "memgate manifests --only webhooks | kubectl apply -f -, with the flags of the installation",
        )];
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
    let known = |entry: &&WebhookEntry| expected.iter().any(|wanted| wanted.name == entry.name);
    for entry in live.iter().filter(|entry| !known(entry)) {
        let message =
            format!("the entry {} is not one that memgate would install for these platforms", entry.name);
        checks.push(Check::warn(ID, subject, message).help(APPLY));
    }
    if checks.is_empty() {
        let message = format!("{} entries, as memgate would install them", live.len());
        checks.push(Check::ok(ID, subject, message));
    }
    checks
}

/// What differs between a live entry and the one that would be installed.
fn differences(subject: &str, live: &WebhookEntry, wanted: &WebhookEntry) -> Vec<Check> {
    let mut checks = Vec::new();
    let subject = format!("{subject}, entry {}", live.name);
    let mut warn = |what: String| checks.push(Check::warn(ID, &subject, what).help(APPLY));
    let fields = |entry: &WebhookEntry| {
        [
            ("failurePolicy", if entry.fails_closed { "Fail" } else { "Ignore" }.to_owned()),
            ("timeoutSeconds", entry.timeout_seconds.to_string()),
            ("reinvocationPolicy", if entry.is_reinvoked { "IfNeeded" } else { "Never" }.to_owned()),
        ]
    };
    for ((field, live), (_, wanted)) in fields(live).into_iter().zip(fields(wanted)) {
        if live != wanted {
            warn(format!("{field} is {live}, not {wanted}"));
        }
    }
    let selectors = [
        ("namespaceSelector", &live.namespace_selector, &wanted.namespace_selector),
        ("objectSelector", &live.object_selector, &wanted.object_selector),
    ];
    for (field, live, wanted) in selectors {
        selector(field, live, wanted).into_iter().for_each(&mut warn);
    }
    let missing = wanted.match_conditions.iter().filter(|one| !live.match_conditions.contains(one));
    missing.for_each(|one| warn(format!("the match condition {} is missing or has changed", one.name)));
    let is_known = |name: &str| wanted.match_conditions.iter().any(|one| one.name == name);
    let added = live.match_conditions.iter().filter(|one| !is_known(&one.name));
    added.for_each(|one| warn(format!("the match condition {} narrows it", one.name)));
    let unasked: Vec<String> = flat(&wanted.rules).difference(&flat(&live.rules)).cloned().collect();
    if !unasked.is_empty() {
        let message = format!("it is not asked about {}", unasked.join(", "));
        checks.push(Check::fail(ID, &subject, message).help(APPLY));
    }
    checks
}

/// The missing requirements, then the added ones.
fn selector(field: &str, live: &LabelSelector, wanted: &LabelSelector) -> Vec<String> {
    let (live, wanted) = (requirements(live), requirements(wanted));
    let missing = wanted.iter().filter(|one| !live.contains(one)).map(|one| (one, "no longer asks for"));
    let added = live.iter().filter(|one| !wanted.contains(one)).map(|one| (one, "also asks for"));
    let describe = |(one, what): (&LabelSelectorRequirement, &str)| {
        let values = one.values.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
        let values = if values.is_empty() { values } else { format!(" ({values})") };
        format!("{field} {what} {} {}{values}", one.key, one.operator)
    };
    missing.chain(added).map(describe).collect()
}

/// The rules as texts, one operation on one resource each.
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
    use k8s_openapi::api::admissionregistration::v1::MutatingWebhook;

    use super::*;
    use crate::cluster_state::Fetched;
    use crate::doctor::check::CheckStatus;
    use crate::doctor::inferred::tests::installed;

    /// A cluster in which memgate is installed as it prints itself, and then changed.
    fn checks_of(change: impl FnOnce(&mut Installation)) -> Vec<Check> {
        let wanted = installed(&memgate_platforms::ALL);
        let mut found = Installation {
            name: "memgate".to_owned(),
            mutating: Fetched::Found(vec![wanted.mutating.clone()]),
            validating: Fetched::Found(vec![wanted.validating.clone()]),
            ..Installation::default()
        };
        change(&mut found);
        let mut checks = checks(&found, &wanted);
        checks.retain(|check| check.status != CheckStatus::Ok);
        checks
    }

    fn first_mutator(found: &mut Installation) -> &mut Vec<MutatingWebhook> {
        match &mut found.mutating {
            Fetched::Found(listed) => {
                let webhooks = listed[0].webhooks.as_mut().expect("webhooks");
                // Those of families stand behind those that every installation has.
                let first = webhooks.iter().position(|webhook| webhook.name.starts_with("arkonis."));
                webhooks.rotate_left(first.expect("an entry"));
                webhooks
            }
            _ => panic!("it was found"),
        }
    }

    fn only(checks: &[Check]) -> (CheckStatus, &str) {
        match checks {
            [one] => (one.status, &one.message),
            other => panic!("{other:#?}"),
        }
    }

    #[test]
    fn what_is_printed_is_complete() {
        assert_eq!(checks_of(|_| ()), []);
    }

    #[test]
    fn says_what_is_not_there() {
        let checks = checks_of(|found| found.mutating = Fetched::Found(Vec::new()));
        assert_eq!(checks.len(), 1);
        assert!(checks[0].message.starts_with("there is no such configuration"));
        let checks = checks_of(|found| found.mutating = Fetched::Unknown("you may not list".to_owned()));
        assert_eq!(only(&checks), (CheckStatus::Unknown, "you may not list"));
    }

    #[test]
    fn says_which_entry_is_missing_or_new() {
        let checks = checks_of(|found| drop(first_mutator(found).remove(0)));
        assert_eq!(only(&checks), (CheckStatus::Fail, "the entry arkonis.pods.memgate.dev is missing"));
        let checks = checks_of(|found| {
            let webhooks = first_mutator(found);
            let mut other = webhooks[0].clone();
            other.name = "other.memgate.dev".to_owned();
            webhooks.push(other);
        });
        assert_eq!(only(&checks).0, CheckStatus::Warn);
        assert!(only(&checks).1.starts_with("the entry other.memgate.dev is not one"));
    }

    #[test]
    fn says_what_has_changed() {
        let subject = "MutatingWebhookConfiguration memgate, entry arkonis.pods.memgate.dev";
        for (change, status, expected) in [
            (
                (|webhook| webhook.failure_policy = Some("Fail".to_owned())) as fn(&mut MutatingWebhook),
                CheckStatus::Warn,
                "failurePolicy is Fail, not Ignore",
            ),
            (|webhook| webhook.timeout_seconds = Some(30), CheckStatus::Warn, "timeoutSeconds is 30, not 2"),
            (
                |webhook| webhook.reinvocation_policy = None,
                CheckStatus::Warn,
                "reinvocationPolicy is Never, not IfNeeded",
            ),
            (
                |webhook| webhook.object_selector = None,
                CheckStatus::Warn,
                "objectSelector no longer asks for arkonis.dev/deployment Exists",
            ),
            (
                |webhook| drop(webhook.match_conditions.as_mut().expect("conditions").remove(0)),
                CheckStatus::Warn,
                "the match condition not-node is missing or has changed",
            ),
            (|webhook| webhook.rules = None, CheckStatus::Fail, "it is not asked about CREATE of pods/v1"),
        ] {
            let checks = checks_of(|found| change(&mut first_mutator(found)[0]));
            let first = checks.first().expect("a difference");
            let found = (first.status, first.subject.as_str(), first.message.as_str());
            assert_eq!(found, (status, subject, expected));
        }
    }

    #[test]
    fn says_what_narrows_an_entry() {
        let checks = checks_of(|found| {
            let webhook = &mut first_mutator(found)[0];
            let selector = webhook.namespace_selector.as_mut().expect("a selector");
            selector.match_labels = Some([("team".to_owned(), "a".to_owned())].into());
        });
        let expected = "namespaceSelector also asks for team In (a)";
        assert_eq!(only(&checks), (CheckStatus::Warn, expected));
    }
}
