//! Monitoring of memgate: metrics, alerts and a dashboard. Two kinds belong to the Prometheus operator.

use serde_json::{Value, json};

use crate::install_plan::{InstallPart, InstallPlan};
use crate::metadata::{documents, metadata, string_map};
use crate::objects::Objects;
use memgate_model::page::{Pages, unpacked};

/// The groups of rules for Prometheus with their runbooks, and the dashboard for Grafana.
static FILES: Pages = Pages::new(|| unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/pages"))));
/// The label by which Grafana's chart finds dashboards.
const DASHBOARD_LABEL: (&str, &str) = ("grafana_dashboard", "1");
/// A Service for metrics, also of replicas that are not ready.
const SERVICE: &str = include_str!("../../objects/metrics-service.yaml");
/// The ServiceMonitor that scrapes it.
const MONITOR: &str = include_str!("../../objects/service-monitor.yaml");

/// The runbooks of the alerts, by name.
pub(crate) fn runbooks() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.all().filter_map(|(path, text)| {
        let name = path.strip_prefix("runbooks/")?.strip_suffix(".md")?;
        (name != "README").then_some((name, text))
    })
}

/// Adds the Service for metrics and its ServiceMonitor, the alerts, and the dashboard.
pub(super) fn add(objects: &mut Objects, plan: &InstallPlan) {
    objects.add(InstallPart::Workload, plan, SERVICE);
    objects.add(InstallPart::Workload, plan, MONITOR);
    alerts(objects, plan);
    dashboard(objects, plan);
}

/// The annotation of an alert that names its runbook, up to the name.
const EXPLAIN: &str = "memgate explain runbook/";

/// Adds the alerts.
fn alerts(objects: &mut Objects, plan: &InstallPlan) {
    let mut groups: Option<Value> = documents(FILES.page("monitoring/alerts.yaml")).next();
    if let (Some(groups), Some(runbooks)) = (&mut groups, &plan.runbooks) {
        name_addresses(groups, runbooks);
    }
    let rule = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata(plan),
        "spec": groups,
    });
    objects.others.push((InstallPart::Workload, rule));
}

/// Puts the address of each runbook in place of the command that prints it, as the annotation that Alertmanager's
/// templates know.
fn name_addresses(groups: &mut Value, runbooks: &str) {
    let groups = groups.get_mut("groups").and_then(Value::as_array_mut).into_iter().flatten();
    let rules = groups.filter_map(|group| group.get_mut("rules")?.as_array_mut()).flatten();
    for annotations in rules.filter_map(|rule| rule.get_mut("annotations")?.as_object_mut()) {
        let Some(command) = annotations.remove("runbook") else { continue };
        let name = command.as_str().and_then(|command| command.strip_prefix(EXPLAIN)).unwrap_or_default();
        annotations.insert("runbook_url".to_owned(), format!("{runbooks}{name}.md").into());
    }
}

/// Adds the dashboard, in a ConfigMap as Grafana's sidecar collects them.
fn dashboard(objects: &mut Objects, plan: &InstallPlan) {
    let mut metadata = metadata(plan);
    metadata.name = Some("memgate-dashboard".to_owned());
    metadata.labels.get_or_insert_default().extend(string_map(&[DASHBOARD_LABEL]));
    let data = json!({"memgate.json": FILES.page("monitoring/dashboard.json")});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    objects.others.push((InstallPart::Workload, map));
}
