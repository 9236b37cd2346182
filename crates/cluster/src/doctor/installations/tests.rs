use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::doctor::check::CheckStatus;
use crate::doctor::inferred::tests::first;
use crate::doctor::inferred::{InstalledAs, objects};
use memgate_install::objects::WebhookConfiguration;

/// What an installation is like: its name, namespace and families, and those of another one.
type Installed<'a> = (&'a str, &'a str, &'a [&'static Family], &'a [&'static Family]);

const ARKONIS: &[&Family] = &[&memgate_platforms::arkonis::FAMILY];
const ARK: &[&Family] = &[&memgate_platforms::ark::FAMILY];
const ORKA: &[&Family] = &[&memgate_platforms::orka::FAMILY];

fn configurations(
    (name, namespace, families, elsewhere): Installed<'_>,
) -> (WebhookConfiguration, WebhookConfiguration) {
    let installed =
        InstalledAs { name, namespace, components: BTreeSet::new(), elsewhere: elsewhere.to_vec() };
    let expected = objects(&installed, families);
    (expected.mutating, expected.validating)
}

/// A cluster with these installations, of which the first is looked at.
fn cluster(installations: &[Installed<'_>]) -> Installation {
    let (mutating, validating) = installations.iter().copied().map(configurations).unzip();
    let namespace = |name: &str| {
        let labels = [("kubernetes.io/metadata.name".to_owned(), name.to_owned())];
        (name.to_owned(), labels.into())
    };
    let (name, own, ..) = installations[0];
    Installation {
        name: name.to_owned(),
        namespace: own.to_owned(),
        mutating: Fetched::Found(mutating),
        validating: Fetched::Found(validating),
        namespaces: Fetched::Found(["agents", "more-agents"].map(namespace).into()),
        ..Installation::default()
    }
}

fn found(installation: &Installation) -> Vec<(CheckStatus, String)> {
    let checks = checks(installation).into_iter();
    checks.map(|check| (check.status, format!("{}: {}", check.subject, check.message))).collect()
}

fn statuses(installation: &Installation) -> Vec<CheckStatus> {
    found(installation).into_iter().map(|(status, _)| status).collect()
}

#[test]
fn one_alone_is_good() {
    let found = found(&cluster(&[("memgate", "memgate-system", &memgate_platforms::ALL, &[])]));
    let message = "memgate: no other installation has this name, or is asked about the same requests";
    assert_eq!(found, [(CheckStatus::Ok, message.to_owned())]);
}

#[test]
fn two_with_families_of_their_own_are_good() {
    for own in [ARK, ORKA] {
        let both = [("memgate", "memgate-system", ARKONIS, own), ("memgate-b", "b", own, ARKONIS)];
        assert_eq!(statuses(&cluster(&both)), [CheckStatus::Ok]);
    }
}

#[test]
fn two_with_the_same_family_are_asked_twice() {
    let both = [("memgate", "memgate-system", ARKONIS, &[][..]), ("memgate-b", "b", ARKONIS, &[])];
    let found = found(&cluster(&both));
    let [(CheckStatus::Warn, mutating), (CheckStatus::Warn, validating)] = &found[..] else {
        panic!("{found:#?}")
    };
    let start =
        "MutatingWebhookConfiguration memgate-b: its entries ask about the same requests as memgate: ";
    assert!(mutating.starts_with(start) && mutating.contains("arkonis.pods.memgate.dev"), "{mutating}");
    assert!(validating.contains("resources.memgate.dev"), "{validating}");
}

#[test]
fn what_an_earlier_name_left_behind_is_reported() {
    let both = [("memgate-b", "b", ARKONIS, &[][..]), ("memgate", "b", ARKONIS, &[])];
    let found = found(&cluster(&both));
    let start =
        "MutatingWebhookConfiguration memgate: it leads to this installation too, and its entries ask";
    assert!(found[0].1.starts_with(start), "{found:#?}");
}

#[test]
fn two_with_namespaces_of_their_own_are_good() {
    let both = [("memgate", "memgate-system", ARKONIS, &[][..]), ("memgate-b", "b", ARKONIS, &[])];
    let mut cluster = cluster(&both);
    let limit = |selector: &mut Option<LabelSelector>, operator: &str| {
        let more = json!({"key": "kubernetes.io/metadata.name", "operator": operator, "values": ["agents"]});
        let more = serde_json::from_value(more).expect("a requirement");
        selector.get_or_insert_default().match_expressions.get_or_insert_default().push(more);
    };
    let Fetched::Found(mutating) = &mut cluster.mutating else { panic!("was found") };
    let Fetched::Found(validating) = &mut cluster.validating else { panic!("was found") };
    for (index, operator) in ["In", "NotIn"].into_iter().enumerate() {
        for entry in mutating[index].webhooks.iter_mut().flatten() {
            limit(&mut entry.namespace_selector, operator);
        }
        for entry in validating[index].webhooks.iter_mut().flatten() {
            limit(&mut entry.namespace_selector, operator);
        }
    }
    assert_eq!(statuses(&cluster), [CheckStatus::Ok]);
    // Where namespaces cannot be listed, what the selectors themselves say has to do.
    cluster.namespaces = Fetched::Unknown("you may not".to_owned());
    assert_eq!(statuses(&cluster), [CheckStatus::Ok]);
}

#[test]
fn reports_pods_that_only_the_other_installation_knows() {
    let both = [("memgate", "memgate-system", ARKONIS, &[][..]), ("memgate-b", "b", ARK, ARKONIS)];
    let found = found(&cluster(&both));
    let expected = "MutatingWebhookConfiguration memgate: pods that require their memory are refused as unknown, \
                    though memgate-b knows them: those of ark";
    assert_eq!(found, [(CheckStatus::Fail, expected.to_owned())]);
    let both = [("memgate", "memgate-system", ARKONIS, ARK), ("memgate-b", "b", ARK, &[])];
    let checks = checks(&cluster(&both));
    assert_eq!(checks[0].help.as_deref(), Some("install memgate-b with --elsewhere arkonis"));
}

#[test]
fn an_object_of_another_namespace_is_reported() {
    let mut cluster = cluster(&[("memgate", "b", ARK, &[])]);
    cluster.namespace = "a".to_owned();
    let own = |kind: &str| {
        let installed = InstalledAs {
            name: "memgate",
            namespace: "b",
            components: BTreeSet::new(),
            elsewhere: Vec::new(),
        };
        first::<serde_json::Value>(objects(&installed, ARK), kind)
    };
    let binding = serde_json::from_value(own("ClusterRoleBinding")).expect("a binding");
    cluster.cluster_role_binding = Fetched::Found(binding);
    cluster.self_guard = Fetched::Found(own("ValidatingAdmissionPolicy"));
    let subjects = |cluster: &Installation| -> Vec<String> {
        let checks = checks(cluster).into_iter().filter(|check| check.status == CheckStatus::Fail);
        checks.map(|check| check.subject).collect()
    };
    let all = [
        "MutatingWebhookConfiguration memgate",
        "ValidatingWebhookConfiguration memgate",
        "ClusterRoleBinding memgate",
        "ValidatingAdmissionPolicy memgate-self-guard",
    ];
    assert_eq!(subjects(&cluster), all);
    cluster.namespace = "b".to_owned();
    assert_eq!(subjects(&cluster), [""; 0]);
}

#[test]
fn what_cannot_be_listed_is_unknown() {
    let mut cluster = cluster(&[("memgate", "memgate-system", ARKONIS, &[])]);
    cluster.mutating = Fetched::Unknown("you may not".to_owned());
    assert_eq!(statuses(&cluster), [CheckStatus::Unknown]);
}

#[test]
fn selectors_contradict_each_other_where_no_labels_meet_both() {
    let selector = |operator: &str, values: &[&str]| LabelSelector {
        match_expressions: Some(vec![
            serde_json::from_value(json!({"key": "k", "operator": operator, "values": values})).expect("one"),
        ]),
        match_labels: None,
    };
    for (one, other, expected) in [
        (("In", &["a"][..]), ("In", &["b"][..]), true),
        (("In", &["a", "b"]), ("In", &["b"]), false),
        (("In", &["a"]), ("NotIn", &["a", "b"]), true),
        (("In", &["a", "c"]), ("NotIn", &["a"]), false),
        (("Exists", &[]), ("DoesNotExist", &[]), true),
        (("In", &["a"]), ("DoesNotExist", &[]), true),
        (("NotIn", &["a"]), ("DoesNotExist", &[]), false),
        (("Exists", &[]), ("NotIn", &["a"]), false),
    ] {
        let (one, other) = (selector(one.0, one.1), selector(other.0, other.1));
        assert_eq!(
            (contradict(&one, &other), contradict(&other, &one)),
            (expected, expected),
            "{one:?} {other:?}"
        );
    }
}
