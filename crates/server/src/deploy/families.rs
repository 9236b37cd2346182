//! What one family adds to an installation: entries and rules of the webhook configurations, rights,
//! and a flag. Nothing that was there before is changed, so families come in any number.

use k8s_openapi::api::admissionregistration::v1::{MatchCondition, MutatingWebhook, ValidatingWebhook};

use crate::deploy::entry::{
    Failure, NOT_DELETING, conditions, expressions, full_name, outside_the_system, pods_webhook, requirement,
    rules, validating_webhook,
};
use crate::deploy::install_plan::InstallPlan;
use crate::deploy::objects::Objects;
use crate::deploy::rbac;
use crate::deploy::webhooks::{self, REQUIRED, resources};
use crate::family::inject::INJECT_LABEL;
use crate::model::family::Family;
use crate::model::kind::Kind;
use crate::model::selector::PodSelector;

/// The operations that write an object.
pub(super) const WRITES: [&str; 2] = ["CREATE", "UPDATE"];

/// Adds a family.
pub(super) fn add(objects: &mut Objects, plan: &InstallPlan, family: &Family) {
    objects.cluster_role.rules.get_or_insert_default().extend(rbac::family(family));
    objects.arguments().push(format!("--family={}", family.name));
    mutating(objects.mutating.webhooks.get_or_insert_default(), plan, family);
    validating(objects.validating.webhooks.get_or_insert_default(), plan, family);
}

fn mutating(webhooks: &mut Vec<MutatingWebhook>, plan: &InstallPlan, family: &Family) {
    if !family.pods.honour_required {
        spare(webhooks, family);
    }
    let defaulted = rules(family.kinds.defaulted.iter(), &WRITES);
    let entry = webhooks::defaults(plan, family.validation.fails_open);
    match webhooks.iter_mut().find(|known| known.name == entry.name) {
        Some(known) => known.rules.get_or_insert_default().extend(defaulted),
        None if defaulted.is_empty() => {}
        None => webhooks.push(MutatingWebhook { rules: Some(defaulted), ..entry }),
    }
    webhooks.extend(family.pods.selectors.iter().map(|pods| agent_pods(plan, family, pods)));
}

fn validating(webhooks: &mut Vec<ValidatingWebhook>, plan: &InstallPlan, family: &Family) {
    let always =
        |kind: &&&Kind| family.kinds.validated_if_annotated.iter().all(|(marked, _)| marked != *kind);
    let validated = rules(family.kinds.validated.iter().filter(always), &WRITES);
    let memories = rules(family.kinds.memories.iter(), &["DELETE"]);
    for (entry, rules) in [
        (webhooks::validations(plan, family.validation.fails_open), validated),
        (webhooks::deletions(plan), memories),
    ] {
        match webhooks.iter_mut().find(|known| known.name == entry.name) {
            Some(known) => known.rules.get_or_insert_default().extend(rules),
            None if rules.is_empty() => {}
            None => webhooks.push(ValidatingWebhook { rules: Some(rules), ..entry }),
        }
    }
    webhooks.extend(
        family.kinds.validated_if_annotated.iter().map(|marked| marked_resources(plan, family, *marked)),
    );
}

/// Takes the family's pods out of the entry for pods that insist on their memory: they make do
/// without it.
fn spare(webhooks: &mut [MutatingWebhook], family: &Family) {
    let labels = family.pods.selectors.iter().filter_map(|pods| pods.labels.first());
    let others: Vec<_> = labels.map(|(key, _)| requirement(key, "DoesNotExist", &[])).collect();
    let required = webhooks.iter_mut().filter(|webhook| webhook.name == full_name(REQUIRED));
    for selector in required.filter_map(|webhook| webhook.object_selector.as_mut()) {
        selector.match_expressions.get_or_insert_default().extend(others.clone());
    }
}

