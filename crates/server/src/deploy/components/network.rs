//! Which traffic reaches memgate and leaves it, and on which network.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use crate::deploy::install_plan::{InstallPart, InstallPlan};
use crate::deploy::metadata::{labels, metadata, string_map};
use crate::deploy::objects::Objects;
use crate::deploy::workload::{HEALTH_PORT, WEBHOOK_PORT};

/// On a machine's own network 10250 belongs to the kubelet.
const HOST_WEBHOOK_PORT: i32 = 10260;
/// Beside it, where no common program listens.
const HOST_HEALTH_PORT: i32 = 10261;
/// The label of namespaces whose pods may read the metrics.
const METRICS_LABEL: &str = "memgate.dev/metrics";

/// Reviews from anywhere, since no selector names the apiserver; metrics from namespaces that bear a
/// label; and out to the apiserver and to DNS only.
pub(super) fn policy(objects: &mut Objects, plan: &InstallPlan) {
    let dns = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}});
    let scrapers = json!({"namespaceSelector": {"matchLabels": {METRICS_LABEL: "allowed"}}});
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(plan),
        "spec": {
            "podSelector": {"matchLabels": labels()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"ports": [{"port": "webhook", "protocol": "TCP"}]},
                {"from": [scrapers], "ports": [{"port": "health", "protocol": "TCP"}]},
            ],
            "egress": [
                {"ports": [{"port": 443, "protocol": "TCP"}, {"port": 6443, "protocol": "TCP"}]},
                {"to": [dns], "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]},
            ],
        },
    });
    objects.others.push((InstallPart::Workload, policy));
}

/// The machine's network, for clusters whose apiserver cannot reach pods. No Pod Security level but
/// `privileged` allows it, and a port is there once on a machine, so that an update has to take one
/// replica away before it adds another.
pub(super) fn host(objects: &mut Objects) {
    let level = string_map(&[("pod-security.kubernetes.io/enforce", "privileged")]);
    objects.namespace.metadata.labels.get_or_insert_default().extend(level);
    let rolling = objects.workload().strategy.get_or_insert_default().rolling_update.get_or_insert_default();
    rolling.max_unavailable = Some(IntOrString::Int(1));
    rolling.max_surge = Some(IntOrString::Int(0));
    let pod = objects.pod();
    pod.host_network = Some(true);
    pod.dns_policy = Some("ClusterFirstWithHostNet".to_owned());
    let ports = [(WEBHOOK_PORT, HOST_WEBHOOK_PORT), (HEALTH_PORT, HOST_HEALTH_PORT)];
    for (usual, port) in ports {
        for argument in objects.arguments() {
            *argument = argument.replace(&format!("[::]:{usual}"), &format!("[::]:{port}"));
        }
        let container_ports = objects.container.ports.iter_mut().flatten();
        for known in container_ports.filter(|known| known.container_port == usual) {
            known.container_port = port;
        }
    }
}
