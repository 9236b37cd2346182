#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! ```text
//! CRD ──read──▶ Crd      JSON ──document──▶ as it would be stored ──check──▶ Violations
//! ```
//!
//! 1. `parse` reads a definition into a [`crd::Crd`]; `builtin` has the kinds of Kubernetes itself ([`builtin_version`]).
//! 2. `read` reads an object into a [`Document`], a tree of what the schema knows.
//! 3. `check`, `scalar` (with `formats`) and `metadata` compare it with the schema.
//! 4. `cel` evaluates the rules of the definition.
//! 5. [`Violations`] holds each broken rule with its place; [`violation::message`] writes it as text.
//!
//! Read from: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", and the
//! behaviour of k8s.io/apiextensions-apiserver and k8s.io/kube-openapi 1.36.

mod builtin;
mod cel;
mod check;
pub mod crd;
mod form;
mod formats;
mod go_pattern;
mod metadata;
pub mod metadata_fault;
mod node;
mod parse;
mod place;
mod program;
mod read;
mod scalar;
mod shown;
mod uri;
pub mod violation;

use std::sync::LazyLock;

use crate::crd::{CrdVersion, SchemaNode};
use memgate_primitives::budget::Budget;

pub use self::builtin::find as builtin_version;
pub use self::cel::allowance;
pub use self::node::{Document, UnknownField};
pub use self::parse::crd as read;
use self::place::Place;
pub use self::violation::Violations;

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
pub fn document<'d>(
    text: &'d str,
    version: Option<&'d CrdVersion>,
    status: Status,
    budget: &Budget<'_>,
) -> Option<Document<'d>> {
    let without_status = version.is_some_and(|version| version.has_status) && status == Status::Dropped;
    let schema = version.map_or(&*NO_SCHEMA, |version| &version.schema);
    read::read(text, schema, without_status, budget)
}

/// The names of the fields of metadata that no object has.
pub fn unknown_metadata<'d>(document: &'d Document<'d>) -> impl Iterator<Item = &'d str> {
    let metadata = document.root.get("metadata").into_iter();
    let names = metadata.flat_map(|metadata| metadata.fields().iter().map(|(name, _)| &**name));
    names.filter(|name| metadata::OBJECT_META.object.field(name).is_none())
}

/// Notes everything that the schema of a version refuses in an object. `old` is the stored object of an update.
pub fn check<'d>(
    version: &'d CrdVersion,
    object: &'d Document<'d>,
    old: Option<&'d Document<'d>>,
    found: &mut Violations<'d>,
) {
    let root = Place::root(&object.root, old.map(|old| &old.root));
    check::check(&root, &version.schema, found);
    let from = found.len();
    check::lists(&root, &version.schema, found);
    if found.len() > from {
        // None counts while the stored object has some.
        let is_stored = old.is_some_and(|old| {
            let mut any = Violations::whether_any();
            check::lists(&Place::root(&old.root, None), &version.schema, &mut any);
            !any.is_empty()
        });
        found.mark_all(from, is_stored);
    }
}

/// Notes the rules in CEL that an object breaks, and those that cannot be evaluated. `found` has what [`check()`] and
/// [`check_metadata`] noted: where that is so wrong that an apiserver evaluates no rules, none are. `old` is the stored
/// object of an update, with its status; `allowance` is what the rules may cost, see [`allowance()`].
pub fn check_rules<'d>(
    version: &'d CrdVersion,
    allowance: u64,
    object: &'d Document<'d>,
    old: Option<&'d Document<'d>>,
    found: &mut Violations<'d>,
) {
    let root = Place::root(&object.root, old.map(|old| &old.root));
    cel::check(&root, object.bytes, &version.schema, allowance, found);
}

/// Notes everything that the apiserver refuses in the metadata of a new object, or of an update. `old` is the
/// stored object.
pub fn check_metadata<'d>(
    object: &'d Document<'d>,
    new: Option<NewObject<'_>>,
    old: Option<&'d Document<'d>>,
    found: &mut Violations<'d>,
) {
    let from = found.len();
    metadata::check(&object.root, new, found);
    let Some((old, budget)) = old.zip(found.budget()).filter(|_| found.len() > from) else { return };
    if std::ptr::eq(object, old) {
        return found.mark_all(from, true);
    }
    let (stored, _) = budget.apart(old.bytes, || {
        let mut stored = Violations::new(budget);
        metadata::check(&old.root, None, &mut stored);
        stored
    });
    found.mark(from, &stored);
}

#[cfg(test)]
mod tests;
