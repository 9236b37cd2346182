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

/// The number of the plain manifests among the units.
const PLAIN: usize = 0;

/// How many plain manifests of one kind and name are kept.
const MOST_OF_ONE_NAME: usize = 16;

/// The file of a plain manifest, with the namespace that its object says.
pub(crate) type PlainFile = (Option<String>, PathBuf);

/// The objects of the units, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    /// By kind, namespace and name.
    makers: BTreeMap<(String, String, String), BTreeSet<usize>>,
    /// By kinds and names: a kustomization may give a namespace to objects without. Of very many of one name, some.
    plain: BTreeMap<(String, String), Vec<PlainFile>>,
    /// The files of each, and the directories of its kustomizations.
    files: Vec<(Arc<BTreeSet<PathBuf>>, BTreeSet<PathBuf>)>,
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
        let kustomizations = files.iter().filter(|it| is_kustomization(it));
        let homes = kustomizations.filter_map(|it| it.parent()).map(Path::to_owned).collect();
        self.files.push((files, homes));
    }

    /// Adds an object of the last unit, with its file if it is one of the plain manifests.
    pub(crate) fn add(&mut self, Reference { kind, namespace, name }: Reference, plain: Option<PlainFile>) {
        let number = self.files.len().saturating_sub(1);
        if let Some(plain) = plain {
            let all = self.plain.entry((kind.kind.to_owned(), name.clone())).or_default();
            all.extend((all.len() < MOST_OF_ONE_NAME).then_some(plain));
        }
        self.units_with.entry(kind.kind).or_default().insert(number);
        self.makers.entry((kind.kind.to_owned(), namespace, name)).or_default().insert(number);
    }

    /// Whether two units have no file in common.
    pub(crate) fn are_apart(&self, one: usize, other: usize) -> bool {
        let both = self.files.get(one).zip(self.files.get(other));
        both.is_some_and(|((one, _), (other, _))| one.is_disjoint(other))
    }

    /// Where an object is that a unit lacks.
    pub(crate) fn find(&self, number: usize, missing: &Reference) -> Option<MadeElsewhere> {
        let Reference { kind, namespace, name } = missing;
        let may_make = |(other, makers): (usize, &Makers)| {
            other != number && makers.find(namespace, name).is_some() && self.are_apart(number, other)
        };
        let key = (kind.kind.to_owned(), namespace.clone(), name.clone());
        let mut makers = self.makers.get(&key).into_iter().flatten();
        // The plain manifests only if no unit makes it.
        let maker = makers.rfind(|other| **other != number && self.are_apart(number, **other));
        let is_unknown = || {
            self.unknown.contains(namespace)
                || self.may_make(kind.kind, namespace, name)
                || kind.group.is_empty() && self.may_make.iter().enumerate().any(may_make)
        };
        let unlisted = self.unlisted(number, missing);
        match maker {
            Some(other) if *other != PLAIN || unlisted.is_none() => Some(MadeElsewhere::Made),
            _ if is_unknown() => Some(MadeElsewhere::Unknown),
            _ => unlisted.map(|file| MadeElsewhere::Unlisted(file.to_owned())),
        }
    }

    /// A file that has the object below a kustomization of the unit, which does not list it.
    fn unlisted(&self, number: usize, Reference { kind, namespace, name }: &Reference) -> Option<&Path> {
        let (_, homes) = self.files.get(number)?;
        let is_it = |(own, file): &&PlainFile| {
            own.as_ref().is_none_or(|own| own == namespace) && file.ancestors().any(|it| homes.contains(it))
        };
        let plain = self.plain.get(&(kind.kind.to_owned(), name.clone()));
        plain.into_iter().flatten().find(is_it).map(|(_, file)| &**file)
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
