//! How many replicas there are, and what happens while memgate is away.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::deploy::entry::Failure;
use crate::deploy::objects::Objects;
use crate::deploy::workload::ZONE_LABEL;

/// Three replicas, always in different zones, of which a drain takes one at a time.
pub(super) fn ha(objects: &mut Objects) {
    objects.workload().replicas = Some(3);
    let spread = objects.pod().topology_spread_constraints.iter_mut().flatten();
    for constraint in spread.filter(|constraint| constraint.topology_key == ZONE_LABEL) {
        "DoNotSchedule".clone_into(&mut constraint.when_unsatisfiable);
    }
    let budget = objects.disruption_budget.as_mut().and_then(|budget| budget.spec.as_mut());
    if let Some(budget) = budget {
        budget.min_available = None;
        budget.max_unavailable = Some(IntOrString::Int(1));
    }
}

/// One replica. As no other takes over, nothing is refused while it is away, and it does not hold up a
/// drain.
pub(super) fn single_node(objects: &mut Objects) {
    objects.workload().replicas = Some(1);
    objects.disruption_budget = None;
    let mutating = objects.mutating.webhooks.iter_mut().flatten();
    let validating = objects.validating.webhooks.iter_mut().flatten();
    let policies = mutating.map(|entry| &mut entry.failure_policy);
    for policy in policies.chain(validating.map(|entry| &mut entry.failure_policy)) {
        *policy = Some(Failure::Ignore.name());
    }
}

/// One replica, with a detailed log, of an image that only this machine has.
pub(super) fn kind_dev(objects: &mut Objects) {
    let workload = objects.workload();
    workload.replicas = Some(1);
    workload.min_ready_seconds = None;
    objects.disruption_budget = None;
    objects.container.image_pull_policy = Some("Never".to_owned());
    objects.arguments().push("--log=memgate=debug".to_owned());
}
