//! The label `memgate.dev/inject` of namespaces and agent pods.

use std::collections::BTreeMap;

use crate::cluster_state::{Agents, Installation};
use crate::doctor::check::{Check, abbreviated, unreadable};
use memgate_platforms::inject::INJECT_LABEL;
use memgate_workbench::report::counted;

const ID: &str = "inject-label";

/// A check for each label that opts agents out or has an unknown value.
pub fn checks(found: &Installation, agents: &Agents) -> Vec<Check> {
    let pods = pods_by_namespace(agents);
    let mut checks: Vec<Check> = unreadable(&found.namespaces, ID, "Namespaces").into_iter().collect();
    let namespaces = found.namespaces.as_ref().found();
    for (name, labels) in namespaces.into_iter().flatten() {
        let value = labels.get(INJECT_LABEL);
        let subject = format!("Namespace {name}");
        match value.map(String::as_str) {
            None => {}
            Some("disabled") => checks.extend(pods.get(name).map(|pods| {
                let message = format!("it opts out, but holds agent pods: {}", abbreviated(pods));
                let help = format!("kubectl label namespace {name} {INJECT_LABEL}-, unless that is wanted");
                Check::warn(ID, subject, message).help(help)
            })),
            Some(other) => {
                let message = format!("{INJECT_LABEL}={other} on a namespace means nothing");
                let help = "\"disabled\" opts a namespace out; \"required\" is for pods";
                checks.push(Check::warn(ID, subject, message).help(help));
            }
        }
    }
    checks.extend(agents.pods.iter().filter_map(|pod| {
        let value = pod.json.pointer("/metadata/labels")?.get(INJECT_LABEL)?.as_str()?;
        let known = matches!(value, "disabled" | "required");
        let check = || {
            let message = format!("{INJECT_LABEL}={value} on a pod means nothing");
            Check::warn(ID, pod.title(), message).help("use \"disabled\" or \"required\"")
        };
        (!known).then(check)
    }));
    if checks.is_empty() {
        let message = format!(
            "{}, none with a label that is odd or in the way",
            counted(namespaces.map_or(0, BTreeMap::len), "namespace")
        );
        checks.push(Check::ok(ID, "Namespaces", message));
    }
    checks
}

fn pods_by_namespace(agents: &Agents) -> BTreeMap<String, Vec<String>> {
    let mut pods: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in &agents.pods {
        pods.entry(pod.namespace().to_owned()).or_default().push(pod.name().to_owned());
    }
    pods
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster_state::{AgentPod, Fetched};
    use crate::doctor::check::CheckStatus;

    fn checks_of(namespace: Option<&str>, pod: Option<&str>) -> Vec<(CheckStatus, String)> {
        let labels =
            |value: Option<&str>| value.map(|value| json!({INJECT_LABEL: value})).unwrap_or(json!({}));
        let of_namespace = namespace.map(|value| (INJECT_LABEL.to_owned(), value.to_owned()));
        let namespaces = [("team-a".to_owned(), of_namespace.into_iter().collect())].into();
        let found = Installation { namespaces: Fetched::Found(namespaces), ..Installation::default() };
        let json = json!({"metadata": {"name": "scout-0", "namespace": "team-a", "labels": labels(pod)}});
        let agents = Agents { pods: vec![AgentPod { json }], ..Agents::default() };
        checks(&found, &agents).into_iter().map(|check| (check.status, check.message)).collect()
    }

    #[test]
    fn checks_the_labels_of_namespaces_and_pods() {
        for (namespace, pod, status, expected) in [
            (None, None, CheckStatus::Ok, "1 namespace, none"),
            (None, Some("required"), CheckStatus::Ok, "1 namespace, none"),
            (Some("disabled"), None, CheckStatus::Warn, "it opts out, but holds agent pods: scout-0"),
            (
                Some("Disabled"),
                None,
                CheckStatus::Warn,
                "memgate.dev/inject=Disabled on a namespace means nothing",
            ),
            (None, Some("yes"), CheckStatus::Warn, "memgate.dev/inject=yes on a pod means nothing"),
        ] {
            let checks = checks_of(namespace, pod);
            let [(found, text)] = checks.as_slice() else { panic!("{checks:?}") };
            assert!(*found == status && text.starts_with(expected), "{text}");
        }
    }
}
