//! The webhook configurations: which requests the apiserver asks memgate about.
//!
//! The failure policy is `Fail` where the author asked for memgate (by a label on the pod, by a kind of a
//! platform) and going on without it would be wrong; it is `Ignore` where memory is best effort. No rule
//! with `Fail` can match a pod of the control plane or of memgate itself.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, ValidatingWebhook, ValidatingWebhookConfiguration,
};

use crate::deploy::entry::{
    Failure, NOT_DELETING, conditions, expressions, mutating_webhook, outside_the_system, pods_webhook,
    requirement, rule, validating_webhook,
};
use crate::deploy::install_plan::InstallPlan;
use crate::deploy::metadata::cluster_metadata;
use crate::family::inject::INJECT_LABEL;

/// The label of namespaces in which workloads get the warnings that their pods would get.
const PREVIEW_LABEL: &str = "memgate.dev/preview";
/// The entry for pods that require their memory.
pub(super) const REQUIRED: &str = "required.pods";

/// The configuration of the mutating calls that every installation has; families add their own.
///
/// No entry bears the name of a validating one: the apiserver writes the audit annotations of both
/// under the names of their entries, and keeps the first it gets.
pub(super) fn mutating(plan: &InstallPlan) -> MutatingWebhookConfiguration {
    let webhooks = vec![required_pods(plan), defaults(plan, false)];
    MutatingWebhookConfiguration { metadata: cluster_metadata(plan), webhooks: Some(webhooks) }
}

/// The configuration of the validating calls that every installation has.
pub(super) fn validating(plan: &InstallPlan) -> ValidatingWebhookConfiguration {
    let webhooks = vec![validations(plan, false), deletions(plan)];
    ValidatingWebhookConfiguration { metadata: cluster_metadata(plan), webhooks: Some(webhooks) }
}

/// The entry for kinds that get defaults.
pub(super) fn defaults(plan: &InstallPlan, fail_open: bool) -> MutatingWebhook {
    let (name, failure, seconds) = resources(fail_open);
    MutatingWebhook {
        rules: Some(Vec::new()),
        match_conditions: Some(conditions(&[NOT_DELETING])),
        ..mutating_webhook(plan, &format!("defaults.{name}"), failure, seconds)
    }
}

/// The entry for kinds that are validated.
pub(super) fn validations(plan: &InstallPlan, fail_open: bool) -> ValidatingWebhook {
    let (name, failure, seconds) = resources(fail_open);
    ValidatingWebhook {
        rules: Some(Vec::new()),
        match_conditions: Some(conditions(&[NOT_DELETING])),
        ..validating_webhook(plan, name, failure, seconds)
    }
}

/// The entry for memory that is deleted.
pub(super) fn deletions(plan: &InstallPlan) -> ValidatingWebhook {
    ValidatingWebhook { rules: Some(Vec::new()), ..validating_webhook(plan, "deletions", Failure::Ignore, 1) }
}

/// Pods that ask to be refused rather than started without their memory. What a pod says of itself
/// counts more than what its namespace says, so that one cannot switch it off. The family of a
/// platform whose pods always start without memory takes them out.
fn required_pods(plan: &InstallPlan) -> MutatingWebhook {
    MutatingWebhook {
        object_selector: Some(expressions(vec![requirement(INJECT_LABEL, "In", &["required"])])),
        namespace_selector: Some(expressions(outside_the_system(plan))),
        ..pods_webhook(plan, REQUIRED, Failure::Fail, 5)
    }
}

/// The preview: workloads, in namespaces that ask for it, get the warnings that their pods would get.
pub(super) fn templates(plan: &InstallPlan) -> ValidatingWebhook {
    let operations = ["CREATE", "UPDATE"];
    let workloads = |plurals: &[&str]| plurals.iter().map(|plural| (*plural).to_owned()).collect();
    let mut namespaces = outside_the_system(plan);
    namespaces.push(requirement(PREVIEW_LABEL, "In", &["enabled"]));
    ValidatingWebhook {
        rules: Some(vec![
            rule("apps", "v1", workloads(&["deployments", "statefulsets", "daemonsets"]), &operations),
            rule("batch", "v1", workloads(&["jobs", "cronjobs"]), &operations),
        ]),
        namespace_selector: Some(expressions(namespaces)),
        match_conditions: Some(conditions(&[NOT_DELETING])),
        ..validating_webhook(plan, "templates", Failure::Ignore, 1)
    }
}

/// The entry for resources: its name, and what happens when memgate does not answer in so many
/// seconds.
pub(super) const fn resources(fail_open: bool) -> (&'static str, Failure, i32) {
    if fail_open { ("advice", Failure::Ignore, 2) } else { ("resources", Failure::Fail, 5) }
}
