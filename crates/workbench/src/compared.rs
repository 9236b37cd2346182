//! What is compared of two commits: the objects of their files, and what these refer to.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::judged_by::Standing;
use crate::places::Places;
use crate::report::ObjectRef;
use memgate_manifest::place::DocumentPlace;
use memgate_model::finding::Code;
use memgate_model::object::Reference;
use memgate_primitives::pointer::Pointer;

/// An object by kind, namespace and name. The group does not count: a platform may move its kinds to another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Whether the object of a reference is among the inputs, or whether it has the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Found,
    Missing,
    /// Another object may make it, or a later step fills in its name.
    Unknown,
}

/// A field that names an object, or a key of it.
#[derive(Debug)]
pub(crate) struct NamingField {
    /// The object that has the field, without its version.
    pub(crate) user: ObjectRef,
    pub(crate) place: Arc<DocumentPlace>,
    pub(crate) api_version: Arc<str>,
    /// The judged part of the document, and the field in it.
    pub(crate) part: Pointer,
    pub(crate) pointer: Pointer,
    /// The object as it is named, under the kind that was found, else under the first one.
    pub(crate) target: Target,
    /// The object that was found, which may be in another namespace.
    pub(crate) found: Option<Target>,
    /// The key of the object that the field says or needs; empty for all that the object must have. `None` for a field with
    /// the name of an object.
    pub(crate) key: Option<String>,
    /// The kinds that it may have.
    pub(crate) kinds: Vec<&'static str>,
    pub(crate) presence: Presence,
    /// The code of a finding about a missing one, or without the key.
    pub(crate) code: &'static Code,
}

impl Target {
    pub(crate) fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl NamingField {
    /// The object under each of its kinds.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> {
        let Target { namespace, name, .. } = &self.target;
        self.kinds.iter().map(|kind| Target::new(kind, namespace, name))
    }
}

/// What the objects of files refer to, and which objects there are.
#[derive(Debug, Default)]
pub struct References {
    pub(crate) fields: Vec<NamingField>,
    /// The objects of the files, those of the state and those that others make too, each with its file.
    pub(crate) objects: BTreeMap<Target, Arc<str>>,
}

/// The words of a text that may be names.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.');
    text.split(move |c| !is_of_name(c)).filter(|word| !word.is_empty())
}

impl References {
    /// Whether this object is in the files.
    pub(crate) fn has(&self, target: &Target) -> bool {
        self.objects.contains_key(target)
    }
}

/// What is compared with the other commit of a branch.
#[derive(Debug, Clone, Default)]
pub enum Comparison {
    /// Nothing.
    #[default]
    None,
    /// This is the base.
    Base,
    /// This is the branch.
    With(Arc<AtBase>),
}

impl Comparison {
    /// Whether references are needed.
    pub(crate) const fn is_wanted(&self) -> bool {
        !matches!(self, Self::None)
    }
}

/// The objects and references at the base of a branch.
#[derive(Debug, Default)]
pub struct AtBase {
    pub(crate) places: Vec<Places>,
    /// By unit.
    pub(crate) units: BTreeMap<String, References>,
}

/// The references of a branch, and those that it broke.
#[derive(Debug, Default)]
pub struct Compared {
    /// By unit.
    pub(crate) references: BTreeMap<String, References>,
    /// What counts in each unit, if that is kept.
    pub standings: BTreeMap<String, Standing>,
    /// What became of the object, or of its key, by the object that refers and the field.
    pub(crate) broken: BTreeMap<(ObjectRef, Pointer), BrokenField>,
}

/// What a branch broke at a field.
#[derive(Debug)]
pub(crate) struct BrokenField {
    /// The code of findings about a key; `None` where they say that an object is missing.
    pub(crate) key: Option<&'static Code>,
    pub(crate) fate: Fate,
}

/// What became of what a reference named at the base, in words.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    /// It is gone, or the reference is another one.
    Gone(String),
    /// It stood in a file that cannot be read now.
    Unreadable(String),
}

impl Compared {
    /// Adds those of another unit.
    pub(crate) fn join(&mut self, other: Self) {
        self.references.extend(other.references);
        self.standings.extend(other.standings);
        self.broken.extend(other.broken);
    }
}

impl AtBase {
    pub(crate) fn has(&self, object: &Reference) -> bool {
        self.places.iter().any(|places| places.has(object))
    }
}
