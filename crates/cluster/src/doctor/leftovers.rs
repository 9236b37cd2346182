//! Objects that a component added and that are still there after it was taken away: policies without the webhook refuse
//! for ever.
//!
//! The objects carry the labels [`INSTALLATION_LABEL`] and [`COMPONENT_LABEL`]. Entries and arguments show most components; of those that
//! they do not show the Deployment has an annotation each, and `HAS_RECORDS`, since that of an earlier build has none.
//! Policies of earlier builds are known by their names.

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
    let mut left: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
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
    let are_labelled = objects.iter().all(|object| label(object, COMPONENT_LABEL).is_some());
    let which = if are_labelled {
        format!("-l {INSTALLATION_LABEL}={installation},{COMPONENT_LABEL}={component}")
    } else {
        let name = |object: &&Value| text(object, "/metadata/name").to_owned();
        objects.iter().map(name).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ")
    };
    let namespace =
        objects.iter().map(|object| text(object, "/metadata/namespace")).find(|name| !name.is_empty());
    let namespace = namespace.map_or_else(String::new, |namespace| format!(" -n {namespace}"));
    Check::warn(ID, format!("component {component}"), message)
        .help(format!("kubectl delete {kinds}{namespace} {which} --ignore-not-found"))
}

/// The component that added an object of this installation.
fn component(installation: &str, object: &Value) -> Option<String> {
    if let Some(owner) = label(object, INSTALLATION_LABEL) {
        return label(object, COMPONENT_LABEL).filter(|_| owner == installation).map(str::to_owned);
    }
    let suffix = text(object, "/metadata/name").strip_prefix(installation)?.strip_prefix('-')?;
    let mut families = memgate_platforms::ALL.into_iter();
    let (kind, component) = (text(object, "/kind"), |known: bool, name: &str| known.then(|| name.to_owned()));
    if kind.starts_with("Validating") {
        component(families.any(|it| it.in_cel.tables.iter().any(|table| table.name == suffix)), "vap")
    } else {
        component(families.any(|it| it.in_cel.defaults.iter().any(|write| write.name == suffix)), "map")
    }
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

    fn policy(name: &str, labels: &Value) -> Value {
        json!({"kind": "ValidatingAdmissionPolicy", "metadata": {"name": name, "labels": labels}})
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
        let vap = || vec![policy("memgate-ark-memories", &of("vap"))];
        let left = |component: &str| vec![(CheckStatus::Warn, format!("component {component}"))];
        let nothing = vec![(CheckStatus::Ok, "installation memgate".to_owned())];
        assert_eq!(said(with(&[HAS_RECORDS]), vap()), left("vap"));
        assert_eq!(said(with(&[HAS_RECORDS, "memgate.dev/component-vap"]), vap()), nothing);
        // An earlier build says nothing of it.
        assert_eq!(said(with(&[]), vap()), nothing);
        assert_eq!(said(Fetched::Absent, vap()), left("vap"));
        assert_eq!(said(with(&[]), vec![policy("memgate-x", &of("after-ready"))]), left("after-ready"));
        let other = json!({INSTALLATION_LABEL: "memgate-b", COMPONENT_LABEL: "vap"});
        assert_eq!(said(with(&[HAS_RECORDS]), vec![policy("memgate-b-ark-memories", &other)]), nothing);
        assert_eq!(said(Fetched::Unknown("no".to_owned()), vap())[0].0, CheckStatus::Unknown);
    }

    #[test]
    fn knows_policies_of_earlier_builds_by_their_names() {
        let unlabelled = |name: &str| vec![policy(name, &json!({"app.kubernetes.io/name": "memgate"}))];
        let table = memgate_platforms::ark::FAMILY.in_cel.tables[0].name;
        let name = format!("memgate-{table}");
        assert_eq!(said(Fetched::Absent, unlabelled(&name))[0].0, CheckStatus::Warn);
        for other in ["memgate-self-guard".to_owned(), format!("memgate-b-{table}"), "other".to_owned()] {
            assert_eq!(said(Fetched::Absent, unlabelled(&other))[0].0, CheckStatus::Ok, "{other}");
        }
        let found = Installation {
            name: "memgate".to_owned(),
            deployment: Fetched::Absent,
            additions: Fetched::Found(unlabelled(&name)),
            ..Installation::default()
        };
        let help = format!("kubectl delete validatingadmissionpolicy {name} --ignore-not-found");
        assert_eq!(checks(&found)[0].help, Some(help));
    }
}
