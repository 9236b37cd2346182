//! Policies: their definitions, the permissions to read them, the entries for requests that policies judge, and the
//! namespaces in which these requests are refused while memgate does not answer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::entry::{FAIL, IGNORE, Webhook, full_name, not_deleting, requirement, rules, webhook};
use crate::families::{WRITES, add_defaults, agent_pods_name, marked_name};
use crate::install_plan::{InstallPart, InstallPlan};
use crate::metadata::documents;
use crate::objects::Objects;
use crate::pause::resources_not_paused;
use crate::rbac;
use crate::webhooks::resources;
use memgate_model::family::Family;
use memgate_model::kind::{Kind, POLICY_KINDS};
use memgate_platforms::inject::INJECT_LABEL;
use memgate_platforms::policy_crds;
use memgate_primitives::review_path::Phase;

/// The label of namespaces in which requests are refused while policies cannot judge them.
const STRICT_LABEL: &str = "memgate.dev/policy";
/// Its value.
const STRICT: &str = "strict";
/// The timeout of an entry that fails closed.
const STRICT_SECONDS: i32 = 5;

/// Makes memgate watch the workloads that serve memory, with the permission for it.
pub(super) fn workloads(objects: &mut Objects, plan: &InstallPlan) {
    objects.arguments.push("--ark-brokers".to_owned());
    objects
        .cluster_role
        .rules
        .get_or_insert_default()
        .extend(rbac::workloads(&plan.families, &["get", "list", "watch"]));
}

/// Makes memgate watch policies, validate them, and receive the requests that policies may judge or default.
pub(crate) fn policies(objects: &mut Objects, plan: &InstallPlan) {
    objects.others.extend(documents(&policy_crds()).map(|definition| (InstallPart::Crds, definition)));
    objects.cluster_role.rules.get_or_insert_default().extend(rbac::policies());
    objects.validating.webhooks.get_or_insert_default().push(own_kinds(plan));
    let names: Vec<_> = plan.families.iter().flat_map(|family| pods_names(family)).collect();
    let entries = objects.mutating.webhooks.get_or_insert_default();
    for entry in entries.iter_mut().filter(|entry| names.contains(&entry.name)) {
        forget_opt_out(entry.object_selector.as_mut());
        forget_opt_out(entry.namespace_selector.as_mut());
    }
    for family in &plan.families {
        default_more(entries, plan, family);
    }
}

/// The entry for policies and exemptions themselves. It fails open: an invalid policy that was stored while memgate did
/// not answer is not in force.
fn own_kinds(plan: &InstallPlan) -> Webhook {
    let mut conditions = vec![not_deleting(&[], &POLICY_KINDS)];
    conditions.extend(resources_not_paused(plan, None));
    Webhook {
        rules: Some(rules(POLICY_KINDS.iter(), &WRITES)),
        ..webhook(plan, Phase::Validate, "policies", (IGNORE, 2), conditions)
    }
}

/// Policies judge pods that opted out of injection, too.
fn forget_opt_out(selector: Option<&mut LabelSelector>) {
    let Some(requirements) = selector.and_then(|selector| selector.match_expressions.as_mut()) else {
        return;
    };
    for requirement in requirements.iter_mut().filter(|one| one.key == INJECT_LABEL) {
        requirement.values.iter_mut().for_each(|values| values.retain(|value| value != "disabled"));
    }
    requirements.retain(|one| one.key != INJECT_LABEL || one.values.iter().flatten().next().is_some());
}

/// Adds rules for the kinds that only policies have defaults for.
fn default_more(entries: &mut Vec<Webhook>, plan: &InstallPlan, family: &Family) {
    let is_new = |kind: &&&Kind| family.has_policy_fields(kind) && !family.kinds.defaulted.contains(kind);
    add_defaults(entries, plan, family, family.kinds.validated.iter().filter(is_new));
}

/// Splits each entry that fails open in two: one for strict namespaces, which fails closed, and one for all others. Each
/// request still causes one call.
pub(super) fn strict(objects: &mut Objects, plan: &InstallPlan) {
    let names: Vec<_> = plan.families.iter().flat_map(|family| open_names(family)).collect();
    split(objects.mutating.webhooks.get_or_insert_default(), &names);
    split(objects.validating.webhooks.get_or_insert_default(), &names);
}

fn split(entries: &mut Vec<Webhook>, names: &[String]) {
    let halves = |mut entry: Webhook| {
        if !names.contains(&entry.name) {
            return vec![entry];
        }
        let mut closed = Webhook {
            name: format!("{STRICT}.{}", entry.name),
            failure_policy: Some(FAIL.to_owned()),
            timeout_seconds: Some(STRICT_SECONDS),
            ..entry.clone()
        };
        select(&mut closed.namespace_selector, "In");
        select(&mut entry.namespace_selector, "NotIn");
        vec![closed, entry]
    };
    *entries = std::mem::take(entries).into_iter().flat_map(halves).collect();
}

/// Adds a requirement about the label of strict namespaces to a selector.
fn select(selector: &mut Option<LabelSelector>, operator: &str) {
    let requirements = selector.get_or_insert_default().match_expressions.get_or_insert_default();
    requirements.push(requirement(STRICT_LABEL, operator, &[STRICT]));
}

/// The names of the entries for pods of a family.
fn pods_names(family: &Family) -> impl Iterator<Item = String> {
    family.pods.selectors.iter().map(|pods| full_name(&agent_pods_name(pods)))
}

/// The names of the entries of a family that fail open in the base and closed in a strict namespace: for its pods, its
/// runs, and all its resources if the platform can run without memory.
fn open_names(family: &Family) -> Vec<String> {
    let mut names: Vec<_> = pods_names(family).collect();
    let (name, ..) = resources(Some(family));
    names.extend([full_name(&name), full_name(&format!("defaults.{name}"))]);
    if family.validation.fails_open {
        let marked = family.kinds.validated_if_annotated.iter();
        names.extend(marked.map(|(kind, _)| full_name(&marked_name(family, kind))));
    }
    names
}
