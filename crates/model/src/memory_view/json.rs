//! The view as JSON, which `memgate view` prints and the rule `immutable` compares by path.

use serde_json::{Value, json};

use crate::memory_view::{
    ContainerView, EndpointView, MemoryView, ReferenceView, SecretView, SharingConfigView, SharingView,
};

/// The paths that hold one value or a whole list in the views of every platform. Policies can use them, and the
/// path of each platform's own namespace.
pub const PATHS: [&str; 37] = [
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
    "storageClass",
    "ttlSeconds",
    "workspace",
    "workspace.durable",
    "workspace.storageBytes",
    "workspace.storageClass",
    "workspace.ttlSeconds",
];

impl MemoryView {
    /// The whole view, without absent fields.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let named = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let operations = self
            .operations
            .as_ref()
            .map(|operations| operations.iter().map(|operation| operation.name.as_str()).collect::<Vec<_>>());
        let mut view = json!({
            "family": self.family,
            "role": self.role.name(),
            "kind": self.kind,
            "name": named(&self.name),
            "namespace": named(&self.namespace),
        });
        if let (Value::Object(fields), Some((path, namespace))) = (&mut view, &self.own_namespace) {
            fields.insert((*path).to_owned(), namespace.as_str().into());
        }
        let rest = json!({
            "labels": self.labels,
            "backend": self.backend,
            "durable": self.durable,
            "provider": self.provider,
            "endpoint": self.endpoint.as_ref().map(endpoint),
            "ttlSeconds": self.ttl_seconds,
            "maxEntries": self.max_entries,
            "storageBytes": self.storage.as_ref().map(|storage| integer(storage.bytes)),
            "storageClass": self.storage_class,
            "workspace": self.workspace.as_ref().map(|of| present(json!({
                "durable": of.durable,
                "ttlSeconds": of.ttl_seconds,
                "storageBytes": of.storage.as_ref().map(|storage| integer(storage.bytes)),
                "storageClass": of.storage_class,
            }))),
            "collection": self.collection,
            "secrets": list(&self.secrets, secret),
            "inline": list(&self.inline, |inline| json!({"field": inline.field.as_str()})),
            "references": list(&self.references, reference),
            "operations": operations,
            "sharing": self.sharing.as_ref().map(sharing),
            "sources": list(&self.sources, |source| source.view.to_json()),
            "containers": list(&self.containers, container),
        });
        if let (Value::Object(fields), Value::Object(rest)) = (&mut view, rest) {
            fields.extend(rest);
        }
        present(view)
    }

    /// The value at a path such as `endpoint.host`; `None` when it is absent.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<Value> {
        let whole = self.to_json();
        path.split('.').try_fold(&whole, |value, key| value.get(key)).cloned()
    }
}

/// An object without the fields that are `null`.
fn present(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// A list as JSON; `None` for an empty one.
fn list<T>(elements: &[T], to_json: impl Fn(&T) -> Value) -> Option<Vec<Value>> {
    (!elements.is_empty()).then(|| elements.iter().map(to_json).collect())
}

/// A number of bytes; one that does not fit counts as the largest.
fn integer(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

fn endpoint(endpoint: &EndpointView) -> Value {
    let first = endpoint.hosts.first();
    let known = first.filter(|_| endpoint.unknown.is_none());
    present(json!({
        "from": endpoint.from.name(),
        "url": endpoint.url(),
        "scheme": endpoint.scheme,
        "host": first.map(|host| &host.host),
        "port": known.and_then(|host| host.port),
        "path": endpoint.path,
        "loopback": known.map(|host| host.loopback),
        "private": known.map(|host| host.private),
        "linkLocal": known.map(|host| host.link_local),
        "inCluster": known.map(|host| host.in_cluster),
    }))
}

fn secret(SecretView { name, namespace, key, field }: &SecretView) -> Value {
    present(json!({"name": name, "namespace": namespace, "key": key, "field": field.as_str()}))
}

fn reference(ReferenceView { kind, namespace, name, field, found }: &ReferenceView) -> Value {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    let field = field.as_str();
    present(json!({"kind": kind, "namespace": namespace, "name": name, "field": field, "found": found}))
}

fn sharing(sharing: &SharingView) -> Value {
    let configs = sharing.configs.iter().map(|SharingConfigView { name, access, visibility, .. }| {
        present(json!({"name": name, "access": access, "visibility": visibility}))
    });
    json!({"configs": configs.collect::<Vec<_>>()})
}

fn container(container: &ContainerView) -> Value {
    let ContainerView { name, image, repository, tag, digest, init, native, added, limits, .. } = container;
    present(json!({
        "name": name,
        "image": image,
        "repository": repository,
        "tag": tag,
        "digest": digest,
        "init": init,
        "native": native,
        "added": added,
        "limits": limits,
    }))
}
