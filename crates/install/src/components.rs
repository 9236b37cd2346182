//! The change that each component makes to the base. Those with objects of their own have a module.

mod certs;
pub(super) mod monitoring;
mod policies;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use crate::component::{Component, RECORDED};
use crate::components::policies::pods_names;
use crate::entry::{FAIL, IGNORE, condition, full_name};
use crate::install_plan::{InstallPart, InstallPlan};
use crate::metadata::{REGISTERED, string_map};
use crate::objects::Objects;
use crate::pods::set_port;
use crate::rbac;
use crate::webhooks::{self, REQUIRED};
use crate::workload::{CONTAINER, HEALTH, HOST_HEALTH_PORT, POD, SPREAD, WEBHOOK, WORKLOAD, ZONE_LABEL};

/// Reviews from anywhere, since no selector can name the apiserver; metrics from namespaces with a label; out to the
/// apiserver and to DNS only.
const NETWORK_POLICY: &str =
    include_str!("../../../deploy/kustomize/components/network-policy/network-policy.yaml");

/// On a machine's own network 10250 belongs to the kubelet.
const HOST_WEBHOOK_PORT: i32 = 10260;

/// The ConfigMap with the settings file, which memgate does not write.
const SETTINGS: &str = "memgate-settings";

/// Where that ConfigMap is mounted.
const SETTINGS_DIRECTORY: &str = "/etc/memgate/settings";

/// The role by which a replica registers, and the role that marks an installation as registered, with their bindings. The
/// binding of the mark has no subject until a replica is ready.
const REGISTER: &str = include_str!("../../../deploy/kustomize/components/after-ready/register.yaml");

/// The role that reads policies, for every authenticated user.
const POLICY_READERS: &str = include_str!("../../../deploy/kustomize/components/policy-readers/readers.yaml");

/// Applies the change of a component.
pub(super) fn apply(objects: &mut Objects, plan: &InstallPlan, component: Component) {
    if RECORDED.contains(&component) {
        objects.set("/metadata/annotations", &format!("memgate.dev/component-{}", component.name()), "");
    }
    match component {
        // The families are in the plan.
        Component::Family(_) => {}
        Component::Policies => policies::policies(objects, plan),
        Component::Ha => ha(objects),
        Component::SingleNode => single_node(objects),
        Component::KindDev => kind_dev(objects),
        Component::CertManager => certs::cert_manager(objects, plan),
        Component::CsiDriver => certs::csi_driver(objects, plan),
        Component::CertFiles => certs::files(objects, plan),
        Component::Mtls => certs::mtls(objects),
        Component::Settings => settings(objects),
        // Adds the NetworkPolicy.
        Component::NetworkPolicy => objects.add(InstallPart::Workload, plan, NETWORK_POLICY),
        Component::HostNetwork => host_network(objects),
        Component::ServiceMonitor => monitoring::service_monitor(objects, plan),
        Component::Alerts => monitoring::alerts(objects, plan),
        Component::Dashboards => monitoring::dashboards(objects, plan),
        Component::AfterReady => after_ready(objects, plan),
        Component::NoEvents => no_events(objects),
        Component::FailClosed => fail_closed(objects, plan),
        Component::PolicyStrict => policies::strict(objects, plan),
        Component::PolicyReaders => objects.add_of_cluster(InstallPart::Rbac, plan, POLICY_READERS),
        Component::ArkBrokers => policies::workloads(objects, plan),
        // The audit looks whether it may read pods.
        Component::Scan => objects.cluster_role.rules.get_or_insert_default().push(rbac::pods()),
        Component::Templates => templates(objects, plan),
        // Makes Argo CD keep fields of the configurations that are not in Git.
        Component::GitopsArgocd => {
            annotate(objects, "argocd.argoproj.io/sync-options", "ServerSideApply=true");
        }
        // Makes Flux keep fields of the configurations that are not in Git.
        Component::GitopsFlux => annotate(objects, "kustomize.toolkit.fluxcd.io/ssa", "Merge"),
    }
}

