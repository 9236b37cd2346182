//! The view as a plain value: what `memgate view` prints, and what `immutable` compares by path.

use serde_json::{Map, Value, json};

use crate::model::memory_view::{
    ContainerView, EndpointView, MemoryView, OperationView, ReferenceView, SecretView, SharingView,
    SourceView,
};

/// The paths that hold one value or a whole list in the views of every platform. A policy can name them, and the
/// path of each platform's own namespace.
pub const PATHS: [&str; 31] = [
    "backend",
    "collection",
    "containers",
    "durable",
    "endpoint",
    "endpoint.from",
    "endpoint.host",
    "endpoint.inCluster",
    "endpoint.linkLocal",
    "endpoint.loopback",
    "endpoint.path",
    "endpoint.port",
    "endpoint.private",
    "endpoint.scheme",
    "endpoint.url",
    "family",
    "inline",
    "kind",
    "labels",
    "maxEntries",
    "name",
    "namespace",
    "operations",
    "provider",
    "references",
    "role",
    "secrets",
    "sharing",
    "sharing.configs",
    "storageBytes",
    "ttlSeconds",
];

impl MemoryView {
    /// The whole view, with what is absent left out.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut view = Map::new();
        put(&mut view, "family", Some(self.family));
        put(&mut view, "role", Some(self.role.name()));
        put(&mut view, "kind", Some(self.kind));
        put(&mut view, "name", Some(self.name.as_str()).filter(|name| !name.is_empty()));
        put(&mut view, "namespace", Some(self.namespace.as_str()).filter(|name| !name.is_empty()));
        if let Some((path, namespace)) = &self.own_namespace {
            put(&mut view, path, Some(namespace.as_str()));
        }
        put(&mut view, "labels", Some(json!(self.labels)));
        put(&mut view, "backend", self.backend.as_deref());
        put(&mut view, "durable", self.durable);
        put(&mut view, "provider", self.provider.as_deref());
        put(&mut view, "endpoint", self.endpoint.as_ref().map(endpoint));
        put(&mut view, "ttlSeconds", self.ttl_seconds);
        put(&mut view, "maxEntries", self.max_entries);
        put(&mut view, "storageBytes", self.storage.as_ref().map(|storage| integer(storage.bytes)));
        put(&mut view, "collection", self.collection.as_deref());
        list(&mut view, "secrets", self.secrets.iter().map(secret));
        list(&mut view, "inline", self.inline.iter().map(|inline| json!({"field": inline.field.as_str()})));
        list(&mut view, "references", self.references.iter().map(reference));
        let operations = self.operations.as_ref();
        let names = |operations: &Vec<OperationView>| -> Vec<Value> {
            operations.iter().map(|operation| operation.name.as_str().into()).collect()
        };
        put(&mut view, "operations", operations.map(names));
        put(&mut view, "sharing", self.sharing.as_ref().map(sharing));
        list(&mut view, "sources", self.sources.iter().map(|SourceView { view, .. }| view.to_json()));
        list(&mut view, "containers", self.containers.iter().map(container));
        Value::Object(view)
    }

    /// The value at a path such as `endpoint.host`; `None` when it is absent.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<Value> {
        let whole = self.to_json();
        path.split('.').try_fold(&whole, |value, key| value.get(key)).cloned()
    }
}

fn put(map: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.into());
    }
}

fn list(map: &mut Map<String, Value>, key: &str, values: impl Iterator<Item = Value>) {
    let values: Vec<Value> = values.collect();
    if !values.is_empty() {
        map.insert(key.to_owned(), Value::Array(values));
    }
}

/// A number of bytes; one that does not fit counts as the largest.
fn integer(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

fn endpoint(endpoint: &EndpointView) -> Value {
    let mut view = Map::new();
    put(&mut view, "from", Some(endpoint.from.name()));
    put(&mut view, "url", endpoint.url());
    put(&mut view, "scheme", endpoint.scheme.as_deref());
    if let Some(first) = endpoint.hosts.first() {
        put(&mut view, "host", Some(first.host.as_str()));
        put(&mut view, "port", first.port);
    }
    put(&mut view, "path", endpoint.path.as_deref());
    if let Some(first) = endpoint.hosts.first() {
        put(&mut view, "loopback", Some(first.loopback));
        put(&mut view, "private", Some(first.private));
        put(&mut view, "linkLocal", Some(first.link_local));
        put(&mut view, "inCluster", Some(first.in_cluster));
    }
    Value::Object(view)
}

fn secret(secret: &SecretView) -> Value {
    let mut view = Map::new();
    put(&mut view, "name", Some(secret.name.as_str()));
    put(&mut view, "namespace", Some(secret.namespace.as_str()));
    put(&mut view, "key", secret.key.as_deref());
    put(&mut view, "field", Some(secret.field.as_str()));
    Value::Object(view)
}

fn reference(reference: &ReferenceView) -> Value {
    let mut view = Map::new();
    put(&mut view, "kind", Some(reference.kind));
    put(&mut view, "namespace", Some(reference.namespace.as_str()).filter(|name| !name.is_empty()));
    put(&mut view, "name", Some(reference.name.as_str()));
    put(&mut view, "field", Some(reference.field.as_str()));
    put(&mut view, "found", reference.found);
    Value::Object(view)
}

fn sharing(sharing: &SharingView) -> Value {
    let configs = sharing.configs.iter().map(|config| {
        let mut view = Map::new();
        put(&mut view, "name", Some(config.name.as_str()));
        put(&mut view, "access", config.access.as_deref());
        put(&mut view, "visibility", config.visibility.as_deref());
        Value::Object(view)
    });
    json!({"configs": configs.collect::<Vec<_>>()})
}

fn container(container: &ContainerView) -> Value {
    let mut view = Map::new();
    put(&mut view, "name", Some(container.name.as_str()));
    put(&mut view, "image", Some(container.image.as_str()));
    put(&mut view, "repository", Some(container.repository.as_str()));
    put(&mut view, "tag", container.tag.as_deref());
    put(&mut view, "digest", container.digest.as_deref());
    put(&mut view, "init", Some(container.init));
    put(&mut view, "native", Some(container.native));
    put(&mut view, "added", Some(container.added));
    put(&mut view, "limits", Some(json!(container.limits)));
    Value::Object(view)
}
