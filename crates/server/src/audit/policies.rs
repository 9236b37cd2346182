//! Lists policies and exemptions with their generation and status, which the state does not hold.

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use memgate_certs::kube_api::with_timeout;
use memgate_model::finding::Finding;
use memgate_model::kind::{Kind, MEMORY_POLICY, POLICY_KINDS};
use memgate_model::policy::Policies;
use memgate_policy::never_applies::never_applies;
use memgate_policy::put;

use super::{API_TIMEOUT, given, without_nulls};

/// How many objects are read at a time.
const PAGE: u32 = 100;

/// All policies and exemptions of a cluster.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Ready to judge.
    pub(super) policies: Policies,
    /// Their metadata and status.
    pub(super) heads: Vec<Head>,
}

/// The metadata and the status of a policy or an exemption.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) kind: &'static Kind,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) generation: i64,
    /// The first fault of its spec.
    pub(super) fault: Option<String>,
    /// The warnings about its spec.
    pub(super) doubts: Vec<Finding>,
    /// The stored status.
    pub(super) status: Value,
}

/// Lists all policies and exemptions; none if their definitions are not installed.
///
/// # Errors
/// When they cannot be listed.
pub(super) async fn list(client: &Client) -> kube::Result<Listed> {
    let mut listed = Listed::default();
    for kind in POLICY_KINDS {
        list_kind(client, kind, &mut listed).await?;
    }
    Ok(listed)
}

async fn list_kind(client: &Client, kind: &'static Kind, listed: &mut Listed) -> kube::Result<()> {
    let api = api(client, kind, "");
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = match with_timeout(API_TIMEOUT, api.list(&params)).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut with_page = std::mem::take(listed);
        let add = move || {
            for object in page.items {
                with_page.add(kind, object);
            }
            with_page
        };
        // Compiling a hundred of the largest policies would block the runtime.
        *listed = spawn_blocking(add).await.map_err(|error| kube::Error::Service(error.into()))?;
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}

impl Listed {
    fn add(&mut self, kind: &'static Kind, mut object: DynamicObject) {
        let namespace = object.metadata.namespace.unwrap_or_default();
        let name = object.metadata.name.unwrap_or_default();
        let metadata = without_nulls(json!({"name": name, "namespace": given(&namespace)}));
        let spec = object.data.get("spec").cloned().unwrap_or_default();
        let manifest =
            json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec});
        let faults = put(&mut self.policies, &memgate_platforms::ALL, kind, &manifest);
        let status = object.data.get_mut("status").map(Value::take).unwrap_or_default();
        let fault = faults.into_iter().next().map(|fault| fault.message().into_owned());
        let doubts = self.policies.get(&name).filter(|_| *kind == MEMORY_POLICY);
        let doubts = doubts.map(|policy| never_applies(policy, &memgate_platforms::ALL)).unwrap_or_default();
        let generation = object.metadata.generation.unwrap_or_default();
        self.heads.push(Head { kind, namespace, name, generation, fault, doubts, status });
    }
}

/// The API of a kind in a namespace; the empty namespace stands for all, and for cluster-wide kinds.
pub(super) fn api(client: &Client, kind: &Kind, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
    if namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}
