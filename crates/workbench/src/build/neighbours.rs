//! What the other units of a run make. Units with no file in common may be applied together, so what one of them makes is not
//! missing in another; those that share a base or a chart are the same for another place, and know nothing of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::build::kustomization::is_kustomization;
use crate::build::texts::{DEFAULT_MAX_BYTES, file};
use memgate_model::kind::Kind;
use memgate_model::makers::{Makers, words};
use memgate_model::object::Reference;

/// The objects of the units, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    /// By kind, namespace and name.
    makers: BTreeMap<(String, String, String), BTreeSet<usize>>,
    /// The files of plain manifests, by kinds and names: a kustomization may give their objects another namespace.
    plain: BTreeMap<(String, String), PathBuf>,
    /// The files of each.
    files: Vec<Arc<BTreeSet<PathBuf>>>,
    /// The units that have objects of a kind, by its name.
    units_with: BTreeMap<&'static str, BTreeSet<usize>>,
    /// What may make other objects, by units.
    pub(crate) may_make: Vec<Makers>,
    /// The namespaces of units that were not built.
    unknown: BTreeSet<String>,
    /// The files of what is not built since it has nothing of ours, with the namespaces of their kustomizations.
    others: BTreeMap<PathBuf, Option<String>>,
    texts: OnceLock<Vec<(String, Option<String>)>>,
}

/// What is known of an object that a unit lacks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MadeElsewhere {
    /// Another unit makes it.
    Made,
    /// Something that is not built may make it.
    Unknown,
    /// This file has it, below a kustomization of the unit that does not list it.
    Unlisted(PathBuf),
}

impl Neighbours {
    /// No unit yet; these are the namespaces and files of what is not built.
    pub(crate) fn new(unknown: BTreeSet<String>, others: BTreeMap<PathBuf, Option<String>>) -> Self {
        Self { unknown, others, ..Self::default() }
    }

    /// Whether there is nothing but plain manifests.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.len() < 2 && self.unknown.is_empty() && self.others.is_empty()
    }

    /// Adds a unit, with the files from which it is built. The plain manifests come first.
    pub(crate) fn add_unit(&mut self, files: Arc<BTreeSet<PathBuf>>) {
        self.files.push(files);
    }

    /// Adds an object of the last unit, with its file if it is one of the plain manifests.
    pub(crate) fn add(&mut self, Reference { kind, namespace, name }: Reference, file: Option<PathBuf>) {
        let number = self.files.len().saturating_sub(1);
        if let Some(file) = file {
            self.plain.entry((kind.kind.to_owned(), name.clone())).or_insert(file);
        }
        self.units_with.entry(kind.kind).or_default().insert(number);
        self.makers.entry((kind.kind.to_owned(), namespace, name)).or_default().insert(number);
    }

    /// Whether two units have no file in common.
    pub(crate) fn are_apart(&self, one: usize, other: usize) -> bool {
        let both = self.files.get(one).zip(self.files.get(other));
        both.is_some_and(|(one, other)| one.is_disjoint(other))
    }

    /// Where an object is that a unit lacks.
    pub(crate) fn find(&self, number: usize, missing: &Reference) -> Option<MadeElsewhere> {
        let Reference { kind, namespace, name } = missing;
        let may_make = |(other, makers): (usize, &Makers)| {
            other != number && makers.find(namespace, name).is_some() && self.are_apart(number, other)
        };
        let plain = self.plain.get(&(kind.kind.to_owned(), name.clone()));
        if let Some(file) = plain.filter(|file| self.is_below_a_kustomization(number, file)) {
            return Some(MadeElsewhere::Unlisted(file.clone()));
        }
        let makers = self.makers.get(&(kind.kind.to_owned(), namespace.clone(), name.clone()));
        let is_made =
            makers.into_iter().flatten().any(|other| *other != number && self.are_apart(number, *other));
        if is_made {
            return Some(MadeElsewhere::Made);
        }
        let is_unknown = self.unknown.contains(namespace)
            || self.may_make(kind.kind, namespace, name)
            || kind.group.is_empty() && self.may_make.iter().enumerate().any(may_make);
        is_unknown.then_some(MadeElsewhere::Unknown)
    }

    /// Whether a file lies below a kustomization from which a unit is built.
    fn is_below_a_kustomization(&self, number: usize, file: &Path) -> bool {
        let files = self.files.get(number).into_iter().flat_map(|files| files.iter());
        let mut homes = files.filter(|it| is_kustomization(it)).filter_map(|it| it.parent());
        homes.any(|home| file.starts_with(home))
    }

    /// Whether another unit has objects of a kind.
    pub(crate) fn has_kind(&self, number: usize, kind: &Kind) -> bool {
        let units = self.units_with.get(kind.kind).into_iter().flatten();
        units.copied().any(|other| other != number && self.are_apart(number, other))
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
