//! The choices of an installation, each a change of the objects of the base.
//!
//! `deploy/kustomize/components` has the same choices under the same names. Families are components,
//! too, but what they add comes from their tables.

mod availability;
mod certs;
mod monitoring;
mod network;
mod operations;
mod policy;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::deploy::objects::Objects;
use crate::deploy::{Plan, cel_policies};
use crate::family;
use crate::model::family::Family;

/// A choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// One family more.
    Family(&'static Family),
    /// Three replicas, in different zones.
    Ha,
    /// One replica, and nothing is refused while it is away.
    SingleNode,
    /// One replica of an image that was loaded into a development cluster.
    KindDev,
    /// The certificate and the trust in it come from cert-manager.
    CertManager,
    /// The certificate comes from the CSI driver of cert-manager.
    CsiDriver,
    /// The certificate comes from a Secret that somebody else writes.
    CertFiles,
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
    /// No Events, and no right to write any.
    NoEvents,
    /// Pods of agents are refused while memgate is away.
    FailClosed,
    /// Warnings about the pods of workloads in namespaces that ask for them.
    Templates,
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
    /// Every choice, families first.
    pub fn all() -> impl Iterator<Item = Self> {
        family::ALL.into_iter().map(Self::Family).chain(Self::OTHERS)
    }

    /// Every choice that is not about one family.
    pub const OTHERS: [Self; 21] = [
        Self::Ha,
        Self::SingleNode,
        Self::KindDev,
        Self::CertManager,
        Self::CsiDriver,
        Self::CertFiles,
        Self::Mtls,
        Self::NetworkPolicy,
        Self::HostNetwork,
        Self::ServiceMonitor,
        Self::Alerts,
        Self::Dashboards,
        Self::PriorityCritical,
        Self::NoEvents,
        Self::FailClosed,
        Self::Templates,
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
            Self::Templates => "templates",
            Self::Vap => "vap",
            Self::Map => "map",
            Self::StaticManifest => "static-manifest",
            Self::GitopsArgocd => "gitops-argocd",
            Self::GitopsFlux => "gitops-flux",
        };
        name.into()
    }

    /// The choice of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|component| component.name() == name)
    }

    /// What two choices that exclude each other both decide.
    #[must_use]
    pub const fn decides(self) -> Option<Matter> {
        match self {
            Self::Ha | Self::SingleNode | Self::KindDev => Some(Matter::Replicas),
            Self::CertManager | Self::CsiDriver | Self::CertFiles => Some(Matter::Certificate),
            Self::Family(_)
            | Self::Mtls
            | Self::NetworkPolicy
            | Self::HostNetwork
            | Self::ServiceMonitor
            | Self::Alerts
            | Self::Dashboards
            | Self::PriorityCritical
            | Self::NoEvents
            | Self::FailClosed
            | Self::Templates
            | Self::Vap
            | Self::Map
            | Self::StaticManifest
            | Self::GitopsArgocd
            | Self::GitopsFlux => None,
        }
    }
}

/// What only one component may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matter {
    /// How many replicas there are.
    Replicas,
    /// Where the certificate comes from.
    Certificate,
}

/// Two choices of which only one can be made.
#[must_use]
pub fn contradiction(components: &BTreeSet<Component>) -> Option<(Component, Component)> {
    let rivals = |one: &Component| {
        let decides = |other: &&Component| *other > one && other.decides() == one.decides();
        one.decides().and_then(|_| components.iter().find(decides)).map(|other| (*one, *other))
    };
    components.iter().find_map(rivals)
}

/// Makes a choice.
pub(super) fn change(objects: &mut Objects, plan: &Plan, component: Component) {
    match component {
        // Its rules are in the plan.
        Component::Family(_) => {}
        Component::Ha => availability::ha(objects),
        Component::SingleNode => availability::single_node(objects),
        Component::KindDev => availability::kind_dev(objects),
        Component::CertManager => certs::cert_manager(objects, plan),
        Component::CsiDriver => certs::csi_driver(objects, plan),
        Component::CertFiles => certs::files(objects),
        Component::Mtls => certs::mtls(objects),
        Component::NetworkPolicy => network::policy(objects, plan),
        Component::HostNetwork => network::host(objects),
        Component::ServiceMonitor => monitoring::service_monitor(objects, plan),
        Component::Alerts => monitoring::alerts(objects, plan),
        Component::Dashboards => monitoring::dashboards(objects, plan),
        Component::PriorityCritical => operations::priority_critical(objects, plan),
        Component::NoEvents => operations::no_events(objects),
        Component::FailClosed => policy::fail_closed(objects, plan),
        Component::Templates => policy::templates(objects, plan),
        Component::Vap => objects.twins = cel_policies::validating(&plan.families),
        Component::Map => objects.writers = cel_policies::mutating(&plan.families),
        Component::StaticManifest => policy::static_manifest(objects),
        Component::GitopsArgocd => operations::argo_cd(objects),
        Component::GitopsFlux => operations::flux(objects),
    }
}
