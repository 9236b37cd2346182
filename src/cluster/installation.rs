//! Reads what memgate's installation consists of, and the webhooks of others.

use axum::http::Method;
use k8s_openapi::api::core::v1::Service;
use kube::api::ListParams;
use serde_json::Value;
use tokio::time::timeout;

use crate::cluster::cluster_state::{Fetched, Installation, ServedResources};
use crate::cluster::reader::{ClusterReader, fetch};
use crate::cluster::request::{REQUEST_TIMEOUT, error_message, send};
use crate::cluster::webhook_entry::{WebhookEntry, entries};
use crate::deploy::metadata::{NAME, SELF_GUARD, default_name};
use crate::family;
use crate::model::kind::{Kind, POLICY_KINDS};

/// Reads it; permissions are read later, once it is known which ones it takes.
///
/// # Errors
/// When the apiserver does not answer at all, and why.
pub async fn installation(
    reader: &ClusterReader,
    namespace: &str,
    name: Option<&str>,
) -> Result<Installation, String> {
    let version = timeout(REQUEST_TIMEOUT, send(&reader.client, Method::GET, "/version", None)).await;
    let version = version.map_err(|elapsed| elapsed.to_string())?;
    let version = version.map_err(|error| error_message(&error))?;
    let slices = ListParams::default().labels(&format!("kubernetes.io/service-name={NAME}"));
    let pods = ListParams::default().labels(&format!("app.kubernetes.io/name={NAME}"));
    let all = ListParams::default;
    let mut installation = Installation {
        namespace: namespace.to_owned(),
        apiserver_time: version.time,
        version: parse_version(&version.body),
        served: served_resources(reader).await,
        mutating: reader.list(reader.api(), "mutatingwebhookconfigurations", all()).await,
        validating: reader.list(reader.api(), "validatingwebhookconfigurations", all()).await,
        service: reader.get(reader.namespaced_api::<Service>(namespace), "services", NAME).await,
        endpoints: reader.list(reader.namespaced_api(namespace), "endpointslices", slices).await,
        deployment: reader.get(reader.namespaced_api(namespace), "deployments", NAME).await,
        budgets: reader.list(reader.namespaced_api(namespace), "poddisruptionbudgets", all()).await,
        replicas: reader.list(reader.namespaced_api(namespace), "pods", pods).await,
        namespaces: reader.list(reader.api(), "namespaces", all()).await,
        ..Installation::default()
    };
    installation.name = name.map_or_else(|| own_name(&installation), str::to_owned);
    let name = &installation.name;
    installation.cluster_role_binding = reader.get(reader.api(), "clusterrolebindings", name).await;
    let guard = format!("{name}-{SELF_GUARD}");
    installation.self_guard = reader.get(reader.api(), "validatingadmissionpolicies", &guard).await;
    Ok(installation)
}

/// The name of the installation in a namespace: as its Deployment has it, else that of a configuration with entries
/// of memgate's that lead there.
fn own_name(found: &Installation) -> String {
    let by_default = default_name(&found.namespace);
    let by_flag = found.arguments().filter_map(|argument| argument.strip_prefix("--webhook-configuration="));
    let by_entries = || {
        let leads_here = |entry: &WebhookEntry| {
            entry.is_memgates() && entry.service_namespace() == Some(found.namespace.as_str())
        };
        let mutating = found.mutating.found().into_iter().flat_map(|listed| &listed.items);
        let leading = mutating.filter(|one| entries(one.webhooks.as_ref()).iter().any(leads_here));
        let mut names = leading.filter_map(|one| one.metadata.name.clone()).peekable();
        let first = names.peek().cloned()?;
        Some(names.find(|name| *name == by_default).unwrap_or(first))
    };
    by_flag.last().map(str::to_owned).or_else(by_entries).unwrap_or(by_default)
}

fn parse_version(body: &Value) -> Fetched<(u32, u32)> {
    let number = |field: &str| -> Option<u32> {
        let text = body.get(field)?.as_str()?;
        text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
    };
    match (number("major"), number("minor")) {
        (Some(major), Some(minor)) => Fetched::Found((major, minor)),
        _ => Fetched::NotFound,
    }
}

/// What the apiserver serves of the groups that families name.
pub(super) async fn served_resources(reader: &ClusterReader) -> Fetched<ServedResources> {
    let groups = match fetch("get", "/apis", reader.client.list_api_groups()).await {
        Fetched::Found(groups) => groups.groups,
        Fetched::NotFound => return Fetched::NotFound,
        Fetched::Unknown(why) => return Fetched::Unknown(why),
    };
    let is_named = |group: &str| {
        let kinds = family::state_kinds(&family::ALL).chain(validated_kinds()).chain(POLICY_KINDS);
        kinds.into_iter().any(|kind| kind.group == group)
    };
    let mut served = ServedResources::new();
    for group in groups.into_iter().filter(|group| is_named(&group.name)) {
        for version in group.versions {
            let path = &version.group_version;
            let resources = fetch("get", path, reader.client.list_api_group_resources(path)).await;
            let Fetched::Found(resources) = resources else { continue };
            let plurals = resources.resources.into_iter().map(|resource| resource.name);
            served.insert((group.name.clone(), version.version), plurals.collect());
        }
    }
    Fetched::Found(served)
}

fn validated_kinds() -> impl Iterator<Item = &'static Kind> {
    family::ALL.into_iter().flat_map(|family| family.kinds.validated).copied()
}
