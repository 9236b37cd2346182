//! The view of a memory resource, of what refers to one, or of an agent pod: the same fields for every platform.
//!
//! Each family makes it of its own objects, and rules of policies read it. What a family does not have, or an
//! object leaves open, is absent, never a made-up zero. No Secret value and no userinfo or query of a URL is in it.
//! Each field knows the place in the object that it comes from.

mod endpoint;
mod json;
mod make;

pub use self::endpoint::{EndpointSource, EndpointView, HostView};
pub use self::json::PATHS;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::model::pointer::Pointer;
use crate::model::tree::Tree;

/// What an object is to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It declares memory.
    Memory,
    /// It claims memory.
    Referrer,
    /// It is a pod that shall get memory.
    Pod,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Referrer, Self::Pod];

    /// The word that policies use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Referrer => "referrer",
            Self::Pod => "pod",
        }
    }
}

/// The view of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryView {
    /// The name of the family.
    pub family: &'static str,
    /// What the object is to memory.
    pub role: Role,
    /// The kind; `Pod` for the pod of a workload too.
    pub kind: &'static str,
    /// The Kubernetes namespace; empty for cluster-wide kinds.
    pub namespace: String,
    /// The name, or the `generateName` of an object that is yet to be named.
    pub name: String,
    /// The namespace that Orloj sees the object in, where that is another notion.
    pub orloj_namespace: Option<String>,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// Where memory is kept.
    pub backend: Option<String>,
    /// Whether memory outlives its process.
    pub durable: Option<bool>,
    /// The provider, where a backend has several.
    pub provider: Option<String>,
    /// Where memory is reached.
    pub endpoint: Option<EndpointView>,
    /// How long entries are kept; 0 is for ever.
    pub ttl_seconds: Option<i64>,
    /// How many entries are kept; 0 is without limit.
    pub max_entries: Option<i64>,
    /// The size of the volume.
    pub storage: Option<StorageView>,
    /// The collection in which entries are.
    pub collection: Option<String>,
    /// The Secrets that are referred to.
    pub secrets: Vec<SecretView>,
    /// The places where a credential stands in clear text.
    pub inline: Vec<InlineView>,
    /// The objects that are referred to, besides Secrets.
    pub references: Vec<ReferenceView>,
    /// The operations on memory that are allowed, where something says so.
    pub operations: Option<Vec<OperationView>>,
    /// Who shares memory, and how.
    pub sharing: Option<SharingView>,
    /// Of a referrer or pod: the memory resources that were found.
    pub sources: Vec<SourceView>,
    /// The containers that serve memory.
    pub containers: Vec<ContainerView>,
    /// Where the fields stand in the object, by their path in the view. Elements of lists know it themselves.
    pub fields: Vec<(&'static str, Pointer)>,
}

/// Why something is there and cannot be known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The endpoint is in a Secret, which memgate does not read.
    EndpointInSecret,
    /// The endpoint is in a `ConfigMap` that is not known.
    EndpointInConfigMap,
    /// The endpoint is in the parameters of a query.
    EndpointInQuery,
    /// A Service is not known, by `namespace/name`.
    Service(String),
    /// A Namespace is not known.
    Namespace(String),
    /// A value holds `$(…)`, which is expanded where it is used.
    Placeholder,
    /// It is not known whether an object exists: `Kind "namespace/name"`.
    Object(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndpointInSecret => f.write_str("the endpoint is in a Secret"),
            Self::EndpointInConfigMap => f.write_str("the endpoint is in a ConfigMap"),
            Self::EndpointInQuery => f.write_str("the endpoint is in a query parameter"),
            Self::Service(name) => write!(f, "Service \"{name}\" is not known"),
            Self::Namespace(name) => write!(f, "Namespace \"{name}\" is not known"),
            Self::Placeholder => f.write_str("a value holds $(…)"),
            Self::Object(name) => write!(f, "{name} is not known"),
        }
    }
}

/// The size of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageView {
    /// In bytes, rounded up.
    pub bytes: i128,
    /// As it is written.
    pub text: String,
}

