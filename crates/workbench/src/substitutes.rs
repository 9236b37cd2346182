//! What Flux Kustomizations among the inputs put into the files of their path: values of variables, and a namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::kustomization::is_kustomization;
use crate::object_name::object_ref;
use crate::origins::find::SpotsOf;
use crate::origins::spot::Spot;
use crate::paths::{Roots, normal};
use crate::report::ObjectRef;
use crate::repository::{Repository, Unit};
use memgate_manifest::document::{Document, parse_parts};
use memgate_manifest::later::{Given, is_filled_in_later, variables};
use memgate_manifest::source::{Source, Span};
use memgate_model::finding::Finding;
use memgate_model::recurring_texts::RecurringTexts;
use memgate_platforms::common::KUSTOMIZATION_INVALID;
use memgate_primitives::credential::is_credential_name;
use memgate_primitives::name::is_dns_label;
use memgate_primitives::plain_text::{quoted, quoted_text};
use memgate_primitives::pointer::Pointer;

/// The group of Kustomizations that Flux applies.
const FLUX: &str = "kustomize.toolkit.fluxcd.io";

/// So many different Kustomizations of one file are compared, and as many objects of one name from which these read.
const MOST_COMPARED: usize = 256;

/// So many times an object is judged, each time with other values.
const MOST_VARIANTS: usize = 16;

/// So many files and directories are found that belong to Kustomizations.
const MOST_FOUND: usize = 1 << 17;

/// A Kustomization that gives its objects a namespace which cannot be.
#[derive(Debug, Clone)]
pub(crate) struct WrongTarget {
    pub(crate) source: Arc<Source>,
    pub(crate) span: Span,
    pub(crate) object_ref: ObjectRef,
    pub(crate) finding: Finding,
}

/// What one Kustomization puts in.
#[derive(Debug, Default)]
pub(crate) struct Assignment {
    /// The namespace of all its objects.
    pub(crate) namespace: Option<String>,
    values: BTreeMap<String, Assigned>,
    /// Whether it may have more variables, and other values for all but its own.
    is_open: bool,
    /// Whether it puts values in.
    pub(crate) has_post_build: bool,
}

/// The value of a variable.
#[derive(Debug, Clone)]
struct Assigned {
    /// `None` if it is not known.
    value: Option<String>,
    spot: Spot,
}

/// What distinguishes the objects of one Kustomization from those of another.
type Content<'a> = (Option<&'a str>, [bool; 2], Vec<(&'a str, Option<&'a str>)>);

impl Assignment {
    fn content(&self) -> Content<'_> {
        let values = self.values.iter().map(|(name, it)| (name.as_str(), it.value.as_deref()));
        (self.namespace.as_deref(), [self.is_open, self.has_post_build], values.collect())
    }

    /// What is known of a variable.
    pub(crate) fn get(&self, name: &str) -> Given<'_> {
        match self.values.get(name) {
            Some(Assigned { value, .. }) => value.as_deref().map_or(Given::Unknown, Given::Value),
            None if self.is_open => Given::Unknown,
            None => Given::Nothing,
        }
    }

    /// Where the variables in the text of a field have their values, in words; not of one that may be a credential.
    /// If a message hides what cannot be a name, so does this.
    pub(crate) fn describe(&self, text: &str, field: &str, message: &str) -> Vec<String> {
        let names: BTreeSet<&str> = variables(text).collect();
        let shown: fn(&str) -> String = if message.contains("…\" (") { quoted } else { quoted_text };
        let of = |name: &str| {
            let Assigned { value, spot } = self.values.get(name)?;
            let (span, source) = (spot.caret(), spot.source());
            let is_shown = source.is_shown() && ![name, field].into_iter().any(is_credential_name);
            let value = value.as_deref().filter(|_| is_shown).map(shown);
            let value = value.map_or_else(|| "set".to_owned(), |value| format!("is {value}"));
            Some(format!("${{{name}}} {value} in {}:{}", source.name(), span.line))
        };
        names.into_iter().filter_map(of).collect()
    }
}

/// A Kustomization as it was read.
#[derive(Debug, Clone)]
struct Kustomization {
    /// Its file.
    file: PathBuf,
    /// The values of its own variables.
    values: BTreeMap<String, Assigned>,
    own_namespace: Option<String>,
    directory: PathBuf,
    target: Option<String>,
    /// The ConfigMaps and Secrets from which it reads; `None` if it puts no values in.
    reads: Option<Vec<Value>>,
    /// What is wrong with the namespace that it gives, which no object can have.
    fault: Option<WrongTarget>,
    /// Whether a later step fills in a part of the path, so that any directory there may be meant.
    is_anywhere: bool,
}

