#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! ```text
//! CRD ──read──▶ Crd          JSON ──document──▶ as it would be stored ──check──▶ Breaches ──▶ violations
//! ```
//!
//! 1. `parse` reads a definition into a [`Crd`]; `builtin` has the kinds of Kubernetes itself ([`BuiltinKind`]).
//! 2. `read` reads an object into a [`Document`]: a flat list of values, which `cursor` walks.
//! 3. `check`, `lists`, `scalar` (with `formats`, `pattern`, `equal`) and `metadata` compare it with the schema.
//! 4. [`Breaches`] holds the result in a few bytes for each broken rule. Messages are made for the rules that are
//!    reported, as a [`violation`] or a [`metadata_fault`].
//!
//! Read from: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", and the
//! behaviour of k8s.io/apiextensions-apiserver and k8s.io/kube-openapi 1.36.

mod breach;
mod builtin;
mod check;
pub mod crd;
mod cursor;
mod document;
mod equal;
mod form;
mod formats;
mod lists;
mod metadata;
pub mod metadata_fault;
mod parse;
mod path;
mod pattern;
mod place;
mod read;
mod repeated;
mod rule;
mod scalar;
mod shown;
mod url;
pub mod violation;

use std::sync::LazyLock;

use serde_json::Value;

use crate::crd::{Crd, CrdVersion, SchemaNode};
use crate::cursor::Cursor;
use memgate_primitives::budget::Budget;

pub use self::breach::{Breach, Breaches, ReportedPlaces};
pub use self::document::Document;
use self::place::Place;
pub use self::place::PointerText;

/// An object that does not exist yet: its name and namespace are still to be judged.
#[derive(Debug, Clone, Copy)]
pub struct NewObject<'n> {
    /// The name in the request, if the object itself has none.
    pub name: &'n str,
    /// Whether objects of the kind live in namespaces.
    pub namespaced: bool,
    /// Whether the name is a part of host names, without dots, as that of a Namespace is.
    pub name_is_label: bool,
}

/// A kind of Kubernetes itself in which memory is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinKind {
    /// A pod.
    Pod,
    /// A workload with a pod template right below its spec.
    Workload,
    /// A CronJob.
    CronJob,
}

impl BuiltinKind {
    /// The kind of this group and name; `None` for all others.
    #[must_use]
    pub fn find(group: &str, kind: &str) -> Option<Self> {
        match (group, kind) {
            ("", "Pod") => Some(Self::Pod),
            ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
                Some(Self::Workload)
            }
            ("batch", "CronJob") => Some(Self::CronJob),
            _ => None,
        }
    }

    /// Its only version, with what an apiserver must be able to decode.
    #[must_use]
    pub fn version(self) -> &'static CrdVersion {
        match self {
            Self::Pod => &builtin::POD,
            Self::Workload => &builtin::WORKLOAD,
            Self::CronJob => &builtin::CRON_JOB,
        }
    }
}

/// Reads a CustomResourceDefinition.
///
/// # Errors
/// A message, when it has no group, no kind or no version with a schema.
pub fn read(value: &Value) -> Result<Crd, String> {
    parse::crd(value)
}

/// The status, where a version has a subresource for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// What users write there is dropped.
    Dropped,
    /// What users write there is judged.
    Judged,
}

/// The schema of a kind without a definition: only its metadata is checked.
static NO_SCHEMA: LazyLock<SchemaNode> = LazyLock::new(SchemaNode::default);

/// Reads an object as it would be stored by a version; without one, only its metadata. What is read counts in
/// `budget`. `None` when it is not JSON that can be read, or `budget` has ended.
#[must_use]
pub fn document<'d>(
    text: &'d str,
    version: Option<&CrdVersion>,
    status: Status,
    budget: &Budget<'_>,
) -> Option<Document<'d>> {
    let without_status = version.is_some_and(|version| version.has_status) && status == Status::Dropped;
    let schema = version.map_or(&*NO_SCHEMA, |version| &version.schema);
    read::read(text, schema, without_status, budget)
}

/// The names of the fields of metadata that no object has.
pub fn unknown_metadata<'d>(document: &'d Document<'d>) -> impl Iterator<Item = &'d str> {
    let metadata = Cursor::root(document).get("metadata");
    let names = metadata.into_iter().flat_map(|metadata| metadata.fields().map(|(name, _)| name));
    names.filter(|name| metadata::OBJECT_META.object.field(name).is_none())
}

/// Whether an object breaks no rule. Most do not, so this collects nothing.
#[must_use]
pub fn is_right(document: &Document<'_>, version: Option<&CrdVersion>, new: Option<NewObject<'_>>) -> bool {
    let mut any = Breaches::whether_any(Cursor::root(document));
    metadata::check(Cursor::root(document), new, &mut any);
    if let Some(version) = version {
        check(version, document, None, &mut any);
    }
    any.is_empty()
}

/// Notes everything that the schema of a version refuses in an object. `old` is the stored object of an update.
pub fn check<'d>(
    version: &'d CrdVersion,
    object: &'d Document<'d>,
    old: Option<&'d Document<'d>>,
    found: &mut Breaches<'d>,
) {
    let root = Place::root(Cursor::root(object), old.map(Cursor::root));
    check::check(&root, &version.schema, found);
    let from = found.len();
    lists::check(&root, &version.schema, found);
    if found.len() > from {
        // None counts while the stored object has some.
        let is_stored = old.is_some_and(|old| {
            let mut any = Breaches::whether_any(Cursor::root(old));
            lists::check(&Place::root(Cursor::root(old), None), &version.schema, &mut any);
            !any.is_empty()
        });
        found.mark_all(from, is_stored);
    }
    if let Some(way) = &version.replicas {
        scalar::replicas(&Place::root(Cursor::root(object), None), way, found);
    }
}

/// Notes everything that the apiserver refuses in the metadata of a new object, or of an update. `old` is the
/// stored object.
pub fn check_metadata<'d>(
    object: &'d Document<'d>,
    new: Option<NewObject<'_>>,
    old: Option<&Document<'_>>,
    found: &mut Breaches<'d>,
) {
    let from = found.len();
    metadata::check(Cursor::root(object), new, found);
    if let Some(old) = old.filter(|_| found.len() > from) {
        if std::ptr::eq(object, old) {
            return found.mark_all(from, true);
        }
        let Some(budget) = found.budget() else { return };
        let (stored, _) = budget.apart(old.bytes(), || {
            let mut stored = Breaches::new(old, budget);
            metadata::check(Cursor::root(old), None, &mut stored);
            stored.fingerprints()
        });
        found.mark(from, |fingerprint| stored.binary_search(&fingerprint).is_ok());
    }
}

#[cfg(test)]
mod tests;
