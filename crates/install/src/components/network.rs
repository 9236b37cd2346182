//! The network: which traffic memgate may receive and send, and whether its pods use the network of their machine.

use serde_json::json;

use crate::install_plan::{InstallPart, InstallPlan};
use crate::metadata::string_map;
use crate::objects::Objects;
use crate::workload::{HEALTH_PORT, POD, PORTS, WEBHOOK_PORT};

/// Reviews from anywhere, since no selector can name the apiserver; metrics from namespaces with a label; out to the
/// apiserver and to DNS only.
const POLICY: &str =
    include_str!("../../../../deploy/kustomize/components/network-policy/network-policy.yaml");
/// On a machine's own network 10250 belongs to the kubelet.
const HOST_WEBHOOK_PORT: i32 = 10260;
/// The next port, on which no common program listens.
const HOST_HEALTH_PORT: i32 = 10261;

/// Adds the NetworkPolicy.
pub(super) fn policy(objects: &mut Objects, plan: &InstallPlan) {
    objects.add(InstallPart::Workload, plan, POLICY);
}

/// Uses the machine's network, for clusters whose apiserver cannot reach pods. Only the Pod Security level `privileged`
/// allows it. A port can be used once on a machine, so an update must take one replica away before it adds another.
pub(super) fn host(objects: &mut Objects) {
    let level = string_map(&[("pod-security.kubernetes.io/enforce", "privileged")]);
    objects.namespace.metadata.labels.get_or_insert_default().extend(level);
    objects.set("/spec/strategy", "rollingUpdate", json!({"maxSurge": 0, "maxUnavailable": 1}));
    objects.set(POD, "hostNetwork", true);
    objects.set(POD, "dnsPolicy", "ClusterFirstWithHostNet");
    let ports = [(WEBHOOK_PORT, HOST_WEBHOOK_PORT), (HEALTH_PORT, HOST_HEALTH_PORT)];
    for (usual, port) in ports {
        for argument in objects.arguments() {
            *argument = argument.replace(&format!("[::]:{usual}"), &format!("[::]:{port}"));
        }
        let known =
            objects.list(PORTS).into_iter().flatten().filter_map(|port| port.get_mut("containerPort"));
        known.filter(|known| **known == usual).for_each(|known| *known = port.into());
    }
}
