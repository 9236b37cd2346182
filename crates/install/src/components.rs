//! The change that each component makes to the base. Those with objects of their own have a module.

pub(super) mod audit;
mod certs;
pub(super) mod monitoring;
pub(super) mod policies;

use serde_json::{Value, json};

use crate::component::Component;
use crate::install_plan::InstallPlan;
use crate::objects::Objects;
use crate::workload::{HEALTH, HOST_HEALTH_PORT, POD, PORTS, SPREAD, WEBHOOK, WORKLOAD, ZONE_LABEL};

/// On a machine's own network 10250 belongs to the kubelet.
const HOST_WEBHOOK_PORT: i32 = 10260;

/// Annotations by which Argo CD and Flux keep fields of the configurations that are not in Git.
const KEEP_FIELDS: [(&str, &str); 2] = [
    ("argocd.argoproj.io/sync-options", "ServerSideApply=true"),
    ("kustomize.toolkit.fluxcd.io/ssa", "Merge"),
];

/// Applies the change of a component.
pub(super) fn apply(objects: &mut Objects, plan: &InstallPlan, component: Component) {
    match component {
        Component::Ha => ha(objects),
        Component::Mtls => certs::mtls(objects),
        // Their objects are rows; an audit gets its arguments last.
        Component::NetworkPolicy | Component::Audit => {}
        Component::HostNetwork => host_network(objects),
        Component::Monitoring => monitoring::fill(objects, plan),
        Component::PolicyStrict => policies::strict(objects, plan),
        Component::ArkBrokers => policies::workloads(objects, plan),
        Component::CertManager => certs::cert_manager(objects, plan),
        Component::CsiDriver => certs::csi_driver(objects, plan),
        Component::CertFiles => certs::files(objects),
        Component::Gitops => {
            for (key, value) in KEEP_FIELDS {
                annotate(objects, key, value);
            }
        }
    }
}

/// Three replicas, always in different zones; a drain takes one at a time.
fn ha(objects: &mut Objects) {
    objects.set(WORKLOAD, "replicas", 3);
    let spread = objects.list(SPREAD).into_iter().flatten().filter_map(Value::as_object_mut);
    for constraint in spread.filter(|one| one.get("topologyKey").is_some_and(|key| key == ZONE_LABEL)) {
        constraint.insert("whenUnsatisfiable".to_owned(), "DoNotSchedule".into());
    }
    if let Some(Value::Object(budget)) = objects.other("PodDisruptionBudget", "/spec") {
        budget.remove("minAvailable");
        budget.insert("maxUnavailable".to_owned(), 1.into());
    }
}

/// Serves the webhook or the probes on another port.
pub(super) fn set_port(objects: &mut Objects, name: &str, port: i32) {
    let ports = objects.list(PORTS).into_iter().flatten();
    let Some(known) = ports
        .filter(|port| port.get("name").is_some_and(|it| it == name))
        .find_map(|port| port.get_mut("containerPort"))
    else {
        return;
    };
    let usual = std::mem::replace(known, port.into());
    for argument in &mut objects.arguments {
        *argument = argument.replace(&format!("[::]:{usual}"), &format!("[::]:{port}"));
    }
}

/// Uses the machine's network, for clusters whose apiserver cannot reach pods. Only the Pod Security level `privileged`
/// allows it. A port can be used once on a machine, so an update must take one replica away before it adds another.
fn host_network(objects: &mut Objects) {
    if let Some(Value::Object(labels)) = objects.other("Namespace", "/metadata/labels") {
        labels.insert("pod-security.kubernetes.io/enforce".to_owned(), "privileged".into());
    }
    objects.set("/spec/strategy", "rollingUpdate", json!({"maxSurge": 0, "maxUnavailable": 1}));
    objects.set(POD, "hostNetwork", true);
    objects.set(POD, "dnsPolicy", "ClusterFirstWithHostNet");
    set_port(objects, WEBHOOK, HOST_WEBHOOK_PORT);
    set_port(objects, HEALTH, HOST_HEALTH_PORT.into());
}

/// Annotates both webhook configurations.
fn annotate(objects: &mut Objects, key: &str, value: &str) {
    for metadata in [&mut objects.mutating.metadata, &mut objects.validating.metadata] {
        metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    }
}
