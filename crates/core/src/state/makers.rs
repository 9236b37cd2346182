//! Objects from which a controller or a tool makes Secrets, `ConfigMaps` and Services. What they make is unknown in
//! files: neither missing nor present.

use memgate_model::kind::{Kind, NAMESPACE, SECRET};
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::snapshot::Snapshot;
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

/// The makers of objects that their manifest does not name: group and kind.
const OF_ANYTHING: [(&str, &str); 7] = [
    ("argoproj.io", "Application"),
    ("argoproj.io", "ApplicationSet"),
    ("external-secrets.io", "ClusterExternalSecret"),
    ("helm.cattle.io", "HelmChart"),
    ("helm.toolkit.fluxcd.io", "HelmRelease"),
    ("kustomize.config.k8s.io", "Kustomization"),
    ("kustomize.toolkit.fluxcd.io", "Kustomization"),
];

/// Notes what an object makes. Returns whether it makes any.
pub(super) fn add(snapshot: &mut Snapshot, (group, kind): (&str, &str), value: &Value) -> bool {
    if OF_ANYTHING.contains(&(group, kind)) {
        add_anything(snapshot);
        return true;
    }
    let Some((.., place)) = OF_SECRETS.into_iter().find(|row| (row.0, row.1) == (group, kind)) else {
        return false;
    };
    let own = |field: &str| texts(value, &format!("metadata/{field}")).pop();
    let given = own("namespace").map(str::to_owned).or_else(|| snapshot.settings.namespace.clone());
    let namespace = given.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    let mut names = texts(value, place);
    if names.is_empty() {
        names.extend(own("name"));
    }
    let secrets = snapshot.kind_mut(&SECRET);
    for name in names {
        secrets.insert_made(&namespace, name);
    }
    true
}

/// Makes every Secret, `ConfigMap`, Service and claim unknown that is not in the state: a chart or a generator among the
/// inputs may make it.
pub fn add_anything(snapshot: &mut Snapshot) {
    let families = snapshot.settings.families.clone();
    let of_core = |kind: &&'static Kind| kind.group.is_empty() && **kind != NAMESPACE;
    for kind in memgate_platforms::state_kinds(&families).filter(of_core) {
        snapshot.kind_mut(kind).lacks_some = true;
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