/// An object with values for variables.
#[derive(Debug, Clone)]
struct ValuesOf {
    /// Its file.
    file: PathBuf,
    namespace: Option<String>,
    values: BTreeMap<String, Assigned>,
}

/// The Kustomizations of a directory or file, by their numbers.
#[derive(Debug, Clone, Default)]
struct Over {
    numbers: BTreeSet<usize>,
    /// Whether there are more.
    is_cut: bool,
}

/// The Flux Kustomizations, and the files to which they belong.
#[derive(Debug, Clone, Default)]
pub struct Substitutes {
    read: Vec<Kustomization>,
    /// The ConfigMaps and Secrets, by kind and name.
    sources: BTreeMap<(bool, String), Vec<ValuesOf>>,
    /// The files and directories of kustomizations, by directory.
    parts: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// The texts with ConfigMaps or Secrets, before one is needed.
    unread: Vec<Arc<Source>>,
    roots: Roots,
    /// Whether everything that was read is in what follows.
    is_settled: bool,
    /// What is put in, by directory of Kustomizations.
    assignments: Vec<Vec<Arc<Assignment>>>,
    over: BTreeMap<PathBuf, Over>,
    /// The same for directories that kustomize renders.
    over_units: BTreeMap<PathBuf, Over>,
    /// Whether not all was found.
    is_cut: bool,
}

/// What is put into the objects of one file.
#[derive(Debug, Default)]
pub(crate) struct OfFile {
    assignments: Vec<Arc<Assignment>>,
    is_cut: bool,
    /// The namespace of objects without one.
    pub(crate) fallback: Option<String>,
}

impl OfFile {
    /// The same with a namespace for objects without one.
    pub(crate) fn or_in(self, fallback: Option<String>) -> Self {
        Self { fallback, ..self }
    }

    /// Whether objects without a variable change too.
    pub(crate) fn has_namespace(&self) -> bool {
        self.fallback.is_some() || self.assignments.iter().any(|it| it.namespace.is_some())
    }

    /// What Kustomizations put into a text, each once. Of too many, what they have in common.
    pub(crate) fn variants(&self, text: &str) -> Vec<Arc<Assignment>> {
        let names: BTreeSet<&str> = variables(text).collect();
        let content = |it: &Arc<Assignment>| -> Vec<Option<String>> {
            let namespace = std::iter::once(it.namespace.clone().map(|it| format!("in {it}")));
            let value = |name: &&str| match it.get(name) {
                Given::Value(value) => Some(format!("is {value}")),
                Given::Nothing => Some(String::new()),
                Given::Unknown => None,
            };
            namespace.chain(names.iter().map(value)).collect()
        };
        let mut seen = BTreeSet::new();
        let mut variants = self.assignments.clone();
        variants.retain(|it| seen.insert(content(it)));
        if self.is_cut || variants.len() > MOST_VARIANTS {
            return vec![Arc::new(self.common(&names))];
        }
        variants
    }

    /// The values that all have.
    fn common(&self, names: &BTreeSet<&str>) -> Assignment {
        let Some((first, others)) = self.assignments.split_first().filter(|_| !self.is_cut) else {
            return Assignment { is_open: true, has_post_build: true, ..Assignment::default() };
        };
        let value = |name: &&str| {
            let is_same = others.iter().all(|it| it.get(name) == first.get(name));
            Some(((*name).to_owned(), first.values.get(*name).filter(|_| is_same)?.clone()))
        };
        let namespace =
            first.namespace.clone().filter(|_| others.iter().all(|it| it.namespace == first.namespace));
        let values = names.iter().filter_map(value).collect();
        Assignment { namespace, values, is_open: true, has_post_build: true }
    }
}

impl Substitutes {
    /// Adds which files and directories belong to kustomizations.
    pub(crate) fn know(&mut self, repository: &Repository) {
        let parts = repository.parts();
        self.parts.extend(parts.map(|(directory, parts)| (directory.clone(), parts.cloned().collect())));
    }

    /// Whether a text has Kustomizations that put something in, or objects from which one reads.
    pub(crate) fn depend_on(&self, text: &str) -> bool {
        puts_in(text) || has_values(text) && self.read.iter().any(|it| it.reads().next().is_some())
    }

