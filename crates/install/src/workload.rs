//! The places in the Deployment that components change. The types of a pod are 0.4 MB of code, so it is JSON.

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
/// Its arguments.
pub(super) const ARGUMENTS: &str = "/spec/template/spec/containers/0/args";
/// Its ports.
pub(super) const PORTS: &str = "/spec/template/spec/containers/0/ports";
/// What it mounts.
pub(super) const MOUNTS: &str = "/spec/template/spec/containers/0/volumeMounts";

/// The node label with the zone.
pub(super) const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
