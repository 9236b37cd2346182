//! The components of an installation: their names, in the order in which they are applied, and which of them exclude
//! each other. `components` has the change that each makes to the base.
//!
//! `deploy/kustomize/components` has the same choices under the same names. Families are components too; their additions
//! come from their rows.

use memgate_model::family::Family;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Makes [`Component`] of its variants and their names.
macro_rules! components {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A component of an installation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Component {
            /// A family.
            Family(&'static Family),
            $($(#[$doc])* $variant,)*
        }

        impl Component {
            /// Every component, families first.
            pub fn all() -> impl Iterator<Item = Self> {
                memgate_platforms::ALL.into_iter().map(Self::Family).chain([$(Self::$variant),*])
            }

            /// The name, as in flags and as a directory.
            pub fn name(self) -> Cow<'static, str> {
                match self {
                    Self::Family(family) => format!("family-{}", family.name).into(),
                    $(Self::$variant => $name.into(),)*
                }
            }
        }
    };
}

components! {
    /// MemoryPolicies are in force, also for pods that opted out of injection.
    Policies = "policies",
    /// Three replicas, in different zones.
    Ha = "ha",
    /// One replica; requests are admitted while it does not answer.
    SingleNode = "single-node",
    /// One replica of an image that was loaded into a development cluster.
    KindDev = "kind-dev",
    /// Only the apiserver is answered.
    Mtls = "mtls",
    /// The settings file from a ConfigMap.
    Settings = "settings",
    /// A NetworkPolicy for memgate's traffic.
    NetworkPolicy = "network-policy",
    /// The network of the machine, where the apiserver cannot reach that of the pods.
    HostNetwork = "host-network",
    /// Metrics by the Prometheus operator.
    ServiceMonitor = "service-monitor",
    /// Alerts for it.
    Alerts = "alerts",
    /// A dashboard for Grafana.
    Dashboards = "dashboards",
    /// Pods of agents are refused while memgate does not answer.
    FailClosed = "fail-closed",
    /// Pods and resources in strict namespaces are refused while memgate does not answer, since policies could deny them.
    PolicyStrict = "policy-strict",
    /// Every authenticated user may read policies.
    PolicyReaders = "policy-readers",
    /// The workloads of ark's memory service are known, by which policies judge whether memory is durable.
    ArkBrokers = "ark-brokers",
    /// Running pods of agents that lack their memory are counted.
    Scan = "scan",
    /// Warnings about the pods of workloads in namespaces that ask for them.
    Templates = "templates",
    /// The certificate and the trust in it come from cert-manager.
    CertManager = "cert-manager",
    /// The certificate comes from the CSI driver of cert-manager.
    CsiDriver = "csi-driver",
    /// The certificate comes from a Secret that memgate does not write.
    CertFiles = "cert-files",
    /// Entries that fail closed match nothing until a replica has been ready.
    AfterReady = "after-ready",
    /// No Events, and no permission to write them.
    NoEvents = "no-events",
    /// An annotation for Argo CD.
    GitopsArgocd = "gitops-argocd",
    /// An annotation for Flux.
    GitopsFlux = "gitops-flux",
}

/// The components whose objects neither an entry nor an argument of the Deployment shows. The Deployment has an annotation
/// for each, so that `doctor` finds objects of one that was taken away.
pub const RECORDED: [Component; 5] = [
    Component::PolicyReaders,
    Component::NetworkPolicy,
    Component::ServiceMonitor,
    Component::Alerts,
    Component::Dashboards,
];

/// The first Kubernetes whose apiserver accepts an installation without components: it has
/// ValidatingAdmissionPolicy and match conditions of webhooks as `v1`.
pub const MIN_KUBERNETES: (u32, u32) = (1, 30);

/// The components that set the number of replicas.
const REPLICAS: [Component; 3] = [Component::Ha, Component::SingleNode, Component::KindDev];
/// The components by which a certificate comes from elsewhere.
pub const CERTIFICATES: [Component; 3] = [Component::CertManager, Component::CsiDriver, Component::CertFiles];

/// Two components of which only one can be chosen.
pub fn contradiction(components: &BTreeSet<Component>) -> Option<(Component, Component)> {
    [REPLICAS, CERTIFICATES].into_iter().find_map(|rivals| {
        let mut chosen = rivals.into_iter().filter(|rival| components.contains(rival));
        Some((chosen.next()?, chosen.next()?))
    })
}