    /// Adds the Kustomizations of a text, and the objects from which they may read. `spots` tells where the fields stand of what
    /// was rendered.
    pub(crate) fn add(&mut self, source: &Arc<Source>, spots: &mut SpotsOf<'_>) {
        let text = source.text();
        if puts_in(text) {
            let file = spots.file(source);
            let root = self.roots.of(&file);
            for document in parse_parts(source).flat_map(|parsed| parsed.documents) {
                self.read.extend(Kustomization::of(&document, (&file, &root), spots));
            }
            self.is_settled = false;
        }
        if has_values(text) {
            self.unread.push(Arc::clone(source));
        }
    }

    /// Finds what belongs to which Kustomization, once all texts were added.
    pub(crate) fn settle(&mut self, spots: &mut SpotsOf<'_>) {
        if self.read.iter().any(|it| it.reads().next().is_some()) {
            for source in std::mem::take(&mut self.unread) {
                for document in parse_parts(&source).flat_map(|parsed| parsed.documents) {
                    self.add_source(&document, spots);
                }
                self.is_settled = false;
            }
        }
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        (self.over, self.over_units, self.is_cut) = (BTreeMap::new(), BTreeMap::new(), false);
        let mut by_directory: BTreeMap<&Path, Vec<Arc<Assignment>>> = BTreeMap::new();
        for kustomization in &self.read {
            let assignment = Arc::new(kustomization.assignment(&self.sources));
            by_directory.entry(&kustomization.directory).or_default().push(assignment);
        }
        let mut reached = Reached {
            parts: &self.parts,
            over: BTreeMap::new(),
            over_units: BTreeMap::new(),
            room: MOST_FOUND,
        };
        self.assignments = Vec::new();
        for (number, (directory, mut assignments)) in by_directory.into_iter().enumerate() {
            let mut seen = BTreeSet::new();
            let kept: Vec<bool> = assignments.iter().map(|it| seen.insert(it.content())).collect();
            let mut kept = kept.into_iter();
            assignments.retain(|_| kept.next().unwrap_or_default());
            self.assignments.push(assignments);
            reached.add(directory, number);
        }
        let Reached { over, over_units, room, .. } = reached;
        (self.over, self.over_units, self.is_cut) = (over, over_units, room == 0);
    }

    fn add_source(&mut self, document: &Document, spots: &mut SpotsOf<'_>) {
        let is_secret = document.kind() == "Secret";
        if !document.group().is_empty() || !is_secret && document.kind() != "ConfigMap" {
            return;
        }
        let mut values = BTreeMap::new();
        for field in ["data", "stringData"] {
            let at = Pointer::root().key(field);
            for (name, value) in document.value().get(field).and_then(Value::as_object).into_iter().flatten()
            {
                let value = value.as_str().filter(|it| !is_secret && !is_filled_in_later(it));
                let spot = spots.of(document, &at.key(name));
                values.insert(name.clone(), Assigned { value: value.map(one_line), spot });
            }
        }
        let (namespace, file) = (document.namespace().map(str::to_owned), spots.file(document.source()));
        let known = self.sources.entry((is_secret, document.name().to_owned())).or_default();
        if known.len() <= MOST_COMPARED {
            known.push(ValuesOf { file, namespace, values });
        }
    }

    /// What is wrong with Kustomizations in files of these names.
    pub(crate) fn take_faults(all: &mut Arc<Self>, files: &BTreeSet<&str>) -> Vec<WrongTarget> {
        if all.read.iter().all(|it| it.fault.is_none()) {
            return Vec::new();
        }
        let faults = Arc::make_mut(all).read.iter_mut().filter_map(|it| it.fault.take());
        faults.filter(|it| files.contains(it.source.name())).collect()
    }

    /// The kinds and names of the objects from which they read.
    pub(crate) fn names_read(&self) -> BTreeSet<(&str, &str)> {
        let reads = self.read.iter().flat_map(Kustomization::reads);
        reads.filter_map(|it| Some((it.get("kind")?.as_str()?, it.get("name")?.as_str()?))).collect()
    }

    /// Whether any of them has a namespace for its objects.
    pub(crate) fn has_namespaces(&self) -> bool {
        self.read.iter().any(|it| it.target.is_some())
    }

