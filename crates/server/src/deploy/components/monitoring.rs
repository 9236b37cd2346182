//! What watches over memgate: metrics, alerts and a dashboard. Two kinds are the Prometheus operator's.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::deploy::install_plan::{InstallPart, InstallPlan};
use crate::deploy::metadata::{labels, metadata, string_map};
use crate::deploy::objects::Objects;
use crate::deploy::workload::HEALTH_PORT;
use crate::manifest::document::values;
use crate::manifest::source::Source;

/// Groups of rules for Prometheus.
const ALERTS: &str = include_str!("../../../../../deploy/monitoring/alerts.yaml");
/// For Grafana.
const DASHBOARD: &str = include_str!("../../../../../deploy/monitoring/dashboard.json");
/// What Grafana's own chart looks for.
const DASHBOARD_LABEL: (&str, &str) = ("grafana_dashboard", "1");

/// A Service for metrics, also of replicas that are not ready, and the order to scrape it.
pub(super) fn service_monitor(objects: &mut Objects, plan: &InstallPlan) {
    let name = "memgate-metrics";
    let meta = ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(string_map(&[("app.kubernetes.io/name", name)])),
        ..metadata(plan)
    };
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": labels(),
            "ports": [{"name": "metrics", "port": HEALTH_PORT, "targetPort": "health"}],
        },
    });
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata(plan),
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "endpoints": [{"port": "metrics", "path": "/metrics"}],
        },
    });
    objects.others.extend([(InstallPart::Workload, service), (InstallPart::Workload, monitor)]);
}

/// The alerts.
pub(super) fn alerts(objects: &mut Objects, plan: &InstallPlan) {
    let source = Arc::new(Source::new("alerts.yaml", ALERTS));
    let groups = values(&source, &mut Vec::new()).into_iter().next();
    let rule = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata(plan),
        "spec": groups.map(|groups| groups.value().clone()),
    });
    objects.others.push((InstallPart::Workload, rule));
}

/// The dashboard, in a ConfigMap as Grafana's sidecar collects them.
pub(super) fn dashboards(objects: &mut Objects, plan: &InstallPlan) {
    let mut metadata = metadata(plan);
    metadata.name = Some("memgate-dashboard".to_owned());
    metadata.labels.get_or_insert_default().extend(string_map(&[DASHBOARD_LABEL]));
    let data: Value = json!({"memgate.json": DASHBOARD});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    objects.others.push((InstallPart::Workload, map));
}
