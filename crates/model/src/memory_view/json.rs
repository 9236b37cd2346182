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

/// The fields of the views of every platform. Policies cannot use all of them as paths.
const FIELDS: [&str; 23] = [
    "family",
    "role",
    "kind",
    "name",
    "namespace",
    "labels",
    "backend",
    "durable",
    "provider",
    "endpoint",
    "ttlSeconds",
    "maxEntries",
    "storageBytes",
    "storageClass",
    "workspace",
    "collection",
    "secrets",
    "inline",
    "references",
    "operations",
    "sharing",
    "sources",
    "containers",
];

impl MemoryView {
    /// The whole view, without absent fields.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let own = self.own_namespace.as_ref().map(|(path, _)| *path);
        let with_own = |name| [Some(name), own.filter(|_| name == "namespace")].into_iter().flatten();
        let fields = FIELDS.into_iter().flat_map(with_own);
        Value::Object(fields.filter_map(|name| Some((name.to_owned(), self.field(name)?))).collect())
    }

    /// The value at a path such as `endpoint.host`; `None` when it is absent.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<Value> {
        let mut keys = path.split('.');
        let field = self.field(keys.next()?)?;
        keys.try_fold(field, |mut value, key| value.get_mut(key).map(Value::take))
    }

    /// A field of the view; `None` when it is absent.
    fn field(&self, name: &str) -> Option<Value> {
        let text = |text: &str| Some(text).filter(|text| !text.is_empty()).map(Value::from);
        let value = match name {
            "family" => json!(self.family),
            "role" => json!(self.role.name()),
            "kind" => json!(self.kind),
            "name" => json!(text(&self.name)),
            "namespace" => json!(text(&self.namespace)),
            "labels" => json!(*self.labels),
            "backend" => json!(self.backend),
            "durable" => json!(self.durable),
            "provider" => json!(self.provider),
            "endpoint" => json!(self.endpoint.as_ref().map(endpoint)),
            "ttlSeconds" => json!(self.ttl_seconds),
            "maxEntries" => json!(self.max_entries),
            "storageBytes" => json!(self.storage.as_ref().map(|storage| integer(storage.bytes))),
            "storageClass" => json!(self.storage_class),
            "workspace" => json!(self.workspace.as_deref().map(workspace)),
            "collection" => json!(self.collection),
            "secrets" => json!(list(&self.secrets, secret)),
            "inline" => json!(list(&self.inline, |inline| json!({"field": inline.field.as_str()}))),
            "references" => json!(list(&self.references, reference)),
            "operations" => {
                let operations = self.operations.as_ref();
                json!(operations.map(|all| all.iter().map(|it| it.name.as_str()).collect::<Vec<_>>()))
            }
            "sharing" => json!(self.sharing.as_ref().map(sharing)),
            "sources" => json!(list(&self.sources, |source| source.view.to_json())),
            "containers" => json!(list(&self.containers, container)),
            _ => json!(self.own_namespace.as_ref().filter(|(path, _)| *path == name).map(|(_, it)| it)),
        };
        Some(value).filter(|value| !value.is_null())
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

fn workspace(workspace: &MemoryView) -> Value {
    present(json!({
        "durable": workspace.durable,
        "ttlSeconds": workspace.ttl_seconds,
        "storageBytes": workspace.storage.as_ref().map(|storage| integer(storage.bytes)),
        "storageClass": workspace.storage_class,
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