    /// What is put into the objects of a file, or of what kustomize rendered.
    pub(crate) fn of(&self, source: &Source, unit: Option<&Unit>) -> OfFile {
        if self.read.is_empty() || self.is_cut {
            return OfFile { is_cut: self.is_cut, ..OfFile::default() };
        }
        let file = unit.map_or_else(|| normal(Path::new(source.name())), |unit| unit.absolute().to_owned());
        let over = file.ancestors().filter_map(|path| self.over.get(path));
        // Patches stand in a kustomization, too.
        let directory = file.parent().filter(|_| is_kustomization(&file));
        let directory = unit.map(|_| file.as_path()).or(directory);
        let over = over.chain(directory.and_then(|directory| self.over_units.get(directory)));
        let (mut of_file, mut seen) = (OfFile::default(), BTreeSet::new());
        for Over { numbers, is_cut } in over {
            of_file.is_cut |= is_cut;
            for assignment in numbers.iter().filter_map(|it| self.assignments.get(*it)).flatten() {
                if seen.len() > MOST_COMPARED {
                    of_file.is_cut = true;
                } else if seen.insert(assignment.content()) {
                    of_file.assignments.push(Arc::clone(assignment));
                }
            }
        }
        of_file
    }
}

/// Whether a text may have a Kustomization that puts something in.
fn puts_in(text: &str) -> bool {
    text.contains(FLUX) && ["postBuild", "targetNamespace"].iter().any(|it| text.contains(it))
}

/// Whether a text may have objects from which Kustomizations read.
fn has_values(text: &str) -> bool {
    ["ConfigMap", "Secret"].iter().any(|kind| text.contains(kind))
}

/// The denial of the namespace that a Kustomization gives to its objects: an apiserver refuses each of them.
fn wrong_target(document: &Document, target: &str) -> WrongTarget {
    let at = Pointer::new("/spec/targetNamespace");
    let (span, _) = document.locate(&at).carets(false);
    let message =
        format!("{} is not a valid name of a namespace, so each object here is refused", quoted(target));
    let finding = Finding::deny(&KUSTOMIZATION_INVALID, at, message);
    let object_ref = object_ref(document, None, &mut RecurringTexts::default());
    WrongTarget { source: Arc::clone(document.source()), span, object_ref, finding }
}

/// Flux leaves line ends out of values.
fn one_line(value: &str) -> String {
    value.replace('\n', "")
}

/// The files and directories that belong to Kustomizations, while they are found.
struct Reached<'s> {
    parts: &'s BTreeMap<PathBuf, Vec<PathBuf>>,
    over: BTreeMap<PathBuf, Over>,
    over_units: BTreeMap<PathBuf, Over>,
    /// How many more may be found.
    room: usize,
}

impl Reached<'_> {
    /// Adds what is built in a directory: the parts of its kustomization, else all below it, with the parts of the
    /// kustomizations there.
    fn add(&mut self, directory: &Path, number: usize) {
        let mut todo = vec![directory];
        if !self.parts.contains_key(directory) {
            note(&mut self.over, directory, number, &mut self.room);
            let below = (Bound::Excluded(directory), Bound::Unbounded);
            let below =
                self.parts.range::<Path, _>(below).take_while(|(path, _)| path.starts_with(directory));
            todo.extend(below.map(|(path, _)| path.as_path()));
        }
        let mut seen = BTreeSet::new();
        while let Some(next) = todo.pop() {
            let Some(parts) = self.parts.get(next).filter(|_| self.room > 0 && seen.insert(next)) else {
                continue;
            };
            note(&mut self.over_units, next, number, &mut self.room);
            for part in parts {
                if self.parts.contains_key(part) {
                    todo.push(part);
                } else {
                    note(&mut self.over, part, number, &mut self.room);
                }
            }
        }
    }
}

fn note(over: &mut BTreeMap<PathBuf, Over>, path: &Path, number: usize, room: &mut usize) {
    *room = room.saturating_sub(1);
    let known = over.entry(path.to_owned()).or_default();
    if known.numbers.len() > MOST_COMPARED {
        known.is_cut = true;
    } else {
        known.numbers.insert(number);
    }
}

