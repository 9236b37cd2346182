//! The components of an installation: their names, in the order in which they are applied, and which of them exclude each
//! other. `components` has the
//! change of the base that each makes.
//!
//! `deploy/kustomize/components` has the same choices under the same names. Families are components,
//! too, but what they add comes from their tables.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::family;
use crate::model::family::Family;

/// A component of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// A family.
    Family(&'static Family),
    /// MemoryPolicies count, and so do pods that opted out of injection.
    Policies,
    /// Three replicas, in different zones.
    Ha,
    /// One replica, and nothing is refused while it is away.
    SingleNode,
    /// One replica of an image that was loaded into a development cluster.
    KindDev,
    /// Only the apiserver is answered.
    Mtls,
    /// What may reach memgate, and what memgate may reach.
    NetworkPolicy,
    /// The network of the machine, where the apiserver cannot reach that of the pods.
    HostNetwork,
    /// Metrics by the Prometheus operator.
    ServiceMonitor,
    /// Alerts for it.
    Alerts,
    /// A dashboard for Grafana.
    Dashboards,
    /// The priority of what a cluster cannot do without.
    PriorityCritical,
    /// Pods of agents are refused while memgate is away.
    FailClosed,
    /// So are pods and resources in namespaces that ask for it, since policies could deny them.
    PolicyStrict,
    /// Warnings about the pods of workloads in namespaces that ask for them.
    Templates,
    /// The certificate and the trust in it come from cert-manager.
    CertManager,
    /// The certificate comes from the CSI driver of cert-manager.
    CsiDriver,
    /// The certificate comes from a Secret that memgate does not write.
    CertFiles,
    /// No Events, and no right to write any.
    NoEvents,
    /// What cannot work is refused while memgate is away.
    Vap,
    /// Defaults are written while memgate is away.
    Map,
    /// Files for the control plane rather than objects.
    StaticManifest,
    /// What Argo CD should know.
    GitopsArgocd,
    /// What Flux should know.
    GitopsFlux,
}

impl Component {
    /// Every component, families first.
    pub fn all() -> impl Iterator<Item = Self> {
        family::ALL.into_iter().map(Self::Family).chain(Self::OTHERS)
    }

    /// Every component that is not a family.
    pub const OTHERS: [Self; 23] = [
        Self::Policies,
        Self::Ha,
        Self::SingleNode,
        Self::KindDev,
        Self::Mtls,
        Self::NetworkPolicy,
        Self::HostNetwork,
        Self::ServiceMonitor,
        Self::Alerts,
        Self::Dashboards,
        Self::PriorityCritical,
        Self::FailClosed,
        Self::PolicyStrict,
        Self::Templates,
        Self::CertManager,
        Self::CsiDriver,
        Self::CertFiles,
        Self::NoEvents,
        Self::Vap,
        Self::Map,
        Self::StaticManifest,
        Self::GitopsArgocd,
        Self::GitopsFlux,
    ];

    /// The name, as in flags and as a directory.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        let name = match self {
            Self::Family(family) => return format!("family-{}", family.name).into(),
            Self::Policies => "policies",
            Self::Ha => "ha",
            Self::SingleNode => "single-node",
            Self::KindDev => "kind-dev",
            Self::CertManager => "cert-manager",
            Self::CsiDriver => "csi-driver",
            Self::CertFiles => "cert-files",
            Self::Mtls => "mtls",
            Self::NetworkPolicy => "network-policy",
            Self::HostNetwork => "host-network",
            Self::ServiceMonitor => "service-monitor",
            Self::Alerts => "alerts",
            Self::Dashboards => "dashboards",
            Self::PriorityCritical => "priority-critical",
            Self::NoEvents => "no-events",
            Self::FailClosed => "fail-closed",
            Self::PolicyStrict => "policy-strict",
            Self::Templates => "templates",
            Self::Vap => "vap",
            Self::Map => "map",
            Self::StaticManifest => "static-manifest",
            Self::GitopsArgocd => "gitops-argocd",
            Self::GitopsFlux => "gitops-flux",
        };
        name.into()
    }

    /// The component of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|component| component.name() == name)
    }

    /// The first Kubernetes, major and minor, whose apiserver takes what this component installs.
    ///
    /// Source: `kube_features.go` of k8s.io/apiserver 0.37, and which kinds each version serves as `v1`.
    #[must_use]
    pub const fn min_kubernetes(self) -> (u32, u32) {
        match self {
            // MutatingAdmissionPolicy is `v1` from here on; before, it is behind a gate, in other versions.
            // ManifestBasedAdmissionControlConfig is a gate of 1.36, on by default in 1.37.
            Self::Map | Self::StaticManifest => (1, 36),
            // Functions of CEL.
            Self::Vap => (1, 31),
            _ => MIN_KUBERNETES,
        }
    }

    /// What this component decides that only one may.
    #[must_use]
    pub const fn decides(self) -> Option<ExclusiveChoice> {
        match self {
            Self::Ha | Self::SingleNode | Self::KindDev => Some(ExclusiveChoice::Replicas),
            Self::CertManager | Self::CsiDriver | Self::CertFiles => Some(ExclusiveChoice::Certificate),
            Self::Family(_)
            | Self::Policies
            | Self::Mtls
            | Self::NetworkPolicy
            | Self::HostNetwork
            | Self::ServiceMonitor
            | Self::Alerts
            | Self::Dashboards
            | Self::PriorityCritical
            | Self::NoEvents
            | Self::FailClosed
            | Self::PolicyStrict
            | Self::Templates
            | Self::Vap
            | Self::Map
            | Self::StaticManifest
            | Self::GitopsArgocd
            | Self::GitopsFlux => None,
        }
    }
}

/// The first Kubernetes whose apiserver takes what is installed without any component: it has
/// ValidatingAdmissionPolicy and match conditions of webhooks as `v1`.
pub const MIN_KUBERNETES: (u32, u32) = (1, 30);

/// What only one component may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExclusiveChoice {
    /// How many replicas there are.
    Replicas,
    /// Where the certificate comes from.
    Certificate,
}

/// Two components of which only one can be chosen.
#[must_use]
pub fn contradiction(components: &BTreeSet<Component>) -> Option<(Component, Component)> {
    let excluded_by = |one: &Component| {
        let decides = |other: &&Component| *other > one && other.decides() == one.decides();
        one.decides().and_then(|_| components.iter().find(decides)).map(|other| (*one, *other))
    };
    components.iter().find_map(excluded_by)
}
