//! Reads objects: a bounded number, in pages, with a time limit for each request. What the user may
//! not read is unknown, with the right that it takes.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::cluster::cluster_state::{Fetched, Listing};
use crate::cluster::request::{REQUEST_TIMEOUT, error_message};
use crate::model::kind::Kind;

/// How many objects one request brings.
const PAGE_OBJECTS: u32 = 500;

/// The way to the cluster.
#[derive(Clone)]
pub struct ClusterReader {
    /// The client.
    pub client: Client,
    /// How many objects of one kind are read; a page more at most.
    pub max_objects: usize,
}

/// Awaits a request: `verb` and `resource` are the right that it takes.
pub(super) async fn fetch<T>(
    verb: &str,
    resource: &str,
    request: impl Future<Output = kube::Result<T>>,
) -> Fetched<T> {
    match timeout(REQUEST_TIMEOUT, request).await {
        Ok(Ok(response)) => Fetched::Found(response),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Fetched::NotFound,
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
            Fetched::Unknown(forbidden(verb, resource))
        }
        Ok(Err(error)) => Fetched::Unknown(format!("failed to {verb} {resource}: {}", error_message(&error))),
        Err(_) => Fetched::Unknown(format!("failed to {verb} {resource}: no answer in {REQUEST_TIMEOUT:?}")),
    }
}

/// The sentence for a right that the user lacks.
pub(super) fn forbidden(verb: &str, resource: &str) -> String {
    format!("you may not {verb} {resource}: it takes that right")
}

impl ClusterReader {
    /// One object by name.
    pub(super) async fn get<K>(&self, api: Api<K>, resource: &str, name: &str) -> Fetched<K>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        fetch("get", resource, api.get(name)).await
    }

    /// The objects of a list, up to the limit.
    pub(super) async fn list<K>(&self, api: Api<K>, resource: &str, params: ListParams) -> Fetched<Listing<K>>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let mut items = Vec::new();
        let pages = pages(resource, api, params, |page| {
            items.extend(page);
            items.len() < self.max_objects
        });
        let truncated = pages.await.map(|is_whole| !is_whole);
        truncated.map(|truncated| Listing { items, truncated })
    }

    /// One object of a kind that a family names, as JSON.
    pub(super) async fn get_kind(&self, kind: &Kind, namespace: &str, name: &str) -> Fetched<Value> {
        let api = self.kind_api(kind, kind.version, namespace);
        self.get(api, kind.plural, name).await.map(|object| json(kind, &object))
    }

    /// All objects of a kind that a family names, as JSON.
    pub(super) async fn list_kind(&self, kind: &Kind, params: ListParams) -> Fetched<Listing<Value>> {
        self.list_kind_in(kind, "", params).await
    }

    /// The same in one namespace; the empty one stands for all.
    pub(super) async fn list_kind_in(
        &self,
        kind: &Kind,
        namespace: &str,
        params: ListParams,
    ) -> Fetched<Listing<Value>> {
        let listing = self.list(self.kind_api(kind, kind.version, namespace), kind.plural, params).await;
        listing.map(|listing| Listing {
            items: listing.items.iter().map(|object| json(kind, object)).collect(),
            truncated: listing.truncated,
        })
    }

    pub(super) fn kind_api(&self, kind: &Kind, version: &str, namespace: &str) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: kind.group.to_owned(),
            version: version.to_owned(),
            api_version: api_version(kind.group, version),
            kind: kind.kind.to_owned(),
            plural: kind.plural.to_owned(),
        };
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    /// A kind in the whole cluster.
    pub(super) fn api<K: Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    /// A kind in one namespace.
    pub(super) fn namespaced_api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Reads a list page by page, until `take` wants no more; whether that was all of it.
pub(super) async fn pages<K>(
    resource: &str,
    api: Api<K>,
    params: ListParams,
    mut take: impl FnMut(Vec<K>) -> bool,
) -> Fetched<bool>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut params = params.limit(PAGE_OBJECTS);
    loop {
        let page = match fetch("list", resource, api.list(&params)).await {
            Fetched::Found(page) => page,
            Fetched::NotFound => return Fetched::NotFound,
            Fetched::Unknown(why) => return Fetched::Unknown(why),
        };
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        let wants_more = take(page.items);
        match next {
            None => return Fetched::Found(true),
            Some(_) if !wants_more => return Fetched::Found(false),
            Some(token) => params = params.continue_token(&token),
        }
    }
}

/// An object with its kind, which the items of a list do not hold.
pub(super) fn json(kind: &Kind, object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.into());
    }
    value
}