impl Kustomization {
    /// That of a document in a file of a repository, if it puts something in.
    fn of(document: &Document, (file, root): (&Path, &Path), spots: &mut SpotsOf<'_>) -> Option<Self> {
        let is_flux = document.group() == FLUX && document.kind() == "Kustomization";
        let spec = document.value().get("spec").filter(|_| is_flux)?;
        let text = |field| spec.get(field).and_then(Value::as_str).filter(|it| !it.is_empty());
        let post_build = spec.get("postBuild").filter(|it| it.is_object());
        let path = text("path").unwrap_or_default();
        let is_artifact = spec.pointer("/sourceRef/kind").is_some_and(|kind| kind != "GitRepository");
        // The root of an artifact is not that of the repository.
        let is_elsewhere = is_artifact && path.chars().all(|it| ['.', '/'].contains(&it));
        let is_anywhere = is_filled_in_later(path);
        if is_elsewhere || post_build.is_none() && (is_anywhere || text("targetNamespace").is_none()) {
            return None;
        }
        let is_known = |part: &&str| !part.contains(['$', '{', '<']);
        let path: Vec<&str> = path.split('/').take_while(|part| !is_anywhere || is_known(part)).collect();
        let at = Pointer::new("/spec/postBuild/substitute");
        let own = document.value().pointer(at.as_str()).and_then(Value::as_object).into_iter().flatten();
        let value = |(name, value): (&String, &Value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), one_line);
            (name.clone(), Assigned { value: Some(value), spot: spots.of(document, &at.key(name)) })
        };
        let target = text("targetNamespace");
        let wrong = target.filter(|it| !is_dns_label(it) && !is_filled_in_later(it));
        let reads = |it: &Value| it.get("substituteFrom").and_then(Value::as_array).cloned();
        Some(Self {
            file: file.to_owned(),
            values: own.map(value).collect(),
            own_namespace: document.namespace().map(str::to_owned),
            directory: normal(&root.join(path.join("/").trim_start_matches('/'))),
            target: target.filter(|_| wrong.is_none()).map(str::to_owned),
            fault: wrong.map(|target| wrong_target(document, target)),
            reads: post_build.map(|it| reads(it).unwrap_or_default()),
            is_anywhere,
        })
    }

    /// The ConfigMaps and Secrets from which it reads.
    fn reads(&self) -> impl Iterator<Item = &Value> {
        self.reads.iter().flatten()
    }

    /// What it puts in. Of two sources the later one counts, and before all its own values.
    fn assignment(&self, sources: &BTreeMap<(bool, String), Vec<ValuesOf>>) -> Assignment {
        let has_post_build = self.reads.is_some();
        if self.is_anywhere {
            return Assignment { is_open: true, has_post_build, ..Assignment::default() };
        }
        let namespace = self.target.clone();
        let mut assignment = Assignment { namespace, has_post_build, ..Assignment::default() };
        for reads in self.reads() {
            let text = |field| reads.get(field).and_then(Value::as_str).unwrap_or_default();
            let named = sources.get(&(text("kind") == "Secret", text("name").to_owned()));
            let found =
                named.filter(|found| found.len() <= MOST_COMPARED).and_then(|found| self.nearest(found));
            match found {
                Some(values) => assignment.values.extend(values),
                None => {
                    // Each variable may be in it.
                    assignment.is_open = true;
                    assignment.values.clear();
                }
            }
        }
        assignment.values.extend(self.values.clone());
        assignment
    }

    /// The values in the objects of a name that can be meant: of several, those in the nearest directory. Where two have
    /// different values, none is known.
    fn nearest(&self, named: &[ValuesOf]) -> Option<BTreeMap<String, Assigned>> {
        let is_own = |it: &&ValuesOf| {
            it.namespace.is_none() || self.own_namespace.is_none() || it.namespace == self.own_namespace
        };
        let here = normal(&self.file);
        let common = |it: &ValuesOf| {
            let file = normal(&it.file);
            file.components().zip(here.components()).take_while(|(a, b)| a == b).count()
        };
        let nearness = |it: &ValuesOf| if it.values.is_empty() { 0 } else { common(it) };
        let own: Vec<(usize, &ValuesOf)> = named.iter().filter(is_own).map(|it| (nearness(it), it)).collect();
        let most = own.iter().map(|(nearness, _)| *nearness).max()?;
        let mut nearest = own.into_iter().filter(|(nearness, _)| *nearness == most).map(|(_, it)| it);
        let mut values = nearest.next()?.values.clone();
        for other in nearest {
            for (name, known) in &mut values {
                known.value = known
                    .value
                    .take()
                    .filter(|it| other.values.get(name).and_then(|it| it.value.as_ref()) == Some(it));
            }
            for (name, more) in &other.values {
                let unknown = || Assigned { value: None, ..more.clone() };
                values.entry(name.clone()).or_insert_with(unknown);
            }
        }
        Some(values)
    }
}
