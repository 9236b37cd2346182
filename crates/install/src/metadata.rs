//! What installed objects have in common: names, labels and metadata, and how those of the folder `objects` are read, which
//! are kept as YAML at compile time.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::install_plan::InstallPlan;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;

/// The name of every installed object, unless two objects or two installations would clash.
pub const NAME: &str = "memgate";
/// The default namespace of an installation.
pub const DEFAULT_NAMESPACE: &str = "memgate-system";
/// The maximum length of an installation's name: with every suffix it stays within the 253 characters of an object's name.
pub const MAX_NAME_CHARS: usize = 200;

/// The two kinds of webhook configuration, as resources.
pub(super) const CONFIGURATIONS: [&str; 2] =
    ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
/// What stands for the name of cluster-wide objects in the folder `objects`. There [`DEFAULT_NAMESPACE`] stands for the
/// namespace.
pub const INSTALLATION: &str = "INSTALLATION";

/// The default name of the cluster-wide objects of an installation. It contains the namespace, so that no two namespaces
/// share one.
pub fn default_name(namespace: &str) -> String {
    if namespace == DEFAULT_NAMESPACE { NAME.to_owned() } else { format!("{NAME}-{namespace}") }
}

/// Metadata of a cluster-wide object.
pub(super) fn named(name: String) -> ObjectMeta {
    let labels = BTreeMap::from([("app.kubernetes.io/name".to_owned(), NAME.to_owned())]);
    ObjectMeta { name: Some(name), labels: Some(labels), ..ObjectMeta::default() }
}

/// The documents of a YAML text.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Value> + use<> {
    let source = Arc::new(Source::new("a template", text));
    values(&source, &mut Vec::new()).into_iter().map(|document| document.value().clone())
}

/// The objects of a YAML text with the namespace and the name of an installation.
pub(super) fn filled(plan: &InstallPlan, text: &str) -> impl Iterator<Item = Value> {
    documents(text).map(|mut object| {
        fill(&mut object, plan);
        object
    })
}

fn fill(value: &mut Value, plan: &InstallPlan) {
    match value {
        Value::String(text) => {
            *text = text.replace(DEFAULT_NAMESPACE, &plan.namespace).replace(INSTALLATION, &plan.name);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, plan)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, plan)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_namespaces_share_a_name() {
        assert_eq!(default_name("memgate-system"), "memgate");
        assert_eq!(default_name("team-a"), "memgate-team-a");
        assert_eq!(default_name("memgate-team-a"), "memgate-memgate-team-a");
        assert_eq!(default_name("memgate"), "memgate-memgate");
    }

    #[test]
    fn the_longest_name_leaves_room_for_every_end() {
        let ends = crate::rows::ROWS.iter().flat_map(|row| documents(row.text)).filter_map(|object| {
            let name = object["metadata"]["name"].as_str()?.to_owned();
            name.strip_prefix(INSTALLATION).map(str::len)
        });
        let longest = ends.max().expect("some names begin with it");
        assert!(longest > 10 && MAX_NAME_CHARS + longest <= 253, "{longest}");
    }
}
