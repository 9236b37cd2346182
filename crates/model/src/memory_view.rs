//! The view of a memory resource, of what refers to one, or of an agent pod: the same fields for every platform.
//!
//! Each family makes it from its own objects, and rules of policies read it. A field that a family does not have, or
//! that an object does not set, is absent and never 0. Values of Secrets and the userinfo and query of URLs are left
//! out. `paths` lists every path of a view. What a path holds, where that stands in the object and why it is unknown is
//! one row; endpoints and the elements of lists are structs with a place of their own.

mod element;
mod endpoint;
mod make;
mod paths;
mod rows;

pub use self::element::Element;
pub use self::endpoint::{
    ENCRYPTED_SCHEMES, ENDPOINTS, EndpointSource, EndpointView, HostView, below_endpoint,
};
pub use self::paths::{Holds, USERS, ViewPart, ViewPath, ViewValue};
pub use self::rows::{Origin, Remark, Row};

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use crate::kind::Kind;
use crate::tree::Tree;
use memgate_primitives::named::named;
use memgate_primitives::plain_text::{quoted, shown_key};
use memgate_primitives::pointer::Pointer;

named! {
    /// The role of an object for memory.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Role {
        /// It declares memory.
        #[default]
        Memory = "memory",
        /// It claims memory.
        Referrer = "referrer",
        /// It is a pod that gets memory.
        Pod = "pod",
    }
}

/// The view of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryView {
    /// The name of the family.
    pub family: &'static str,
    /// The role of the object for memory.
    pub role: Role,
    /// The kind; `Pod` for the pod of a workload too.
    pub kind: &'static str,
    /// The Kubernetes namespace; empty for cluster-wide kinds.
    pub namespace: String,
    /// The name, or else `generateName`.
    pub name: String,
    /// Whether it was that of the object, and an update took the memory away. Only what may not change is asked then.
    pub is_gone: bool,
    /// Whether the platform fixes the name, so that users cannot choose another one.
    pub has_fixed_name: bool,
    /// Whether some of its values are from an object of another Kubernetes namespace. No value of it is reported then.
    pub reads_elsewhere: bool,
    /// The namespace in the platform's own sense, with its path in the view.
    pub own_namespace: Option<(&'static str, String)>,
    /// `metadata.labels`, which all views of an object share.
    pub labels: Arc<BTreeMap<String, String>>,
    /// `metadata.annotations` without those of kubectl and memgate; empty in the view of another object that the judged
    /// one uses.
    pub annotations: Arc<BTreeMap<String, String>>,
    /// Where memory is reached.
    pub endpoint: Option<EndpointView>,
    /// Where the text of memories is sent to become vectors.
    pub embedding_endpoint: Option<EndpointView>,
    /// The Secrets that are referred to.
    pub secrets: Vec<SecretView>,
    /// The credentials in clear text.
    pub inline: Vec<InlineView>,
    /// The objects that are referred to, besides Secrets.
    pub references: Vec<ReferenceView>,
    /// The operations on memory that are allowed, if the object sets them.
    pub operations: Option<Vec<OperationView>>,
    /// How memory is shared.
    pub sharing: Option<SharingView>,
    /// The memory resources that a referrer or pod uses and that were found.
    pub sources: Vec<SourceView>,
    /// The containers that serve memory.
    pub containers: Vec<ContainerView>,
    /// The variables of its memory that a pod sets itself.
    pub own_variables: Vec<OwnVariableView>,
    /// The `envFrom` of a pod that may set variables which its memory leaves out.
    pub env_from: Option<Pointer>,
    /// What is known of the other paths, in the order in which they were set.
    pub rows: Vec<Row>,
}

/// Why a value is unknown.
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
    /// A later step fills in the value.
    FilledInLater,
    /// A value contains `$(…)`, which the kubelet expands.
    Placeholder,
    /// Clients read the host of an endpoint in different ways.
    TwoReadings,
    /// It is not known whether an object exists: `Kind "namespace/name"`.
    Object(String),
    /// The endpoint leads to something that is not known.
    Serving,
    /// The workload of a Service is not known, by `namespace/name`.
    Workload(String),
    /// How a workload keeps memory is not known: its kind, and `namespace/name`.
    Backend(&'static str, String),
    /// The pod sets a variable of this name, or `envFrom`.
    SetByPod(String),
    /// The author of a stored object is not known to have written a value.
    Author,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndpointInSecret => f.write_str("the endpoint is in a Secret"),
            Self::EndpointInConfigMap => f.write_str("the endpoint is in a ConfigMap"),
            Self::EndpointInQuery => f.write_str("the endpoint is in a query parameter"),
            Self::Service(name) => write!(f, "Service {} is not known", quoted(name)),
            Self::Namespace(name) => write!(f, "Namespace {} is not known", quoted(name)),
            Self::FilledInLater => f.write_str("a later step fills in the value"),
            Self::Placeholder => f.write_str("a value holds $(…)"),
            Self::TwoReadings => f.write_str("the host can be read in two ways"),
            Self::Object(name) => write!(f, "{name} is not known"),
            Self::Serving => f.write_str("what serves the endpoint is not known"),
            Self::Workload(name) => write!(f, "the workload of Service {} is not known", quoted(name)),
            Self::Backend(kind, name) => write!(f, "the backend of {kind} {} is not known", quoted(name)),
            Self::Author => f.write_str("what the author of the memory wrote is not known"),
            Self::SetByPod(name) => write!(f, "the pod sets {} itself", shown_key(name)),
        }
    }
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
    /// The place of the name.
    pub field: Pointer,
    /// The field of another object that it is read from.
    pub origin: Option<Origin>,
}

