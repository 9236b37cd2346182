//! The change that each component makes to the base.

mod availability;
mod certs;
pub(super) mod monitoring;
mod network;
mod operations;
mod policies;
mod reviews;

use crate::cel_policies;
use crate::component::Component;
use crate::install_plan::InstallPlan;
use crate::objects::Objects;

/// Applies the change of a component.
pub(super) fn apply(objects: &mut Objects, plan: &InstallPlan, component: Component) {
    match component {
        // The families are in the plan.
        Component::Family(_) => {}
        Component::Policies => policies::policies(objects, plan),
        Component::Ha => availability::ha(objects),
        Component::SingleNode => availability::single_node(objects),
        Component::KindDev => availability::kind_dev(objects),
        Component::CertManager => certs::cert_manager(objects, plan),
        Component::CsiDriver => certs::csi_driver(objects, plan),
        Component::CertFiles => certs::files(objects, plan),
        Component::Mtls => certs::mtls(objects),
        Component::Settings => operations::settings(objects),
        Component::NetworkPolicy => network::policy(objects, plan),
        Component::HostNetwork => network::host(objects),
        Component::ServiceMonitor => monitoring::service_monitor(objects, plan),
        Component::Alerts => monitoring::alerts(objects, plan),
        Component::Dashboards => monitoring::dashboards(objects, plan),
        Component::AfterReady => reviews::after_ready(objects, plan),
        Component::NoEvents => operations::no_events(objects),
        Component::FailClosed => reviews::fail_closed(objects, plan),
        Component::PolicyStrict => policies::strict(objects, plan),
        Component::ArkBrokers => policies::workloads(objects, plan),
        Component::Templates => reviews::templates(objects, plan),
        Component::Vap => objects.add_policies(cel_policies::validating(&plan.name, &plan.families)),
        Component::Map => objects.add_policies(cel_policies::mutating(&plan.name, &plan.families)),
        Component::StaticManifest => reviews::static_manifest(objects, plan),
        Component::GitopsArgocd => operations::argo_cd(objects),
        Component::GitopsFlux => operations::flux(objects),
    }
}