/// A Secret that is referred to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretView {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The key that is used.
    pub key: Option<String>,
    /// Where the name stands.
    pub field: Pointer,
}

/// A credential in clear text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineView {
    /// Where it stands.
    pub field: Pointer,
    /// A digest of the value, to tell whether an update changes it. Never shown.
    pub digest: u64,
}

/// An object that is referred to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceView {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace, in the platform's own sense.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where the reference stands.
    pub field: Pointer,
    /// Whether it exists; absent when unknown.
    pub found: Option<bool>,
}

/// An operation on memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationView {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub field: Pointer,
}

/// Who shares memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharingView {
    /// Each agent configuration that takes part.
    pub configs: Vec<SharingConfigView>,
    /// Where sharing is declared.
    pub field: Pointer,
}

/// How one configuration shares memory, defaults applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharingConfigView {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub access: Option<String>,
    /// Who sees its entries.
    pub visibility: Option<String>,
    /// Where the visibility stands, or would.
    pub field: Pointer,
}

/// A memory resource that a referrer or pod uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceView {
    /// Its view.
    pub view: MemoryView,
    /// Where the subject refers to it; `/metadata/labels` of a pod.
    pub field: Pointer,
}

/// A container that serves memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerView {
    /// Its name.
    pub name: String,
    /// Its image as it is written.
    pub image: String,
    /// Registry and repository, with what a short name leaves out.
    pub repository: String,
    /// The tag, if one is written.
    pub tag: Option<String>,
    /// The digest, if one is written.
    pub digest: Option<String>,
    /// Whether it is an init container.
    pub init: bool,
    /// Whether it is a native sidecar: an init container that keeps running.
    pub native: bool,
    /// Whether memgate adds it.
    pub added: bool,
    /// Its limits, by resource, as quantities.
    pub limits: BTreeMap<String, String>,
    /// Where it stands: `/spec/containers/1`.
    pub field: Pointer,
}

impl MemoryView {
    /// The view of an object of which only its name is known.
    #[must_use]
    pub fn new(
        family: &'static str,
        role: Role,
        kind: &'static str,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            family,
            role,
            kind,
            namespace: namespace.into(),
            name: name.into(),
            orloj_namespace: None,
            labels: BTreeMap::new(),
            backend: None,
            durable: None,
            provider: None,
            endpoint: None,
            ttl_seconds: None,
            max_entries: None,
            storage: None,
            collection: None,
            secrets: Vec::new(),
            inline: Vec::new(),
            references: Vec::new(),
            operations: None,
            sharing: None,
            sources: Vec::new(),
            containers: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// The same with the labels of the object, as far as the schema of its kind keeps them.
    #[must_use]
    pub fn labelled(mut self, object: &Tree) -> Self {
        if let Some(labels @ Tree::Texts(_)) = object.at(&["metadata", "labels"]) {
            self.labels = labels.entries().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        }
        self
    }

    /// Notes where a field of the view stands in the object.
    pub fn at(&mut self, path: &'static str, pointer: Pointer) {
        self.fields.push((path, pointer));
    }

    /// Where a field of the view stands in the object: that of its nearest parent in the view that is noted, else
    /// the whole spec. It may point at what is not there.
    #[must_use]
    pub fn pointer(&self, path: &str) -> Pointer {
        let noted =
            |path: &str| self.fields.iter().find(|(field, _)| *field == path).map(|(_, it)| it.clone());
        let mut here = path;
        loop {
            if let Some(pointer) = noted(here) {
                return pointer;
            }
            match here.rsplit_once('.') {
                Some((parent, _)) => here = parent,
                None => return Pointer::new("/spec"),
            }
        }
    }

    /// The name with the namespace in front, where there is one.
    #[must_use]
    pub fn path(&self) -> String {
        qualified(&self.namespace, &self.name)
    }
}

/// A name with its namespace in front, if it has one.
#[must_use]
pub fn qualified(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl InlineView {
    /// A credential that stands here.
    #[must_use]
    pub fn new(field: Pointer, value: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self { field, digest: hasher.finish() }
    }
}
