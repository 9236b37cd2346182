//! The additions of one family to an installation: entries and rules of the webhook configurations, permissions,
//! and a flag. No existing object is replaced, so an installation can have any number of families.

use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;

use crate::entry::{
    IGNORE, Webhook, condition, expressions, full_name, is_annotated, is_without, not_deleting,
    outside_the_system, pods_webhook, requirement, rules, webhook,
};
use crate::install_plan::InstallPlan;
use crate::objects::Objects;
use crate::pause::{pods_not_paused, resources_not_paused};
use crate::rbac;
use crate::webhooks::{self, resource_kinds, resources};
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::selector::PodSelector;
use memgate_platforms::inject::INJECT_LABEL;
use memgate_primitives::review_path::Phase;

/// The operations that write an object.
pub(super) const WRITES: [&str; 2] = ["CREATE", "UPDATE"];

/// Adds a family.
pub(super) fn add(objects: &mut Objects, plan: &InstallPlan, family: &Family) {
    objects.cluster_role.rules.get_or_insert_default().extend(rbac::family(family));
    objects.arguments.push(format!("--family={}", family.name));
    mutating(objects.mutating.webhooks.get_or_insert_default(), plan, family);
    validating(objects.validating.webhooks.get_or_insert_default(), plan, family);
}

fn mutating(webhooks: &mut Vec<Webhook>, plan: &InstallPlan, family: &Family) {
    add_defaults(webhooks, plan, family, family.kinds.defaulted.iter());
    webhooks.extend(family.pods.selectors.iter().map(|pods| agent_pods(plan, family, pods)));
}

/// Adds kinds that get defaults to the entries for them: of those that fail open, and of the others.
pub(super) fn add_defaults<'k>(
    webhooks: &mut Vec<Webhook>,
    plan: &InstallPlan,
    family: &Family,
    kinds: impl Iterator<Item = &'k &'static Kind>,
) {
    let (open, closed): (Vec<_>, Vec<_>) = kinds.partition(|kind| family.fails_open(kind));
    for (kinds, open) in [(closed, None), (open, Some(family))] {
        add_rules(webhooks, webhooks::defaults(plan, open), rules(kinds.into_iter(), &WRITES));
    }
}

fn validating(webhooks: &mut Vec<Webhook>, plan: &InstallPlan, family: &Family) {
    add_rules(webhooks, webhooks::validations(plan, None), rules(resource_kinds(family, false), &WRITES));
    add_rules(
        webhooks,
        webhooks::validations(plan, Some(family)),
        rules(resource_kinds(family, true), &WRITES),
    );
    add_rules(webhooks, webhooks::deletions(plan), rules(family.kinds.memories.iter(), &["DELETE"]));
    webhooks.extend(family.kinds.memories_if.map(|some| some_deletions(plan, family, some)));
    webhooks.extend(
        family.kinds.validated_if_annotated.iter().map(|marked| marked_resources(plan, family, *marked)),
    );
}

/// The family, if its resources fail open.
pub(super) fn if_open(family: &Family) -> Option<&Family> {
    Some(family).filter(|family| family.validation.fails_open)
}

/// The entry for kinds of which only the DELETE of some objects matters.
fn some_deletions(
    plan: &InstallPlan,
    family: &Family,
    (kinds, expression): (&[&'static Kind], &str),
) -> Webhook {
    let mut conditions = vec![condition(("memory", expression))];
    conditions.extend(resources_not_paused(plan, Some(family)));
    Webhook {
        name: full_name(&format!("{}.deletions", family.name)),
        rules: Some(rules(kinds.iter(), &["DELETE"])),
        match_conditions: Some(conditions),
        ..webhooks::deletions(plan)
    }
}

/// Adds rules to the entry of the same name as `entry`, or to `entry`, which is then appended.
pub(super) fn add_rules(webhooks: &mut Vec<Webhook>, entry: Webhook, rules: Vec<RuleWithOperations>) {
    match webhooks.iter_mut().find(|known| known.name == entry.name) {
        Some(known) => known.rules.get_or_insert_default().extend(rules),
        None if rules.is_empty() => {}
        None => webhooks.push(Webhook { rules: Some(rules), ..entry }),
    }
}

/// The entry for agent pods that match one selector. A label selector has no "or", so each selector has an entry of its
/// own. Pods that require their memory have another entry, which fails closed, whatever their platform.
fn agent_pods(plan: &InstallPlan, family: &Family, selector: &PodSelector) -> Webhook {
    let operator = |values: &[&str]| if values.is_empty() { "Exists" } else { "In" };
    let labels = selector.labels.iter();
    let mut pods: Vec<_> = labels.map(|(key, values)| requirement(key, operator(values), values)).collect();
    pods.push(requirement(INJECT_LABEL, "NotIn", &["disabled", "required"]));
    let mut namespaces = outside_the_system(plan);
    namespaces.push(requirement(INJECT_LABEL, "NotIn", &["disabled"]));
    let when = |test: String| format!("object == null || {test}");
    let opted_in = |annotation| format!("object != null && {}", is_annotated(annotation));
    let more = [
        selector.annotation.map(|annotation| condition(("opted-in", &opted_in(annotation)))),
        selector.without.map(|start| condition(("not-pooled", &when(is_without(start))))),
    ];
    let more = more.into_iter().flatten().chain(pods_not_paused(plan, family, selector));
    Webhook {
        object_selector: Some(expressions(pods)),
        namespace_selector: Some(expressions(namespaces)),
        ..pods_webhook(plan, &agent_pods_name(selector), (IGNORE, 2), more)
    }
}

/// The name of the entry for agent pods that match one selector.
pub(super) fn agent_pods_name(selector: &PodSelector) -> String {
    format!("{}.pods", selector.name)
}

/// The entry for a kind of which memgate reads only some objects: those with an annotation whose key has this prefix,
/// before or after the change.
fn marked_resources(plan: &InstallPlan, family: &Family, (kind, start): (&'static Kind, &str)) -> Webhook {
    let (_, failure, seconds) = resources(if_open(family));
    let marked = |object: &str| {
        format!(
            "{object} != null && has({object}.metadata.annotations) && \
             {object}.metadata.annotations.exists(key, key.startsWith('{start}'))"
        )
    };
    let expression = format!("({}) || ({})", marked("object"), marked("oldObject"));
    let mut conditions = vec![not_deleting(&[family], &[kind]), condition(("marked", &expression))];
    conditions.extend(resources_not_paused(plan, Some(family)));
    let name = marked_name(family, kind);
    Webhook {
        rules: Some(rules([&kind].into_iter(), &WRITES)),
        ..webhook(plan, Phase::Validate, &name, (failure, seconds), conditions)
    }
}

/// The name of the entry for objects of a kind that memgate reads only with an annotation.
pub(super) fn marked_name(family: &Family, kind: &Kind) -> String {
    format!("{}.{}", family.name, kind.plural)
}
