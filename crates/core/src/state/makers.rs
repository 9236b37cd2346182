//! Objects from which a controller or a tool makes Secrets, `ConfigMaps` and Services. What they make is unknown in
//! files: neither missing nor present.

mod installers;

pub use installers::{Installation, applications, installations};

use super::group_and_kind;
use memgate_manifest::later::is_filled_in_later;
use memgate_model::kind::{Kind, NAMESPACE, SECRET};
use memgate_model::object::{DEFAULT_NAMESPACE, Reference};
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_model::tree::Tree;
use serde_json::Value;

/// The makers of Secrets: group, kind, and the place of each Secret's name. In a place, `*` stands for each entry of a
/// list. Without a value there, the Secret has the name of its maker.
const OF_SECRETS: [(&str, &str, &str); 14] = [
    ("bitnami.com", "SealedSecret", "spec/template/metadata/name"),
    ("cert-manager.io", "Certificate", "spec/secretName"),
    ("external-secrets.io", "ExternalSecret", "spec/target/name"),
    ("isindir.github.com", "SopsSecret", "spec/secretTemplates/*/name"),
    ("kubernetes-client.io", "ExternalSecret", ""),
    ("onepassword.com", "OnePasswordItem", ""),
    ("redhatcop.redhat.io", "VaultSecret", "spec/output/name"),
    ("ricoberger.de", "VaultSecret", ""),
    ("secrets-store.csi.x-k8s.io", "SecretProviderClass", "spec/secretObjects/*/secretName"),
    ("secrets.doppler.com", "DopplerSecret", "spec/managedSecret/name"),
    ("secrets.hashicorp.com", "VaultDynamicSecret", "spec/destination/name"),
    ("secrets.hashicorp.com", "VaultPKISecret", "spec/destination/name"),
    ("secrets.hashicorp.com", "VaultStaticSecret", "spec/destination/name"),
    ("secrets.infisical.com", "InfisicalSecret", "spec/managedSecretReference/secretName"),
];

/// Notes what an object makes. Returns whether it makes any.
pub(super) fn add(snapshot: &mut Snapshot, (group, kind): (&str, &str), value: &Value) -> bool {
    if let Some(installations) = installations(&snapshot.settings, value) {
        for Installation { namespace, .. } in installations {
            add_anything(snapshot, namespace.as_deref());
        }
        return true;
    }
    if (group, kind) == ("external-secrets.io", "ClusterExternalSecret") {
        add_of_cluster(snapshot, value);
        return true;
    }
    let Some((namespace, names)) = secrets(&snapshot.settings, (group, kind), value) else { return false };
    add_made(snapshot, &namespace, &names);
    true
}

/// The names of the Secrets that an object makes, with their namespace; `None` for one of another kind.
fn secrets<'v>(
    settings: &Settings,
    (group, kind): (&str, &str),
    value: &'v Value,
) -> Option<(String, Vec<&'v str>)> {
    let (.., place) = OF_SECRETS.into_iter().find(|row| (row.0, row.1) == (group, kind))?;
    let own = |field: &str| texts(value, &format!("metadata/{field}")).pop();
    let given = own("namespace").map(str::to_owned).or_else(|| settings.namespace.clone());
    let mut names = texts(value, place);
    if names.is_empty() {
        names.extend(own("name"));
    }
    Some((given.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()), names))
}

/// The objects that an object of a file makes, as far as their names are known: Secrets, and the agents of a platform.
///
/// # Errors
/// When a number that is read is beyond what a double can hold.
pub fn made(settings: &Settings, value: &Value) -> serde_json::Result<Vec<Reference>> {
    let (group, kind) = group_and_kind(value);
    let reference = |kind, namespace: &str, name: &str| {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Reference { kind, namespace, name }
    };
    let (home, names) = secrets(settings, (group, kind), value).unwrap_or_default();
    let mut made: Vec<_> = names.iter().map(|name| reference(&SECRET, &home, name)).collect();
    let agents = settings.families.iter().filter_map(|family| family.pods.made_agents.as_ref());
    for agents in agents {
        if let Some(by) = agents.by.iter().find(|by| by.is(group, kind))
            && let Some(Reference { namespace, name, .. }) = super::reference(settings, value)
        {
            let tree = Tree::parse(&value.to_string(), &by.schema)?;
            made.extend((agents.names)(&name, &tree).iter().map(|it| reference(agents.kind, &namespace, it)));
        }
    }
    made.retain(|it| !is_filled_in_later(&it.namespace) && !is_filled_in_later(&it.name));
    Ok(made)
}

/// Notes the Secrets that a `ClusterExternalSecret` makes in the namespaces that it lists, or in any.
fn add_of_cluster(snapshot: &mut Snapshot, value: &Value) {
    let places = ["spec/externalSecretSpec/target/name", "spec/externalSecretName", "metadata/name"];
    let names = places.iter().map(|place| texts(value, place)).find(|names| !names.is_empty());
    let selects = ["namespaceSelector", "namespaceSelectors"];
    let is_listed = selects.iter().all(|field| value.pointer(&format!("/spec/{field}")).is_none());
    let listed = Some(texts(value, "spec/namespaces/*")).filter(|listed| is_listed && !listed.is_empty());
    for namespace in listed.unwrap_or_else(|| vec![""]) {
        add_made(snapshot, namespace, names.as_deref().unwrap_or_default());
    }
}

/// Notes the Secrets with these names in a namespace; in each if it is empty. A later step may say the name or the
/// namespace.
fn add_made(snapshot: &mut Snapshot, namespace: &str, names: &[&str]) {
    let secrets = snapshot.kind_mut(&SECRET);
    let namespace = if is_filled_in_later(namespace) { "" } else { namespace };
    for name in names {
        match is_filled_in_later(name) {
            false => secrets.insert_made(namespace, name),
            true if namespace.is_empty() => secrets.lacks_some = true,
            true => secrets.insert_lacking(namespace),
        }
    }
}

/// Makes every Secret, `ConfigMap`, Service and claim of a namespace unknown that is not in the state, of every namespace for
/// `None`: something among the inputs may make it.
pub fn add_anything(snapshot: &mut Snapshot, namespace: Option<&str>) {
    let families = snapshot.settings.families.clone();
    let of_core = |kind: &&'static Kind| kind.group.is_empty() && **kind != NAMESPACE;
    for kind in memgate_platforms::state_kinds(&families).filter(of_core) {
        match namespace {
            Some(namespace) => snapshot.kind_mut(kind).insert_lacking(namespace),
            None => snapshot.kind_mut(kind).lacks_some = true,
        }
    }
}

/// The texts at a place.
fn texts<'v>(value: &'v Value, place: &str) -> Vec<&'v str> {
    let mut values = vec![value];
    for key in place.split('/') {
        values = match key {
            "*" => values.into_iter().filter_map(Value::as_array).flatten().collect(),
            key => values.into_iter().filter_map(|value| value.get(key)).collect(),
        };
    }
    values.into_iter().filter_map(Value::as_str).filter(|text| !text.is_empty()).collect()
}
