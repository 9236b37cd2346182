//! Reads objects in pages, with a time limit for each request. An object that the user may not read
//! is unknown, and the message names the missing right.

use kube::Client;
use kube::api::{GetParams, ListParams};
use kube::core::{ObjectList, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::cluster_state::Fetched;
use crate::request::REQUEST_TIMEOUT;
use memgate_certs::library_error::explained;
use memgate_model::kind::Kind;

/// How many objects one request brings, where it does not matter how large they are.
pub const PAGE_OBJECTS: u32 = 500;

/// Reads objects of a cluster.
#[derive(Clone)]
pub struct ClusterReader {
    /// The client.
    pub client: Client,
    /// How many objects one request brings at most.
    pub page_objects: u32,
}

/// Awaits a request: `verb` and `resource` are the right that it takes.
pub(super) async fn fetch<T>(
    verb: &str,
    resource: &str,
    request: impl Future<Output = kube::Result<T>>,
) -> Fetched<T> {
    match timeout(REQUEST_TIMEOUT, request).await {
        Ok(Ok(response)) => Fetched::Found(response),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Fetched::Absent,
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
            Fetched::Unknown(forbidden(verb, resource))
        }
        Ok(Err(error)) => Fetched::Unknown(format!("failed to {verb} {resource}: {}", explained(&error))),
        Err(_) => Fetched::Unknown(format!("failed to {verb} {resource}: no answer in time")),
    }
}

/// Reads JSON as an object, or as a list of objects. Requests bring JSON, so that they have no copy for each type.
fn typed<T: DeserializeOwned>(verb: &str, resource: &str, read: Value) -> Fetched<T> {
    match serde_json::from_value(read) {
        Ok(object) => Fetched::Found(object),
        Err(error) => Fetched::Unknown(format!("failed to {verb} {resource}: {error}")),
    }
}

/// The sentence for a right that the user lacks.
pub(super) fn forbidden(verb: &str, resource: &str) -> String {
    format!("you may not {verb} {resource}: this right is needed")
}

/// The URL path of the objects of a kind in a namespace; the empty namespace stands for all, and for cluster-wide kinds.
pub(super) fn path(api_version: &str, namespace: &str, plural: &str) -> String {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let namespace = if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
    format!("/{root}/{api_version}/{namespace}{plural}")
}

impl ClusterReader {
    /// One object by name.
    pub(super) async fn get<K: DeserializeOwned>(
        &self,
        api_version: &str,
        namespace: &str,
        plural: &str,
        name: &str,
    ) -> Fetched<K> {
        let get = async {
            let request = Request::new(path(api_version, namespace, plural));
            let request = request.get(name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
            self.client.request(request).await
        };
        fetch::<Value>("get", plural, get).await.and_then(|object| typed("get", plural, object))
    }

    /// All objects of a list.
    pub(super) async fn list<K: DeserializeOwned>(
        &self,
        api_version: &str,
        namespace: &str,
        plural: &str,
        params: ListParams,
    ) -> Fetched<Vec<K>> {
        let mut items: Vec<Value> = Vec::new();
        let path = path(api_version, namespace, plural);
        let pages = self.pages(plural, &path, params, |page| items.extend(page));
        pages.await.and_then(|()| typed("list", plural, items.into()))
    }

    /// One object of a kind that a family names, as JSON.
    pub async fn get_kind(&self, kind: &Kind, namespace: &str, name: &str) -> Fetched<Value> {
        let object = self.get(&kind.api_version(), namespace, kind.plural, name).await;
        object.map(|object| with_kind(kind, object))
    }

    /// The JSON text of an object of a kind.
    pub(super) async fn get_text(&self, kind: &Kind, namespace: &str, name: &str) -> Fetched<String> {
        let get = async {
            let request = Request::new(path(&kind.api_version(), namespace, kind.plural));
            let request = request.get(name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
            self.client.request_text(request).await
        };
        fetch("get", &resource(kind), get).await
    }

    /// Reads a list page by page.
    pub(super) async fn pages(
        &self,
        resource: &str,
        path: &str,
        params: ListParams,
        mut take: impl FnMut(Vec<Value>),
    ) -> Fetched<()> {
        let mut params = params.limit(self.page_objects);
        loop {
            match self.page(resource, path, &mut params).await {
                Fetched::Found(page) => take(page),
                Fetched::Absent => return Fetched::Absent,
                Fetched::Unknown(why) => return Fetched::Unknown(why),
            }
            if params.continue_token.is_none() {
                return Fetched::Found(());
            }
        }
    }

    /// One page of a list. The token of the next one is put into `params`.
    pub(super) async fn page<K: Clone + DeserializeOwned>(
        &self,
        resource: &str,
        path: &str,
        params: &mut ListParams,
    ) -> Fetched<Vec<K>> {
        let list = async |params: &ListParams| {
            let request = Request::new(path).list(params).map_err(kube::Error::BuildRequest)?;
            self.client.request::<ObjectList<K>>(request).await
        };
        let page = async {
            match list(params).await {
                // The list took too long. With this answer comes a token that goes on at the same place.
                Err(kube::Error::Api(status)) if status.code == 410 && params.continue_token.is_some() => {
                    params.continue_token = status.metadata.as_ref().and_then(|it| it.continue_.clone());
                    if params.continue_token.is_some() {
                        list(params).await
                    } else {
                        Err(kube::Error::Api(status))
                    }
                }
                answer => answer,
            }
        };
        fetch("list", resource, page).await.map(|page| {
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            page.items
        })
    }
}

/// An object with its kind, which the items of a list lack.
pub(super) fn with_kind(kind: &Kind, mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.into());
    }
    object
}

/// The plural name with its group: several platforms have agents.
pub(super) fn resource(kind: &Kind) -> String {
    if kind.group.is_empty() { kind.plural.to_owned() } else { format!("{}.{}", kind.plural, kind.group) }
}
