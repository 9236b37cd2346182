//! Reads the objects of memgate's installation, and the webhook configurations of other tools.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::Method;
use futures::future::{join, join_all, join3, join4};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::ListParams;
use tokio::time::timeout;

use crate::cluster_state::{Fetched, Installation, Labels, ServedResources, labels};
use crate::reader::{ClusterReader, fetch};
use crate::request::{REQUEST_TIMEOUT, send};
use crate::webhook_entry::{WebhookEntry, entries};
use memgate_certs::library_error::explained;
use memgate_install::metadata::{NAME, default_name};
use memgate_model::kind::{Kind, POLICY_KINDS};

/// The API group and version of webhook configurations.
const ADMISSION: &str = "admissionregistration.k8s.io/v1";

/// How long a server waits at its start for the version of its apiserver.
const VERSION_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads the objects of an installation.
///
/// # Errors
/// The reason, when the apiserver does not answer.
pub async fn installation(
    reader: &ClusterReader,
    namespace: &str,
    name: Option<&str>,
) -> Result<Installation, String> {
    let version = timeout(REQUEST_TIMEOUT, send(&reader.client, Method::GET, "/version", None)).await;
    let version = version.map_err(|_| "no answer in time".to_owned())?;
    let version = version.map_err(|error| explained(&error))?;
    let slices = ListParams::default().labels(&format!("kubernetes.io/service-name={NAME}"));
    let pods = ListParams::default().labels(&format!("app.kubernetes.io/name={NAME}"));
    let all = ListParams::default;
    let (apps, discovery) = ("apps/v1", "discovery.k8s.io/v1");
    let configurations = join(
        reader.list(ADMISSION, "", "mutatingwebhookconfigurations", all()),
        reader.list(ADMISSION, "", "validatingwebhookconfigurations", all()),
    );
    let workload = join4(
        reader.get("v1", namespace, "services", NAME),
        reader.list(discovery, namespace, "endpointslices", slices),
        reader.get(apps, namespace, "deployments", NAME),
        reader.list("v1", namespace, "pods", pods),
    );
    let around = join(served_resources(reader), reader.list("v1", "", "namespaces", all()));
    let (configurations, workload, around) = Box::pin(join3(configurations, workload, around)).await;
    let mut installation = Installation {
        namespace: namespace.to_owned(),
        apiserver_time: version.time,
        mutating: configurations.0,
        validating: configurations.1,
        service: workload.0,
        endpoints: workload.1,
        deployment: workload.2,
        replicas: workload.3,
        served: around.0,
        namespaces: around.1.map(by_name),
        ..Installation::default()
    };
    installation.name = name.map_or_else(|| own_name(&installation), str::to_owned);
    Ok(installation)
}

fn by_name(namespaces: Vec<Namespace>) -> BTreeMap<String, Labels> {
    namespaces.into_iter().map(labels).collect()
}

/// The name of the installation in a namespace: the one in the flags of its Deployment, else the name of a
/// configuration whose entries call memgate in this namespace.
fn own_name(found: &Installation) -> String {
    let by_default = default_name(&found.namespace);
    let by_flag = found.arguments().filter_map(|argument| argument.strip_prefix("--webhook-configuration="));
    let by_entries = || {
        let leads_here = |entry: &WebhookEntry| {
            entry.is_memgates() && entry.service_namespace() == Some(found.namespace.as_str())
        };
        let mutating = found.mutating.items().iter();
        let leading = mutating.filter(|one| entries(one).iter().any(leads_here));
        let mut names = leading.filter_map(|one| one.metadata.name.clone()).peekable();
        let first = names.peek().cloned()?;
        Some(names.find(|name| *name == by_default).unwrap_or(first))
    };
    by_flag.last().map(str::to_owned).or_else(by_entries).unwrap_or(by_default)
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
