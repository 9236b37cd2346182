//! The workload: the namespace, the Service, the Deployment and its disruption budget. The
//! permissions are in `rbac`.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::install_plan::InstallPlan;
use crate::metadata::{in_namespace, metadata, object};

const NAMESPACE: &str = include_str!("../objects/namespace.yaml");
const SERVICE: &str = include_str!("../objects/service.yaml");
const DEPLOYMENT: &str = include_str!("../objects/deployment.yaml");
/// Allows the pods of an update, with some to spare. Some clouds refuse the priority class of critical workloads outside
/// of `kube-system` without a quota.
const QUOTA: &str = include_str!("../objects/resource-quota.yaml");
const DISRUPTION_BUDGET: &str = include_str!("../objects/disruption-budget.yaml");

/// The port of probes and metrics in the base.
pub const HEALTH_PORT: u16 = 8081;
/// The port of probes and metrics on a machine's own network: the next one, on which no common program listens.
pub const HOST_HEALTH_PORT: u16 = 10261;
/// The name of the webhook's port.
pub(super) const WEBHOOK: &str = "webhook";
/// The name of the port of probes and metrics.
pub(super) const HEALTH: &str = "health";

/// How much later than the drain the kubelet ends a pod, so that it does not end it halfway.
pub(super) const SECONDS_AFTER_DRAIN: u64 = 20;

/// The specification of the Deployment.
pub(super) const WORKLOAD: &str = "/spec";
/// The specification of its pods.
pub(super) const POD: &str = "/spec/template/spec";
/// Their volumes.
pub(super) const VOLUMES: &str = "/spec/template/spec/volumes";
/// How they spread.
pub(super) const SPREAD: &str = "/spec/template/spec/topologySpreadConstraints";
/// memgate itself, their one container.
pub(super) const CONTAINER: &str = "/spec/template/spec/containers/0";
/// Its ports.
pub(super) const PORTS: &str = "/spec/template/spec/containers/0/ports";
/// What it mounts.
pub(super) const MOUNTS: &str = "/spec/template/spec/containers/0/volumeMounts";

/// The node label with the zone.
pub(super) const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// The namespace, which admits no privileged pod.
pub(super) fn namespace(plan: &InstallPlan) -> Namespace {
    let base = object::<Namespace>(NAMESPACE);
    let metadata = ObjectMeta { name: Some(plan.namespace.clone()), ..base.metadata };
    Namespace { metadata, ..base }
}

/// The Service that the apiserver calls, and the quota for the priority class of its pods.
pub(super) fn service(plan: &InstallPlan) -> impl Iterator<Item = Value> {
    in_namespace(plan, SERVICE).chain(in_namespace(plan, QUOTA))
}

/// The Deployment, and the arguments of its container.
pub(super) fn deployment(plan: &InstallPlan) -> (Value, Vec<String>) {
    let mut deployment: Value = in_namespace(plan, DEPLOYMENT).next().unwrap_or_default();
    let Some(Value::Object(container)) = deployment.pointer_mut(CONTAINER) else { return Default::default() };
    container.insert("image".to_owned(), plan.image.clone().into());
    let arguments = container.get("args").and_then(Value::as_array).into_iter().flatten();
    let arguments = arguments.filter_map(Value::as_str).map(str::to_owned);
    // The account lacks the permissions for policies then.
    let no_policies = (!plan.policies).then(|| "--no-policies".to_owned());
    let arguments = arguments.chain(no_policies).collect();
    (deployment, arguments)
}

/// Keeps one replica through node drains, and never blocks the removal of a broken one.
pub(super) fn disruption_budget(plan: &InstallPlan) -> PodDisruptionBudget {
    PodDisruptionBudget { metadata: metadata(plan), ..object(DISRUPTION_BUDGET) }
}
