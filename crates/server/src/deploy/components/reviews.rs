//! Reviews of further requests, and failure policies that differ from the base.

use crate::deploy::components::policies::pods_names;
use crate::deploy::entry::Failure;
use crate::deploy::install_plan::InstallPlan;
use crate::deploy::objects::Objects;
use crate::deploy::webhooks;

/// Refuses agent pods while memgate does not answer, except pods of platforms that can run without memory.
pub(super) fn fail_closed(objects: &mut Objects, plan: &InstallPlan) {
    let strict = plan.families.iter().filter(|family| family.pods.honour_required);
    let names: Vec<_> = strict.flat_map(|family| pods_names(family)).collect();
    let entries = objects.mutating.webhooks.iter_mut().flatten();
    for entry in entries.filter(|entry| names.contains(&entry.name)) {
        entry.failure_policy = Some(Failure::Fail.name());
    }
}

/// Reviews workloads in namespaces with the label `memgate.dev/preview=enabled`.
pub(super) fn templates(objects: &mut Objects, plan: &InstallPlan) {
    objects.validating.webhooks.get_or_insert_default().push(webhooks::templates(plan));
}

/// Gives the configurations the names that the apiserver requires of configurations in a file.
pub(super) fn static_manifest(objects: &mut Objects, plan: &InstallPlan) {
    let name = format!("{}.static.k8s.io", plan.name);
    objects.mutating.metadata.name = Some(name.clone());
    objects.validating.metadata.name = Some(name);
}
