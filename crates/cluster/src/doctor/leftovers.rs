//! Objects that a component added and that are still there after it was taken away.
//!
//! The objects carry the labels [`INSTALLATION_LABEL`] and [`COMPONENT_LABEL`]. Entries and arguments show most components; of those that
//! they do not show the Deployment has an annotation each, and `HAS_RECORDS`, since that of an earlier build has none.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::cluster_state::{Fetched, Installation, text};
use crate::doctor::check::{Check, abbreviated, unreadable};
use crate::doctor::inferred::components;
use memgate_install::component::{Component, RECORDED};
use memgate_install::metadata::{COMPONENT_LABEL, INSTALLATION_LABEL};
use memgate_workbench::report::counted;

const ID: &str = "leftovers";

/// The annotation of a Deployment that has one for each of the recorded components.
const HAS_RECORDS: &str = "memgate.dev/components";

/// The components that entries and arguments always show.
const SHOWN: [Component; 5] = [
    Component::Policies,
    Component::PolicyStrict,
    Component::AfterReady,
    Component::ArkBrokers,
    Component::Templates,
];

/// A check for each component that left objects, or one for all.
pub fn checks(found: &Installation) -> Vec<Check> {
    if found.own_url().is_some() {
        return Vec::new();
    }
    let subject = format!("installation {}", found.name);
    let unknown =
        unreadable(&found.additions, ID, &subject).or_else(|| unreadable(&found.deployment, ID, &subject));
    if let Some(unknown) = unknown {
        return vec![unknown];
    }
    let mut left: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for object in found.additions.items() {
        if let Some(component) = component(&found.name, object).filter(|component| is_gone(found, component))
        {
            left.entry(component).or_default().push(object);
        }
    }
    let mut checks: Vec<Check> =
        left.iter().map(|(component, objects)| check(&found.name, component, objects)).collect();
    if checks.is_empty() {
        checks.push(Check::ok(ID, subject, "components that were taken away left no objects"));
    }
    checks
}

fn check(installation: &str, component: &str, objects: &[&Value]) -> Check {
    let title = |object: &&Value| format!("{} {}", text(object, "/kind"), text(object, "/metadata/name"));
    let names: Vec<String> = objects.iter().map(title).collect();
    let message = format!(
        "the installation no longer has this component, which left {}: {}",
        counted(objects.len(), "object"),
        abbreviated(&names)
    );
    let kinds: BTreeSet<String> = objects.iter().map(|object| text(object, "/kind").to_lowercase()).collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(",");
    let which = format!("-l {INSTALLATION_LABEL}={installation},{COMPONENT_LABEL}={component}");
    let namespace =
        objects.iter().map(|object| text(object, "/metadata/namespace")).find(|name| !name.is_empty());
    let namespace = namespace.map_or_else(String::new, |namespace| format!(" -n {namespace}"));
    Check::warn(ID, format!("component {component}"), message)
        .help(format!("kubectl delete {kinds}{namespace} {which} --ignore-not-found"))
}

/// The component that added an object of this installation.
fn component<'o>(installation: &str, object: &'o Value) -> Option<&'o str> {
    let owner = label(object, INSTALLATION_LABEL)?;
    label(object, COMPONENT_LABEL).filter(|_| owner == installation)
}

fn label<'o>(object: &'o Value, key: &str) -> Option<&'o str> {
    object.pointer("/metadata/labels")?.get(key)?.as_str()
}

/// Whether the installation does not have a component; false where that is not known.
fn is_gone(found: &Installation, component: &str) -> bool {
    let Fetched::Found(deployment) = &found.deployment else { return true };
    let annotations = deployment.pointer("/metadata/annotations");
    let has = |key: &str| annotations.is_some_and(|all| all.get(key).is_some());
    let named = |known: &Component| known.name() == component;
    if RECORDED.iter().any(named) {
        return has(HAS_RECORDS) && !has(&format!("memgate.dev/component-{component}"));
    }
    SHOWN.into_iter().find(named).is_some_and(|shown| !components(found).contains(&shown))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::check::CheckStatus;

    fn network_policy(labels: &Value) -> Value {
        json!({"kind": "NetworkPolicy", "metadata": {"name": "memgate", "labels": labels}})
    }

    fn said(deployment: Fetched<Value>, additions: Vec<Value>) -> Vec<(CheckStatus, String)> {
        let additions = Fetched::Found(additions);
        let found =
            Installation { name: "memgate".to_owned(), deployment, additions, ..Installation::default() };
        checks(&found).into_iter().map(|check| (check.status, check.subject)).collect()
    }

    fn with(annotations: &[&str]) -> Fetched<Value> {
        let annotations: serde_json::Map<_, _> =
            annotations.iter().map(|key| ((*key).to_owned(), "".into())).collect();
        Fetched::Found(json!({"metadata": {"annotations": annotations}}))
    }

    #[test]
    fn names_what_components_left() {
        let of = |component: &str| json!({INSTALLATION_LABEL: "memgate", COMPONENT_LABEL: component});
        let policies = || vec![network_policy(&of("network-policy"))];
        let left = |component: &str| vec![(CheckStatus::Warn, format!("component {component}"))];
        let nothing = vec![(CheckStatus::Ok, "installation memgate".to_owned())];
        assert_eq!(said(with(&[HAS_RECORDS]), policies()), left("network-policy"));
        assert_eq!(said(with(&[HAS_RECORDS, "memgate.dev/component-network-policy"]), policies()), nothing);
        // An earlier build says nothing of it.
        assert_eq!(said(with(&[]), policies()), nothing);
        assert_eq!(said(Fetched::Absent, policies()), left("network-policy"));
        assert_eq!(said(with(&[]), vec![network_policy(&of("after-ready"))]), left("after-ready"));
        let other = json!({INSTALLATION_LABEL: "memgate-b", COMPONENT_LABEL: "network-policy"});
        assert_eq!(said(with(&[HAS_RECORDS]), vec![network_policy(&other)]), nothing);
        assert_eq!(said(Fetched::Unknown("no".to_owned()), policies())[0].0, CheckStatus::Unknown);
    }
}
