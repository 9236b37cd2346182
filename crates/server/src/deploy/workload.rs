//! What runs: the namespace, the Service, the Deployment and its disruption budget. What memgate may do is
//! in `rbac`.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, ConfigMapProjection, Container, ContainerPort, DownwardAPIProjection,
    DownwardAPIVolumeFile, HTTPGetAction, KeyToPath, Namespace, ObjectFieldSelector, PodAffinityTerm,
    PodAntiAffinity, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ProjectedVolumeSource,
    ResourceRequirements, SeccompProfile, SecurityContext, Service, ServiceAccountTokenProjection,
    ServicePort, ServiceSpec, TopologySpreadConstraint, Volume, VolumeMount, VolumeProjection,
    WeightedPodAffinityTerm,
};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::deploy::install_plan::InstallPlan;
use crate::deploy::metadata::{NAME, labels, metadata, string_map};

/// Where the webhook listens: a port that firewalls of private clusters leave open to the
/// apiserver, because the kubelet has it too.
pub(super) const WEBHOOK_PORT: i32 = 10250;
/// Where probes and metrics are served.
pub(super) const HEALTH_PORT: i32 = 8081;
/// Leaves policies alone: the base lacks the rights for them.
pub(super) const NO_POLICIES: &str = "--no-policies";
/// Where client libraries look for the service account.
const ACCOUNT_DIRECTORY: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long a start may take before the kubelet tries another one.
const STARTUP_SECONDS: i32 = 60;
/// The label of a node that names the machine.
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// The label of a node that names what fails together.
pub(super) const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// Time for a drain: the longest call is 30 s, and endpoints take a while to forget a pod.
const GRACE_SECONDS: i64 = 120;

