//! The webhook configurations: which requests the apiserver sends to memgate.
//!
//! The failure policy is `Fail` where the author asked for memgate (by a label on the pod, by a kind of a
//! platform) and the object would be wrong without it; it is `Ignore` where memory is best effort. No rule
//! with `Fail` can match a pod of the control plane or of memgate itself.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;

use crate::entry::{
    FAIL, IGNORE, Webhook, expressions, not_deleting, outside_the_system, pods_webhook, requirement, webhook,
};
use crate::install_plan::InstallPlan;
use crate::metadata::named;
use crate::pause::{required_not_paused, resources_not_paused};
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_platforms::inject::INJECT_LABEL;
use memgate_platforms::known;
use memgate_primitives::review_path::Phase;

/// The entry for pods that require their memory.
const REQUIRED: &str = "required.pods";

/// The configuration of the mutating calls that every installation has; families add their own.
///
/// No entry has the name of a validating one: the apiserver writes the audit annotations of both under the names of
/// their entries, and keeps the first.
pub(super) fn mutating(plan: &InstallPlan) -> MutatingWebhookConfiguration {
    let webhooks = vec![required_pods(plan), defaults(plan, None)];
    MutatingWebhookConfiguration { metadata: named(plan.name.clone()), webhooks: Some(webhooks) }
}

/// The configuration of the validating calls that every installation has.
pub(super) fn validating(plan: &InstallPlan) -> MutatingWebhookConfiguration {
    let webhooks = vec![validations(plan, None), deletions(plan)];
    MutatingWebhookConfiguration { metadata: named(plan.name.clone()), webhooks: Some(webhooks) }
}

/// The entry for kinds that get defaults: the one that all families share, or that of a family for kinds that fail open.
pub(super) fn defaults(plan: &InstallPlan, open: Option<&Family>) -> Webhook {
    let name = format!("defaults.{}", resources(open).0);
    of_resources(plan, Phase::Mutate, &name, open)
}

/// The entry for kinds that are validated: the one that all families share, or that of a family for kinds that fail open.
pub(super) fn validations(plan: &InstallPlan, open: Option<&Family>) -> Webhook {
    of_resources(plan, Phase::Validate, &resources(open).0, open)
}

fn of_resources(plan: &InstallPlan, call: Phase, name: &str, open: Option<&Family>) -> Webhook {
    let (_, failure, seconds) = resources(open);
    // The entry that families share is the same whichever of them an installation has.
    let families = open.map_or_else(|| known(&plan.families), |family| vec![family]);
    let is_open = open.is_some();
    let kinds = families.iter().flat_map(|family| resource_kinds(family, is_open));
    let kinds: Vec<&Kind> = kinds.copied().collect();
    let mut conditions = vec![not_deleting(&families, &kinds)];
    conditions.extend(resources_not_paused(plan, open));
    Webhook { rules: Some(Vec::new()), ..webhook(plan, call, name, (failure, seconds), conditions) }
}

/// The kinds of a family that are validated whatever their annotations, and that fail open or do not.
pub(super) fn resource_kinds(family: &Family, open: bool) -> impl Iterator<Item = &'static &'static Kind> {
    let always = |kind: &&Kind| family.kinds.validated_if_annotated.iter().all(|(marked, _)| marked != kind);
    family.kinds.validated.iter().filter(move |kind| always(kind) && family.fails_open(kind) == open)
}

/// The entry for memory that is deleted.
pub(super) fn deletions(plan: &InstallPlan) -> Webhook {
    let conditions = resources_not_paused(plan, None).into();
    Webhook {
        rules: Some(Vec::new()),
        ..webhook(plan, Phase::Validate, "deletions", (IGNORE, 1), conditions)
    }
}

/// The entry for pods that ask to be refused rather than started without their memory, of every family. The label of a
/// pod wins over the label of its namespace.
fn required_pods(plan: &InstallPlan) -> Webhook {
    Webhook {
        object_selector: Some(expressions(vec![requirement(INJECT_LABEL, "In", &["required"])])),
        namespace_selector: Some(expressions(outside_the_system(plan))),
        ..pods_webhook(plan, REQUIRED, (FAIL, 5), required_not_paused(plan))
    }
}

/// The name, the failure policy and the timeout in seconds of the entry for resources: the one that all families share,
/// or that of a family for kinds that fail open. Of a family that fails open as a whole these are not runs alone.
pub(super) fn resources(open: Option<&Family>) -> (String, &'static str, i32) {
    match open {
        Some(family) if family.validation.fails_open => (format!("{}.advice", family.name), IGNORE, 2),
        Some(family) => (format!("{}.runs", family.name), IGNORE, 2),
        None => ("resources".to_owned(), FAIL, 5),
    }
}