/// Three replicas, always in different zones; a drain takes one at a time.
fn ha(objects: &mut Objects) {
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
fn single_node(objects: &mut Objects) {
    objects.set(WORKLOAD, "replicas", 1);
    objects.disruption_budget = None;
    let mutating = objects.mutating.webhooks.iter_mut().flatten();
    let entries = mutating.chain(objects.validating.webhooks.iter_mut().flatten());
    for entry in entries.filter(|entry| entry.name != full_name(REQUIRED)) {
        entry.failure_policy = Some(IGNORE.to_owned());
    }
}

/// One replica, with a detailed log, of an image that only this machine has.
fn kind_dev(objects: &mut Objects) {
    objects.set(WORKLOAD, "replicas", 1);
    objects.remove(WORKLOAD, "minReadySeconds");
    objects.disruption_budget = None;
    objects.set(CONTAINER, "imagePullPolicy", "Never");
    objects.arguments.push("--log=memgate=debug".to_owned());
}

/// Uses the machine's network, for clusters whose apiserver cannot reach pods. Only the Pod Security level `privileged`
/// allows it. A port can be used once on a machine, so an update must take one replica away before it adds another.
fn host_network(objects: &mut Objects) {
    let level = string_map(&[("pod-security.kubernetes.io/enforce", "privileged")]);
    objects.namespace.metadata.labels.get_or_insert_default().extend(level);
    objects.set("/spec/strategy", "rollingUpdate", json!({"maxSurge": 0, "maxUnavailable": 1}));
    objects.set(POD, "hostNetwork", true);
    objects.set(POD, "dnsPolicy", "ClusterFirstWithHostNet");
    set_port(objects, WEBHOOK, HOST_WEBHOOK_PORT);
    set_port(objects, HEALTH, HOST_HEALTH_PORT.into());
}

/// Refuses agent pods while memgate does not answer, except pods of platforms that can run without memory.
fn fail_closed(objects: &mut Objects, plan: &InstallPlan) {
    let strict = plan.families.iter().filter(|family| family.pods.honour_required);
    let names: Vec<_> = strict.flat_map(|family| pods_names(family)).collect();
    let entries = objects.mutating.webhooks.iter_mut().flatten();
    for entry in entries.filter(|entry| names.contains(&entry.name)) {
        entry.failure_policy = Some(FAIL.to_owned());
    }
}

/// Makes the entries that fail closed match nothing until a replica has been ready and has given the marking role to an
/// account, for which the entries ask the authorizer.
fn after_ready(objects: &mut Objects, plan: &InstallPlan) {
    objects.arguments.push("--register-after-ready".to_owned());
    objects.add(InstallPart::Rbac, plan, REGISTER);
    let namespace = &plan.namespace;
    let expression = format!(
        "[authorizer.serviceAccount('{namespace}', '{REGISTERED}').group('memgate.dev').resource('webhooks')\
         .namespace('{namespace}').check('register')].exists(answer, answer.allowed() || answer.errored())"
    );
    for configuration in [&mut objects.mutating, &mut objects.validating] {
        let labels = configuration.metadata.labels.get_or_insert_default();
        labels.insert("memgate.dev/register".to_owned(), "after-ready".to_owned());
        let entries = configuration.webhooks.iter_mut().flatten();
        for entry in entries.filter(|entry| entry.failure_policy.as_deref() == Some(FAIL)) {
            entry.match_conditions.get_or_insert_default().push(condition(("registered", &expression)));
        }
    }
}

/// Reviews workloads in namespaces with the label `memgate.dev/preview=enabled`.
fn templates(objects: &mut Objects, plan: &InstallPlan) {
    objects.validating.webhooks.get_or_insert_default().push(webhooks::templates(plan));
}

/// Reads the settings file.
fn settings(objects: &mut Objects) {
    objects.mount(&json!({"name": "settings", "configMap": {"name": SETTINGS}}), SETTINGS_DIRECTORY);
    objects.arguments.push(format!("--config={SETTINGS_DIRECTORY}/settings.yaml"));
}

/// Removes the Events, and the permission to write them.
fn no_events(objects: &mut Objects) {
    objects.arguments.push("--no-events".to_owned());
    let events = rbac::events();
    objects.cluster_role.rules.get_or_insert_default().retain(|rule| *rule != events);
}

/// Annotates both webhook configurations.
fn annotate(objects: &mut Objects, key: &str, value: &str) {
    for metadata in [&mut objects.mutating.metadata, &mut objects.validating.metadata] {
        metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    }
}
