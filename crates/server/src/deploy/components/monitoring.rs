//! Monitoring of memgate: metrics, alerts and a dashboard. Two kinds belong to the Prometheus operator.

use serde_json::json;

use crate::deploy::install_plan::{InstallPart, InstallPlan};
use crate::deploy::metadata::{metadata, string_map};
use crate::deploy::objects::Objects;
use crate::deploy::templates::documents;
use memgate_model::page::{Pages, unpacked};

/// The groups of rules for Prometheus, and the dashboard for Grafana.
static FILES: Pages = Pages::new(|| unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/pages"))));
/// The label by which Grafana's chart finds dashboards.
const DASHBOARD_LABEL: (&str, &str) = ("grafana_dashboard", "1");
/// A Service for metrics, also of replicas that are not ready.
const SERVICE: &str = include_str!("../../../../../deploy/kustomize/components/service-monitor/service.yaml");
/// The ServiceMonitor that scrapes it.
const MONITOR: &str =
    include_str!("../../../../../deploy/kustomize/components/service-monitor/service-monitor.yaml");

/// Adds the Service and its ServiceMonitor.
pub(super) fn service_monitor(objects: &mut Objects, plan: &InstallPlan) {
    objects.add(InstallPart::Workload, plan, SERVICE);
    objects.add(InstallPart::Workload, plan, MONITOR);
}

/// Adds the alerts.
pub(super) fn alerts(objects: &mut Objects, plan: &InstallPlan) {
    let rule = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata(plan),
        "spec": documents(FILES.page("alerts.yaml")).next(),
    });
    objects.others.push((InstallPart::Workload, rule));
}

/// Adds the dashboard, in a ConfigMap as Grafana's sidecar collects them.
pub(super) fn dashboards(objects: &mut Objects, plan: &InstallPlan) {
    let mut metadata = metadata(plan);
    metadata.name = Some("memgate-dashboard".to_owned());
    metadata.labels.get_or_insert_default().extend(string_map(&[DASHBOARD_LABEL]));
    let data = json!({"memgate.json": FILES.page("dashboard.json")});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    objects.others.push((InstallPart::Workload, map));
}
