//! The alerts and the dashboard of memgate.

use serde_json::Value;

use crate::install_plan::InstallPlan;
use crate::metadata::documents;
use crate::objects::Objects;
use memgate_model::page::{Pages, unpacked};

/// The groups of rules for Prometheus with their runbooks, and the dashboard for Grafana.
static FILES: Pages = Pages::new(|| unpacked(include_bytes!(concat!(env!("OUT_DIR"), "/pages"))));
/// The runbooks of the alerts, by name.
pub(crate) fn runbooks() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.all().filter_map(|(path, text)| {
        let name = path.strip_prefix("runbooks/")?.strip_suffix(".md")?;
        (name != "README").then_some((name, text))
    })
}

/// Fills in the alerts and the dashboard, which are files for tools of their own.
pub(super) fn fill(objects: &mut Objects, plan: &InstallPlan) {
    let mut groups = documents(FILES.page("monitoring/alerts.yaml")).next();
    if let (Some(groups), Some(runbooks)) = (&mut groups, &plan.runbooks) {
        name_addresses(groups, runbooks);
    }
    if let (Some(spec), Some(groups)) = (objects.other("PrometheusRule", "/spec"), groups) {
        *spec = groups;
    }
    if let Some(text) = objects.other("ConfigMap", "/data/memgate.json") {
        *text = FILES.page("monitoring/dashboard.json").into();
    }
}

/// The annotation of an alert that names its runbook, up to the name.
const EXPLAIN: &str = "memgate explain runbook/";

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
