//! How important memgate is, what it says of its work, and what brings it.

use serde_json::json;

use crate::deploy::objects::Objects;
use crate::deploy::{Part, Plan, metadata, rbac};

/// The priority class of what a cluster cannot do without.
const CRITICAL: &str = "system-cluster-critical";
/// Room for an update of three replicas, and some.
const CRITICAL_PODS: &str = "10";

/// The priority class, and the quota without which some clouds refuse it outside of `kube-system`.
pub(super) fn priority_critical(objects: &mut Objects, plan: &Plan) {
    objects.pod().priority_class_name = Some(CRITICAL.to_owned());
    let quota = json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata(plan),
        "spec": {
            "hard": {"pods": CRITICAL_PODS},
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": [CRITICAL]},
                ],
            },
        },
    });
    objects.others.push((Part::Workload, quota));
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
