//! What the other units of a run make. Units with no file in common may be applied together, so what one of them makes is not
//! missing in another; those that share a base or a chart are the same for another place, and know nothing of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::build::texts::{DEFAULT_MAX_BYTES, file};
use crate::paths::normal;
use memgate_model::makers::{Makers, words};
use memgate_model::object::Reference;

/// The number of the plain manifests among the units.
const PLAIN: usize = 0;

/// The files of a unit, and the directories of its kustomizations and charts.
type UnitFiles = (Arc<BTreeSet<PathBuf>>, Arc<Vec<PathBuf>>);

/// The objects of the units, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    /// By kind, namespace and name.
    makers: BTreeMap<(String, String, String), BTreeSet<usize>>,
    /// By kind and namespace.
    kinds: BTreeMap<(String, String), BTreeSet<usize>>,
    /// The files of plain manifests whose objects a kustomization may give another namespace.
    listed: BTreeMap<(String, String), PathBuf>,
    parts: Vec<UnitFiles>,
    /// What may make other objects, by units.
    pub(crate) may_make: Vec<Makers>,
    /// The namespaces of units that were not built.
    unknown: BTreeSet<String>,
    /// The files of what is not built since it has nothing of ours, with the namespaces of their kustomizations.
    others: BTreeMap<PathBuf, Option<String>>,
    texts: OnceLock<Vec<(String, Option<String>)>>,
}

/// What is known of an object that a unit lacks.
pub(crate) enum Elsewhere {
    /// Another unit makes it.
    Made,
    /// Something that is not built may make it.
    Unknown,
    /// A file has it that no kustomization lists.
    Unlisted(PathBuf),
}

impl Neighbours {
    /// No unit yet; these are the namespaces and files of what is not built.
    pub(crate) fn new(unknown: BTreeSet<String>, others: BTreeMap<PathBuf, Option<String>>) -> Self {
        Self { unknown, others, ..Self::default() }
    }

    /// Whether there is nothing but plain manifests.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.len() < 2 && self.unknown.is_empty() && self.others.is_empty()
    }

    /// Adds a unit, with the files and directories from which it is built. The plain manifests come first.
    pub(crate) fn add_unit(&mut self, files: Arc<BTreeSet<PathBuf>>, directories: Arc<Vec<PathBuf>>) {
        self.parts.push((files, directories));
    }

    /// Adds an object of the last unit, which stands in this file.
    pub(crate) fn add(&mut self, object: Reference, file: &str) {
        let number = self.parts.len().saturating_sub(1);
        let Reference { kind, namespace, name } = object;
        let kind = kind.kind.to_owned();
        if number == PLAIN {
            let listed = self.listed.entry((kind.clone(), name.clone()));
            listed.or_insert_with(|| normal(Path::new(file)));
        }
        self.kinds.entry((kind.clone(), namespace.clone())).or_default().insert(number);
        self.makers.entry((kind, namespace, name)).or_default().insert(number);
    }

    /// Whether two units have no file in common.
    pub(crate) fn are_apart(&self, one: usize, other: usize) -> bool {
        match (self.parts.get(one), self.parts.get(other)) {
            (Some((one, _)), Some((other, _))) => one.is_disjoint(other),
            _ => false,
        }
    }

    /// Where an object is that a unit lacks.
    pub(crate) fn find(&self, number: usize, missing: &Reference) -> Option<Elsewhere> {
        let Reference { kind, namespace, name } = missing;
        let may_make = |(other, makers): (usize, &Makers)| {
            other != number && makers.find(namespace, name).is_some() && self.are_apart(number, other)
        };
        let directories = self.parts.get(number).map(|(_, directories)| directories);
        let is_below = |file: &&PathBuf| {
            directories.is_some_and(|all| all.iter().any(|directory| file.starts_with(directory)))
        };
        if let Some(file) = self.listed.get(&(kind.kind.to_owned(), name.clone())).filter(is_below) {
            return Some(Elsewhere::Unlisted(file.clone()));
        }
        let makers = self.makers.get(&(kind.kind.to_owned(), namespace.clone(), name.clone()));
        let is_made =
            makers.into_iter().flatten().any(|other| *other != number && self.are_apart(number, *other));
        if is_made {
            return Some(Elsewhere::Made);
        }
        let is_unknown = self.unknown.contains(namespace)
            || self.may_make(kind.kind, namespace, name)
            || kind.group.is_empty() && self.may_make.iter().enumerate().any(may_make);
        is_unknown.then_some(Elsewhere::Unknown)
    }

    /// Whether another unit has objects of the kind of this one, in its namespace.
    pub(crate) fn has_kind(&self, number: usize, Reference { kind, namespace, .. }: &Reference) -> bool {
        let makers = self.kinds.get(&(kind.kind.to_owned(), namespace.clone()));
        makers.into_iter().flatten().any(|other| *other != number && self.are_apart(number, *other))
    }

    /// Whether what is not built may make an object: a file says its name, or a template makes names of its kind.
    fn may_make(&self, kind: &str, namespace: &str, name: &str) -> bool {
        let text = |(path, namespace): (&PathBuf, &Option<String>)| {
            let text = file(path, DEFAULT_MAX_BYTES).ok()?.text().to_owned();
            Some((text, namespace.clone()))
        };
        let read = || self.others.iter().filter(|(path, _)| path.is_file()).filter_map(text).collect();
        let generator = format!("{}Generator", if kind == "ConfigMap" { "configMap" } else { "secret" });
        let has_kind = |text: &str| text.contains(&format!("kind: {kind}")) || text.contains(&generator);
        let is_one = |(text, home): &(String, Option<String>)| {
            let is_here = home.as_ref().is_none_or(|home| home == namespace);
            is_here && has_kind(text) && (words(text).any(|word| word == name) || text.contains("{{"))
        };
        self.texts.get_or_init(read).iter().any(is_one)
    }
}
