//! The priority of memgate's pods, its Events, and what GitOps tools have to know.

use serde_json::json;

use crate::deploy::install_plan::{InstallPart, InstallPlan};
use crate::deploy::metadata::metadata;
use crate::deploy::objects::Objects;
use crate::deploy::rbac;

/// The priority class of what a cluster cannot do without.
const PRIORITY_CLASS: &str = "system-cluster-critical";
/// How many pods the quota allows: those of an update of three replicas, with some to spare.
const QUOTA_PODS: &str = "10";

/// The priority class, and the quota without which some clouds refuse it outside of `kube-system`.
pub(super) fn priority_critical(objects: &mut Objects, plan: &InstallPlan) {
    objects.pod().priority_class_name = Some(PRIORITY_CLASS.to_owned());
    let quota = json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata(plan),
        "spec": {
            "hard": {"pods": QUOTA_PODS},
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": [PRIORITY_CLASS]},
                ],
            },
        },
    });
    objects.others.push((InstallPart::Workload, quota));
}

/// No Events, and no right to write any.
pub(super) fn no_events(objects: &mut Objects) {
    objects.arguments().push("--no-events".to_owned());
    let events = rbac::events();
    objects.cluster_role.rules.get_or_insert_default().retain(|rule| *rule != events);
}

/// Has Argo CD apply the configurations so that it leaves a field alone that is not in Git.
pub(super) fn argo_cd(objects: &mut Objects) {
    annotate(objects, "argocd.argoproj.io/sync-options", "ServerSideApply=true");
}

/// Has Flux leave a field of the configurations alone that is not in Git.
pub(super) fn flux(objects: &mut Objects) {
    annotate(objects, "kustomize.toolkit.fluxcd.io/ssa", "Merge");
}

/// Annotates both webhook configurations.
pub(super) fn annotate(objects: &mut Objects, key: &str, value: &str) {
    for metadata in [&mut objects.mutating.metadata, &mut objects.validating.metadata] {
        metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    }
}
