//! Policies and exemptions as an audit reads them: with their generation and their status, which the state has not.

use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::model::kind::{Kind, MEMORY_POLICY, MEMORY_POLICY_EXEMPTION, POLICY_KINDS};
use crate::model::policy::Policies;
use crate::policy::put;
use crate::server::certs::kube_api::with_timeout;

use super::{API_TIMEOUT, given, without_nulls};

/// How many are read at a time.
const PAGE: u32 = 100;

/// All policies and exemptions of a cluster.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Ready to judge.
    pub(super) policies: Policies,
    /// What is known of each besides.
    pub(super) heads: Vec<Head>,
}

/// A policy or an exemption, without what it says.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) kind: &'static Kind,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) generation: i64,
    /// What is wrong with it.
    pub(super) fault: Option<String>,
    /// As it is stored.
    pub(super) status: Value,
}

/// Reads them all. There are none where the definitions are not installed.
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
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource(kind));
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
        // Reading a hundred of the largest takes a while.
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
        let faults = put(&mut self.policies, kind, &manifest);
        let status = object.data.get_mut("status").map(Value::take).unwrap_or_default();
        let fault = faults.into_iter().next().map(|fault| fault.message().into_owned());
        let generation = object.metadata.generation.unwrap_or_default();
        self.heads.push(Head { kind, namespace, name, generation, fault, status });
    }
}

/// The way to one of both kinds.
pub(super) fn resource(kind: &Kind) -> ApiResource {
    ApiResource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        api_version: kind.api_version(),
        kind: kind.kind.to_owned(),
        plural: kind.plural.to_owned(),
    }
}

/// The way to the status of one.
pub(super) fn api(client: &Client, head: &Head) -> Api<DynamicObject> {
    let resource = resource(head.kind);
    if *head.kind == MEMORY_POLICY_EXEMPTION {
        Api::namespaced_with(client.clone(), &head.namespace, &resource)
    } else {
        debug_assert!(*head.kind == MEMORY_POLICY, "there are two kinds");
        Api::all_with(client.clone(), &resource)
    }
}
