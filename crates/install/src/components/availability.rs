//! The number of replicas, and the failure policy while memgate does not answer.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use crate::entry::{IGNORE, full_name};
use crate::objects::Objects;
use crate::webhooks::REQUIRED;
use crate::workload::{CONTAINER, SPREAD, WORKLOAD, ZONE_LABEL};

/// Three replicas, always in different zones; a drain takes one at a time.
pub(super) fn ha(objects: &mut Objects) {
    objects.set(WORKLOAD, "replicas", 3);
    let spread = objects.list(SPREAD).into_iter().flatten().filter_map(Value::as_object_mut);
    for constraint in spread.filter(|one| one.get("topologyKey").is_some_and(|key| key == ZONE_LABEL)) {
        constraint.insert("whenUnsatisfiable".to_owned(), "DoNotSchedule".into());
    }
    let budget = objects.disruption_budget.as_mut().and_then(|budget| budget.spec.as_mut());
    if let Some(budget) = budget {
        budget.min_available = None;
        budget.max_unavailable = Some(IntOrString::Int(1));
    }
}

/// One replica. Since no other replica takes over, requests are admitted while it does not answer, except pods that
/// require their memory, and it does not block a drain.
pub(super) fn single_node(objects: &mut Objects) {
    objects.set(WORKLOAD, "replicas", 1);
    objects.disruption_budget = None;
    let mutating = objects.mutating.webhooks.iter_mut().flatten();
    let entries = mutating.chain(objects.validating.webhooks.iter_mut().flatten());
    for entry in entries.filter(|entry| entry.name != full_name(REQUIRED)) {
        entry.failure_policy = Some(IGNORE.to_owned());
    }
}

/// One replica, with a detailed log, of an image that only this machine has.
pub(super) fn kind_dev(objects: &mut Objects) {
    objects.set(WORKLOAD, "replicas", 1);
    objects.remove(WORKLOAD, "minReadySeconds");
    objects.disruption_budget = None;
    objects.set(CONTAINER, "imagePullPolicy", "Never");
    objects.arguments().push("--log=memgate=debug".to_owned());
}
