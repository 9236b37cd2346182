//! The priority of memgate's pods, its Events, and annotations for GitOps tools.

use crate::deploy::install_plan::{InstallPart, InstallPlan};
use crate::deploy::objects::Objects;
use crate::deploy::rbac;

/// The priority class of a cluster's critical workloads.
const PRIORITY_CLASS: &str = "system-cluster-critical";
/// Allows the pods of an update of three replicas, with some to spare. Some clouds refuse the priority class outside of
/// `kube-system` without a quota.
const QUOTA: &str =
    include_str!("../../../../../deploy/kustomize/components/priority-critical/resource-quota.yaml");

/// Adds the priority class and its quota.
pub(super) fn priority_critical(objects: &mut Objects, plan: &InstallPlan) {
    objects.pod().priority_class_name = Some(PRIORITY_CLASS.to_owned());
    objects.add(InstallPart::Workload, plan, QUOTA);
}

/// Removes the Events, and the permission to write them.
pub(super) fn no_events(objects: &mut Objects) {
    objects.arguments().push("--no-events".to_owned());
    let events = rbac::events();
    objects.cluster_role.rules.get_or_insert_default().retain(|rule| *rule != events);
}

/// Makes Argo CD keep fields of the configurations that are not in Git.
pub(super) fn argo_cd(objects: &mut Objects) {
    annotate(objects, "argocd.argoproj.io/sync-options", "ServerSideApply=true");
}

/// Makes Flux keep fields of the configurations that are not in Git.
pub(super) fn flux(objects: &mut Objects) {
    annotate(objects, "kustomize.toolkit.fluxcd.io/ssa", "Merge");
}

/// Annotates both webhook configurations.
pub(super) fn annotate(objects: &mut Objects, key: &str, value: &str) {
    for metadata in [&mut objects.mutating.metadata, &mut objects.validating.metadata] {
        metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    }
}
