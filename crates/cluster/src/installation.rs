//! Reads the objects of memgate's installation, and the webhook configurations of other tools.

use std::time::Duration;

use axum::http::Method;
use futures::future::join_all;
use kube::Client;
use kube::api::ListParams;
use tokio::time::timeout;

use crate::cluster_state::{Fetched, Installation, ServedResources, entries};
use crate::reader::{ClusterReader, fetch};
use crate::request::{REQUEST_TIMEOUT, send};
use memgate_certs::library_error::explained;
use memgate_install::metadata::{NAME, default_name};
use memgate_install::objects::WebhookConfiguration;
use memgate_install::replica::LABEL;
use memgate_model::kind::{Kind, POLICY_KINDS};

/// The API group and version of webhook configurations.
const ADMISSION: &str = "admissionregistration.k8s.io/v1";

/// How long a server waits at its start for the version of its apiserver.
const VERSION_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads the objects of an installation.
///
/// # Errors
/// The reason, when the apiserver does not answer.
pub async fn installation(reader: &ClusterReader, namespace: &str) -> Result<Installation, String> {
    let gone = |why: String| format!("the apiserver does not answer: {why}");
    let version = timeout(REQUEST_TIMEOUT, send(&reader.client, Method::GET, "/version", None)).await;
    let version = version.map_err(|_| gone("no answer in time".to_owned()))?;
    let version = version.map_err(|error| gone(explained(&error)))?;
    let pods = ListParams::default().labels(&format!("app.kubernetes.io/name={NAME}"));
    let leases = ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
    let configurations = async |plural| reader.list(ADMISSION, "", plural, ListParams::default()).await;
    let mut installation = Installation {
        namespace: namespace.to_owned(),
        apiserver_time: version.time,
        mutating: configurations("mutatingwebhookconfigurations").await,
        validating: configurations("validatingwebhookconfigurations").await,
        service: reader.get("v1", namespace, "services", NAME).await,
        deployment: reader.get("apps/v1", namespace, "deployments", NAME).await,
        replicas: reader.list("v1", namespace, "pods", pods).await,
        leases: reader.list("coordination.k8s.io/v1", namespace, "leases", leases).await,
        served: served_resources(reader).await,
        namespaces: reader.list("v1", "", "namespaces", ListParams::default()).await,
        ..Installation::default()
    };
    installation.name = own_name(&installation);
    Ok(installation)
}

/// The name of the installation in a namespace: the one in the flags of its Deployment, else the name of a
/// configuration whose entries call memgate in this namespace.
fn own_name(found: &Installation) -> String {
    let by_default = default_name(&found.namespace);
    let by_flag = found.arguments().filter_map(|argument| argument.strip_prefix("--webhook-configuration="));
    let by_entries = || {
        let mutating = found.mutating.items().iter();
        let leading = mutating.filter(|one| homes(one).any(|home| home == found.namespace));
        let mut names = leading.filter_map(|one| one.metadata.name.clone()).peekable();
        let first = names.peek().cloned()?;
        Some(names.find(|name| *name == by_default).unwrap_or(first))
    };
    by_flag.last().map(str::to_owned).or_else(by_entries).unwrap_or(by_default)
}

/// The namespaces in which the entries of a configuration call memgate.
pub(super) fn homes(configuration: &WebhookConfiguration) -> impl Iterator<Item = &str> {
    let own = entries(configuration).iter().filter(|entry| entry.name.ends_with(".memgate.dev"));
    own.filter_map(|entry| Some(entry.client_config.service.as_ref()?.namespace.as_str()))
}

/// The version of the apiserver, unless it does not answer soon.
pub async fn apiserver_version(client: &Client) -> Option<(u32, u32)> {
    let answer = timeout(VERSION_TIMEOUT, send(client, Method::GET, "/version", None)).await;
    let answer = answer.ok()?.ok()?;
    let number = |field: &str| -> Option<u32> {
        let text = answer.body.get(field)?.as_str()?;
        text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
    };
    number("major").zip(number("minor"))
}

/// The kinds that the apiserver serves, of the API groups that families name.
pub(super) async fn served_resources(reader: &ClusterReader) -> Fetched<ServedResources> {
    let groups = match fetch("get", "/apis", reader.client.list_api_groups()).await {
        Fetched::Found(groups) => groups.groups,
        Fetched::Absent => return Fetched::Absent,
        Fetched::Unknown(why) => return Fetched::Unknown(why),
    };
    let is_named = |group: &str| {
        let kinds = memgate_platforms::state_kinds(&memgate_platforms::ALL)
            .chain(validated_kinds())
            .chain(POLICY_KINDS);
        kinds.into_iter().any(|kind| kind.group == group)
    };
    let named = groups.into_iter().filter(|group| is_named(&group.name));
    let versions =
        named.flat_map(|group| group.versions.into_iter().map(move |version| (group.name.clone(), version)));
    let read = versions.map(|(group, version)| async move {
        let path = &version.group_version;
        let resources = fetch("get", path, reader.client.list_api_group_resources(path)).await;
        let Fetched::Found(resources) = resources else { return None };
        let plurals = resources.resources.into_iter().map(|resource| resource.name);
        Some(((group, version.version), plurals.collect()))
    });
    Fetched::Found(join_all(read).await.into_iter().flatten().collect())
}

fn validated_kinds() -> impl Iterator<Item = &'static Kind> {
    memgate_platforms::ALL.into_iter().flat_map(|family| family.kinds.validated).copied()
}
