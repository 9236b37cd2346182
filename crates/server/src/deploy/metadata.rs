//! The names, labels and metadata that installed objects have in common.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::deploy::install_plan::InstallPlan;

/// The name of every object that memgate installs, save where two kinds would clash.
pub const NAME: &str = "memgate";

/// The two kinds of webhook configuration, as resources.
pub(super) const CONFIGURATIONS: [&str; 2] =
    ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
/// The Secret with memgate's own CA.
pub(super) const CA_SECRET: &str = "memgate-ca";

/// Metadata of an object in memgate's namespace.
pub(super) fn metadata(plan: &InstallPlan) -> ObjectMeta {
    ObjectMeta { namespace: Some(plan.namespace.clone()), ..cluster_metadata() }
}

/// Metadata of a cluster-wide object.
pub(super) fn cluster_metadata() -> ObjectMeta {
    ObjectMeta { name: Some(NAME.to_owned()), labels: Some(labels()), ..ObjectMeta::default() }
}

/// The labels of everything that is installed; they select memgate's pods as well.
pub(super) fn labels() -> BTreeMap<String, String> {
    string_map(&[("app.kubernetes.io/name", NAME)])
}

/// Entries of a map of the API.
pub(super) fn string_map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