/// The namespace, closed to anything that needs privileges.
pub(super) fn namespace(plan: &InstallPlan) -> Namespace {
    let mut labels = labels();
    labels.extend(string_map(&[("pod-security.kubernetes.io/enforce", "restricted")]));
    Namespace {
        metadata: ObjectMeta {
            name: Some(plan.namespace.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}

/// The Service that the apiserver calls.
pub(super) fn service(plan: &InstallPlan) -> Service {
    Service {
        metadata: metadata(plan),
        spec: Some(ServiceSpec {
            selector: Some(labels()),
            ports: Some(vec![ServicePort {
                name: Some("webhook".to_owned()),
                port: 443,
                target_port: Some(IntOrString::String("webhook".to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Two replicas, of which one is always there.
pub(super) fn deployment(plan: &InstallPlan) -> Deployment {
    Deployment {
        metadata: metadata(plan),
        spec: Some(DeploymentSpec {
            replicas: Some(2),
            min_ready_seconds: Some(5),
            selector: selector(),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_unavailable: Some(IntOrString::Int(0)),
                    max_surge: Some(IntOrString::Int(1)),
                }),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels()), ..ObjectMeta::default() }),
                spec: Some(pod()),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

/// Keeps one replica through node drains, and never holds up the removal of a broken one.
pub(super) fn disruption_budget(plan: &InstallPlan) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: metadata(plan),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(1)),
            selector: Some(selector()),
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}

pub(super) fn selector() -> LabelSelector {
    LabelSelector { match_labels: Some(labels()), match_expressions: None }
}

fn pod() -> PodSpec {
    PodSpec {
        service_account_name: Some(NAME.to_owned()),
        automount_service_account_token: Some(false),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(65532),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..PodSecurityContext::default()
        }),
        topology_spread_constraints: Some([HOSTNAME_LABEL, ZONE_LABEL].map(topology_spread).to_vec()),
        affinity: Some(pod_anti_affinity()),
        volumes: Some(vec![account_volume()]),
        ..PodSpec::default()
    }
}

/// On different machines where that is possible; on one machine rather than not at all.
fn pod_anti_affinity() -> Affinity {
    let term = WeightedPodAffinityTerm {
        weight: 100,
        pod_affinity_term: PodAffinityTerm {
            topology_key: HOSTNAME_LABEL.to_owned(),
            label_selector: Some(selector()),
            ..PodAffinityTerm::default()
        },
    };
    Affinity {
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![term]),
            ..PodAntiAffinity::default()
        }),
        ..Affinity::default()
    }
}

fn topology_spread(topology: &str) -> TopologySpreadConstraint {
    TopologySpreadConstraint {
        topology_key: topology.to_owned(),
        max_skew: 1,
        when_unsatisfiable: "ScheduleAnyway".to_owned(),
        label_selector: Some(selector()),
        ..TopologySpreadConstraint::default()
    }
}

/// memgate itself.
pub(super) fn container(plan: &InstallPlan) -> Container {
    Container {
        name: NAME.to_owned(),
        image: Some(plan.image.clone()),
        args: Some(arguments(plan)),
        ports: Some(vec![port("webhook", WEBHOOK_PORT), port("health", HEALTH_PORT)]),
        startup_probe: Some(Probe {
            period_seconds: Some(1),
            failure_threshold: Some(STARTUP_SECONDS),
            ..probe("/livez")
        }),
        liveness_probe: Some(Probe { timeout_seconds: Some(5), ..probe("/livez") }),
        readiness_probe: Some(Probe { period_seconds: Some(5), ..probe("/readyz") }),
        resources: Some(ResourceRequirements {
            requests: Some([quantity("cpu", "20m"), quantity("memory", "32Mi")].into()),
            limits: Some([quantity("memory", "256Mi")].into()),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(vec![mount("account", ACCOUNT_DIRECTORY)]),
        ..Container::default()
    }
}

fn arguments(plan: &InstallPlan) -> Vec<String> {
    let mut arguments = vec![
        "serve".to_owned(),
        format!("--listen=[::]:{WEBHOOK_PORT}"),
        format!("--health=[::]:{HEALTH_PORT}"),
        "--certs=builtin".to_owned(),
        NO_POLICIES.to_owned(),
    ];
    // Also where memgate writes nothing into them: who looks at the Deployment learns what they are called.
    arguments.extend((plan.name != NAME).then(|| format!("--webhook-configuration={}", plan.name)));
    arguments
}

fn port(name: &str, port: i32) -> ContainerPort {
    ContainerPort { name: Some(name.to_owned()), container_port: port, ..ContainerPort::default() }
}

fn probe(path: &str) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String("health".to_owned()),
            ..HTTPGetAction::default()
        }),
        ..Probe::default()
    }
}

fn quantity(name: &str, amount: &str) -> (String, Quantity) {
    (name.to_owned(), Quantity(amount.to_owned()))
}

pub(super) fn mount(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    }
}

/// What the kubelet would mount by itself, with a token that lives an hour.
fn account_volume() -> Volume {
    let token = VolumeProjection {
        service_account_token: Some(ServiceAccountTokenProjection {
            path: "token".to_owned(),
            expiration_seconds: Some(3600),
            audience: None,
        }),
        ..VolumeProjection::default()
    };
    let ca = VolumeProjection {
        config_map: Some(ConfigMapProjection {
            name: "kube-root-ca.crt".to_owned(),
            items: Some(vec![KeyToPath { key: "ca.crt".to_owned(), path: "ca.crt".to_owned(), mode: None }]),
            optional: None,
        }),
        ..VolumeProjection::default()
    };
    let namespace = VolumeProjection {
        downward_api: Some(DownwardAPIProjection {
            items: Some(vec![DownwardAPIVolumeFile {
                path: "namespace".to_owned(),
                field_ref: Some(ObjectFieldSelector {
                    field_path: "metadata.namespace".to_owned(),
                    api_version: None,
                }),
                ..DownwardAPIVolumeFile::default()
            }]),
        }),
        ..VolumeProjection::default()
    };
    Volume {
        name: "account".to_owned(),
        projected: Some(ProjectedVolumeSource {
            sources: Some(vec![token, ca, namespace]),
            default_mode: None,
        }),
        ..Volume::default()
    }
}
