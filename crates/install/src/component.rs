//! The components of an installation: their names, in the order in which they are applied. `components` has the change
//! that each makes to the base.

/// A component of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// Three replicas, in different zones.
    Ha,
    /// Only the apiserver is answered.
    Mtls,
    /// A NetworkPolicy for memgate's traffic.
    NetworkPolicy,
    /// The network of the machine, where the apiserver cannot reach that of the pods.
    HostNetwork,
    /// Metrics and alerts by the Prometheus operator, and a dashboard for Grafana.
    Monitoring,
    /// Pods and resources in strict namespaces are refused while memgate does not answer, since policies could deny them.
    PolicyStrict,
    /// The workloads of ark's memory service are known, by which policies judge whether memory is durable.
    ArkBrokers,
    /// The certificate and the trust in it come from cert-manager.
    CertManager,
    /// The certificate comes from the CSI driver of cert-manager.
    CsiDriver,
    /// The certificate comes from a Secret that memgate does not write.
    CertFiles,
    /// Annotations for Argo CD and Flux.
    Gitops,
    /// What is stored is audited, where policies are in force; on unless it is left out.
    Audit,
}

impl Component {
    /// Every component with its name in flags.
    pub const ALL: [(&'static str, Self); 12] = [
        ("ha", Self::Ha),
        ("mtls", Self::Mtls),
        ("network-policy", Self::NetworkPolicy),
        ("host-network", Self::HostNetwork),
        ("monitoring", Self::Monitoring),
        ("policy-strict", Self::PolicyStrict),
        ("ark-brokers", Self::ArkBrokers),
        ("cert-manager", Self::CertManager),
        ("csi-driver", Self::CsiDriver),
        ("cert-files", Self::CertFiles),
        ("gitops", Self::Gitops),
        ("audit", Self::Audit),
    ];

    /// Whether the certificate comes from elsewhere with this component. An installation has at most one of these.
    pub const fn is_certificate(self) -> bool {
        matches!(self, Self::CertManager | Self::CsiDriver | Self::CertFiles)
    }
}