/// A credential in clear text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineView {
    /// Its place.
    pub field: Pointer,
    /// The field of another object that it is read from.
    pub origin: Option<Origin>,
    /// A digest of the value, for comparing it with the stored one. Never shown.
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
    /// The place of the reference.
    pub field: Pointer,
    /// Whether it exists; absent when unknown.
    pub found: Option<bool>,
}

/// An operation on memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationView {
    /// Its name.
    pub name: String,
    /// Its place.
    pub field: Pointer,
}

/// How memory is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharingView {
    /// Each agent configuration that takes part.
    pub configs: Vec<SharingConfigView>,
    /// The place that declares it.
    pub field: Pointer,
}

/// How one configuration shares memory, defaults applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharingConfigView {
    /// Its name.
    pub name: String,
    /// Its access.
    pub access: Option<String>,
    /// The visibility of its entries.
    pub visibility: Option<String>,
    /// The place of the visibility; the field may be absent.
    pub field: Pointer,
    /// The place of the name.
    pub name_field: Pointer,
    /// The place of the access, or of the list that lacks a rule for the configuration.
    pub access_field: Pointer,
}

/// A memory resource that a referrer or pod uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceView {
    /// Its view.
    pub view: MemoryView,
    /// The field of the subject that refers to it; `/metadata/labels` of a pod.
    pub field: Pointer,
}

/// A variable of its memory that a pod sets itself, to another value than the declared memory wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnVariableView {
    /// Its name.
    pub name: String,
    /// The declared memory, as `Kind "name"`.
    pub declared: String,
    /// Its entry in the pod.
    pub field: Pointer,
}

/// A container that serves memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerView {
    /// Its name.
    pub name: String,
    /// Its image as it is written.
    pub image: String,
    /// Registry and repository, with the parts that a short name leaves out.
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
    /// Its place: `/spec/containers/1`.
    pub field: Pointer,
}

impl MemoryView {
    /// A view with a name and nothing else.
    pub fn new(
        family: &'static str,
        role: Role,
        kind: &'static str,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self { family, role, kind, namespace: namespace.into(), name: name.into(), ..Self::default() }
    }

    /// The same with the labels of the object, as far as the schema of its kind keeps them.
    #[must_use]
    pub fn labelled(mut self, object: &Tree) -> Self {
        if let Some(labels @ Tree::Texts(_)) = object.at(&["metadata", "labels"]) {
            let entries = labels.entries().map(|(key, value)| (key.to_owned(), value.to_owned()));
            self.labels = Arc::new(entries.collect());
        }
        self
    }

    /// Whether it is the memory that a pod names by its own variables, and no object declares.
    pub fn is_undeclared(&self) -> bool {
        self.role == Role::Memory && self.kind == "Pod"
    }

    /// The namespace in the platform's own sense; the Kubernetes namespace where the platform has no other.
    pub fn effective_namespace(&self) -> &str {
        self.own_namespace.as_ref().map_or(&self.namespace, |(_, namespace)| namespace)
    }

    /// How many entries its lists have, at least 1: what a rule may look at.
    pub fn entries(&self) -> usize {
        let operations = self.operations.as_ref().map_or(0, Vec::len);
        let sharing = self.sharing.as_ref().map_or(0, |sharing| sharing.configs.len());
        let lists = [
            self.labels.len(),
            self.annotations.len(),
            self.secrets.len(),
            self.inline.len(),
            self.references.len(),
        ];
        1 + lists.into_iter().sum::<usize>() + self.containers.len() + operations + sharing
    }

    /// The name with the namespace in front, where there is one.
    pub fn path(&self) -> String {
        qualified(&self.namespace, &self.name)
    }
}

/// A name with its namespace in front, if it has one.
pub fn qualified(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl InlineView {
    /// A credential at this place.
    pub fn new(field: Pointer, value: &str) -> Self {
        Self { field, origin: None, digest: digest(value) }
    }

    /// The same, read from this field of an object of another kind.
    #[must_use]
    pub fn from(self, kind: &'static Kind, field: impl Into<Pointer>) -> Self {
        Self { origin: Some(Origin { kind, field: field.into() }), ..self }
    }
}

fn digest(text: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(text)
}
