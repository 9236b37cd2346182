//! The objects that do not depend on platforms: a row for each file of the folder `objects`. `memgate manifests` and the
//! chart (`tests/deploy/helm.rs`) are made of the same rows.

use crate::component::Component::{self, Audit, CertManager, CsiDriver, Monitoring, NetworkPolicy};
use crate::install_plan::InstallPart::{Namespace, Policies, Rbac, Workload};
use crate::install_plan::{InstallPart, InstallPlan};

/// The objects of a file.
#[derive(Debug)]
pub struct Row {
    /// Their part of an installation.
    pub part: InstallPart,
    /// Which installations have them.
    pub need: Need,
    /// The objects, in YAML.
    pub text: &'static str,
}

/// Which installations have the objects of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// All of them.
    Always,
    /// Those whose certificates memgate makes.
    OwnCertificates,
    /// Those in which policies are in force.
    Policies,
    /// Those with one of these components.
    Components(&'static [Component]),
}

const fn row(part: InstallPart, need: Need, text: &'static str) -> Row {
    Row { part, need, text }
}

/// All rows, in the order in which they are applied within a part.
pub static ROWS: [Row; 18] = [
    row(Namespace, Need::Always, include_str!("../objects/namespace.yaml")),
    row(Rbac, Need::Always, include_str!("../objects/account.yaml")),
    row(Rbac, Need::OwnCertificates, include_str!("../objects/rbac.yaml")),
    row(Rbac, Need::Components(&[Audit]), include_str!("../objects/audit-account.yaml")),
    row(Rbac, Need::Policies, include_str!("../objects/roles.yaml")),
    // Only certificates of its own are written into the configurations.
    row(Policies, Need::OwnCertificates, include_str!("../objects/self-guard.yaml")),
    row(Workload, Need::Always, include_str!("../objects/service.yaml")),
    row(Workload, Need::Always, include_str!("../objects/resource-quota.yaml")),
    row(Workload, Need::Always, include_str!("../objects/deployment.yaml")),
    row(Workload, Need::Always, include_str!("../objects/disruption-budget.yaml")),
    row(Workload, Need::Components(&[Audit]), include_str!("../objects/audit.yaml")),
    row(Workload, Need::Components(&[NetworkPolicy]), include_str!("../objects/network-policy.yaml")),
    row(Workload, Need::Components(&[CertManager, CsiDriver]), include_str!("../objects/authority.yaml")),
    row(Workload, Need::Components(&[CertManager]), include_str!("../objects/certificate.yaml")),
    row(Workload, Need::Components(&[Monitoring]), include_str!("../objects/metrics-service.yaml")),
    row(Workload, Need::Components(&[Monitoring]), include_str!("../objects/service-monitor.yaml")),
    row(Workload, Need::Components(&[Monitoring]), include_str!("../objects/alerts.yaml")),
    row(Workload, Need::Components(&[Monitoring]), include_str!("../objects/dashboard.yaml")),
];

impl Need {
    /// Whether an installation has these objects.
    pub(super) fn is_met(self, plan: &InstallPlan) -> bool {
        match self {
            Self::Always => true,
            Self::OwnCertificates => plan.has_own_certificates(),
            Self::Policies => plan.policies,
            Self::Components(components) => components.iter().any(|it| plan.components.contains(it)),
        }
    }
}
