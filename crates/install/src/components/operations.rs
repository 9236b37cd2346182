//! memgate's settings file and its Events, and annotations for GitOps tools.

use serde_json::json;

use crate::objects::Objects;
use crate::rbac;

/// The ConfigMap with the settings file.
const SETTINGS: &str = "memgate-settings";
/// Where it is mounted.
const SETTINGS_DIRECTORY: &str = "/etc/memgate/settings";

/// Reads the settings file in the ConfigMap `memgate-settings`, which memgate does not write.
pub(super) fn settings(objects: &mut Objects) {
    objects.mount(&json!({"name": "settings", "configMap": {"name": SETTINGS}}), SETTINGS_DIRECTORY);
    objects.arguments().push(format!("--config={SETTINGS_DIRECTORY}/settings.yaml"));
}

/// Removes the Events, and the permission to write them.
pub(super) fn no_events(objects: &mut Objects) {
    objects.arguments().push("--no-events".to_owned());
    let events = rbac::events();
    objects.cluster_role.rules.get_or_insert_default().retain(|rule| *rule != events);
}

/// Makes Argo CD keep fields of the configurations that are not in Git.
pub(super) fn argo_cd(objects: &mut Objects) {
    annotate(objects, "argocd.argoproj.io/sync-options", "ServerSideApply=true");
}

/// Makes Flux keep fields of the configurations that are not in Git.
pub(super) fn flux(objects: &mut Objects) {
    annotate(objects, "kustomize.toolkit.fluxcd.io/ssa", "Merge");
}

/// Annotates both webhook configurations.
pub(super) fn annotate(objects: &mut Objects, key: &str, value: &str) {
    for metadata in [&mut objects.mutating.metadata, &mut objects.validating.metadata] {
        metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    }
}