/// Leaves the family's pods to another installation, also those that insist on their memory: this one cannot tell
/// whose they are, and would refuse them.
pub(super) fn leave(objects: &mut Objects, family: &Family) {
    let required = objects.mutating.webhooks.iter_mut().flatten();
    for webhook in required.filter(|webhook| webhook.name == full_name(REQUIRED)) {
        for pods in family.pods.selectors {
            match pods.labels.first() {
                Some((key, values)) => {
                    let operator = if values.is_empty() { "DoesNotExist" } else { "NotIn" };
                    let selector = webhook.object_selector.get_or_insert_default();
                    selector
                        .match_expressions
                        .get_or_insert_default()
                        .push(requirement(key, operator, values));
                }
                None => {
                    webhook.match_conditions.get_or_insert_default().extend(pods.annotation.map(unmarked));
                }
            }
        }
    }
}

/// Pods without an annotation.
fn unmarked(annotation: &str) -> MatchCondition {
    MatchCondition {
        name: "not-elsewhere".to_owned(),
        expression: format!(
            "object == null || !has(object.metadata.annotations) || !('{annotation}' in object.metadata.annotations)"
        ),
    }
}

/// Agent pods of one sort. A selector knows no "or", so each sort has an entry of its own. Where
/// pods can insist on their memory, those that do have another entry.
fn agent_pods(plan: &InstallPlan, family: &Family, selector: &PodSelector) -> MutatingWebhook {
    let elsewhere: &[&str] =
        if family.pods.honour_required { &["disabled", "required"] } else { &["disabled"] };
    let operator = |values: &[&str]| if values.is_empty() { "Exists" } else { "In" };
    let labels = selector.labels.iter();
    let mut pods: Vec<_> = labels.map(|(key, values)| requirement(key, operator(values), values)).collect();
    pods.push(requirement(INJECT_LABEL, "NotIn", elsewhere));
    let mut namespaces = outside_the_system(plan);
    namespaces.push(requirement(INJECT_LABEL, "NotIn", &["disabled"]));
    let webhook = pods_webhook(plan, &agent_pods_name(selector), Failure::Ignore, 2);
    let mut conditions = webhook.match_conditions.clone().unwrap_or_default();
    conditions.extend(selector.annotation.map(|annotation| MatchCondition {
        name: "opted-in".to_owned(),
        expression: format!(
            "object != null && has(object.metadata.annotations) && \
             '{annotation}' in object.metadata.annotations"
        ),
    }));
    conditions.extend(selector.without.map(|start| MatchCondition {
        name: "not-pooled".to_owned(),
        expression: format!(
            "object == null || !has(object.metadata.labels) || \
             !object.metadata.labels.exists(key, key.startsWith('{start}'))"
        ),
    }));
    MutatingWebhook {
        object_selector: Some(expressions(pods)),
        namespace_selector: Some(expressions(namespaces)),
        match_conditions: Some(conditions),
        ..webhook
    }
}

/// The name of the entry for agent pods of one sort.
pub(super) fn agent_pods_name(selector: &PodSelector) -> String {
    format!("{}.pods", selector.name)
}

/// Objects of a kind that is mostly none of memgate's business: only those with an annotation whose
/// key starts so, before the change or after it.
fn marked_resources(
    plan: &InstallPlan,
    family: &Family,
    (kind, start): (&'static Kind, &str),
) -> ValidatingWebhook {
    let (_, failure, seconds) = resources(family.validation.fails_open);
    let marked = |object: &str| {
        format!(
            "{object} != null && has({object}.metadata.annotations) && \
             {object}.metadata.annotations.exists(key, key.startsWith('{start}'))"
        )
    };
    let expression = format!("({}) || ({})", marked("object"), marked("oldObject"));
    let mut conditions = conditions(&[NOT_DELETING]);
    conditions.push(MatchCondition { name: "marked".to_owned(), expression });
    ValidatingWebhook {
        rules: Some(rules([&kind].into_iter(), &WRITES)),
        match_conditions: Some(conditions),
        ..validating_webhook(plan, &marked_name(family, kind), failure, seconds)
    }
}

/// The name of the entry for objects of a kind that concern memgate only with an annotation.
pub(super) fn marked_name(family: &Family, kind: &Kind) -> String {
    format!("{}.{}", family.name, kind.plural)
}
