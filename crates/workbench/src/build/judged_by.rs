//! What objects are judged by, besides the rules of memgate: the policies, exemptions and labels of Namespaces among the
//! inputs. They come with the change that is checked, so a check of a branch takes them as they are at the commit that it
//! is compared with, wherever the branch keeps them, if at all.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use memgate_core::state;
use memgate_model::kind::{Kind, MEMORY_POLICY, MEMORY_POLICY_EXEMPTION, NAMESPACE};
use memgate_model::object::{KindState, Reference};
use memgate_model::settings::{PolicySettings, Settings};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::budget::Budget;

/// Which policies, exemptions and labels of Namespaces count.
#[derive(Debug, Clone, Default)]
pub enum JudgedBy {
    /// Those of the inputs.
    #[default]
    Inputs,
    /// The same, and they are kept for the check of a branch.
    Kept,
    /// Those of the commit that a branch is compared with. Of what it does not have, those of the inputs.
    Reference(Arc<AtReference>),
}

/// What counts at the commit that a branch is compared with, by set of files.
#[derive(Debug, Default)]
pub struct AtReference {
    /// The commit as the user named it.
    pub name: String,
    /// What counts in each set.
    pub units: BTreeMap<String, Standing>,
}

/// What counts in one unit.
#[derive(Debug, Default)]
pub struct Standing {
    /// The policies, exemptions and Namespaces, each with its file.
    objects: BTreeMap<Reference, (Value, String)>,
    /// The namespaces in which an object of a kind is: one that is not there does not exist.
    in_use: BTreeMap<&'static Kind, BTreeSet<String>>,
}

impl AtReference {
    /// What counted in a unit; in one that is new, what counted in plain manifests.
    fn of(&self, unit: &str) -> Option<&Standing> {
        self.units.get(unit).or_else(|| self.units.get(""))
    }
}

impl Standing {
    /// Names files as the user would write them.
    pub fn name_files(&mut self, shown: impl Fn(&str) -> String) {
        self.objects.values_mut().for_each(|(_, file)| *file = shown(file));
    }
}

/// What a branch changes in what it is judged by.
#[derive(Debug, Default)]
pub struct Changes {
    /// The commit that it is compared with.
    pub reference: String,
    /// What counts once the branch is merged.
    pub later: BTreeSet<String>,
    /// What is new, and counts.
    pub new: BTreeSet<String>,
    /// What it removes.
    pub removed: BTreeSet<String>,
}

impl Changes {
    /// Adds those of another set.
    pub(crate) fn join(&mut self, other: Self) {
        self.reference = other.reference;
        self.later.extend(other.later);
        self.new.extend(other.new);
    }
}

/// Whether an object is one by which others are judged.
pub(crate) fn judges(value: &Value) -> bool {
    let (group, kind) = state::group_and_kind(value);
    memgate_policy::resource::kind(group, kind).is_some()
        || (group, kind) == (NAMESPACE.group, NAMESPACE.kind)
}

/// What an object in a checked file says counts.
pub(crate) enum CountsAs {
    /// As it is.
    Itself,
    /// This in its place.
    Instead(Value),
    /// Nothing.
    Nothing,
}

/// The objects of one set while they are read.
#[derive(Debug, Default)]
pub(crate) struct Standings {
    by: JudgedBy,
    unit: String,
    kept: Standing,
    /// Those that were read besides the checked files.
    given: BTreeSet<Reference>,
    /// Those of the commit that are in the checked files.
    seen: BTreeSet<Reference>,
    changes: Changes,
}

impl Standings {
    pub(crate) fn new(by: &JudgedBy, unit: &str) -> Self {
        Self { by: by.clone(), unit: unit.to_owned(), ..Self::default() }
    }

    /// Notes that only checked files follow.
    pub(crate) fn note_given(&mut self, snapshot: &Snapshot) {
        if !matches!(self.by, JudgedBy::Reference(_)) {
            return;
        }
        let policies = snapshot.policies.iter().map(|it| (&MEMORY_POLICY, String::new(), it.name.clone()));
        let exemptions = snapshot.policies.exemptions();
        let exemptions =
            exemptions.map(|it| (&MEMORY_POLICY_EXEMPTION, it.namespace.clone(), it.name.clone()));
        let namespaces = snapshot.kind(&NAMESPACE).into_iter().flat_map(KindState::objects);
        let namespaces = namespaces.map(|it| (&NAMESPACE, String::new(), it.name.to_string()));
        let all = policies.chain(exemptions).chain(namespaces);
        self.given = all.map(|(kind, namespace, name)| Reference { kind, namespace, name }).collect();
    }

    fn at_reference(&self) -> Option<&Standing> {
        let JudgedBy::Reference(all) = &self.by else { return None };
        all.of(&self.unit)
    }

    /// What counts of an object in a checked file, whose name `file` gives.
    pub(crate) fn counts(
        &mut self,
        value: &Value,
        file: impl FnOnce() -> String,
        settings: &Settings,
    ) -> CountsAs {
        if matches!(self.by, JudgedBy::Inputs) || !judges(value) {
            return CountsAs::Itself;
        }
        let Some(reference) = state::reference(settings, value) else { return CountsAs::Itself };
        match &self.by {
            JudgedBy::Inputs => CountsAs::Itself,
            JudgedBy::Kept => {
                self.kept.objects.insert(reference, (value.clone(), file()));
                CountsAs::Itself
            }
            JudgedBy::Reference(_) => self.as_before(reference, value, file, &settings.policies),
        }
    }

    fn as_before(
        &mut self,
        reference: Reference,
        value: &Value,
        file: impl FnOnce() -> String,
        settings: &PolicySettings,
    ) -> CountsAs {
        let before = self.at_reference().and_then(|standing| standing.objects.get(&reference));
        let is_given = self.given.contains(&reference);
        if is_given && *reference.kind != NAMESPACE && before.is_some() {
            return CountsAs::Nothing;
        }
        if let Some((before, _)) = before {
            let is_same = said(&reference, before) == said(&reference, value);
            let counts = if is_same { CountsAs::Itself } else { CountsAs::Instead(before.clone()) };
            if !is_same {
                let file = file();
                let file = file.strip_prefix("./").unwrap_or(&file);
                self.changes.later.insert(named(&reference, &format!(" ({file})")));
            }
            self.seen.insert(reference);
            return counts;
        }
        if is_given {
            self.changes.later.insert(named(&reference, " (the job gives another one)"));
            return CountsAs::Nothing;
        }
        if *reference.kind == MEMORY_POLICY_EXEMPTION {
            self.changes.later.insert(named(&reference, " (new)"));
            return CountsAs::Nothing;
        }
        self.changes.new.insert(named(&reference, ""));
        let labels = labels_by_pattern(settings, &reference);
        if labels.is_empty() { CountsAs::Itself } else { CountsAs::Instead(with_labels(value, &labels)) }
    }

    /// Adds what the checked files do not have any more, and returns what was kept and what was changed.
    pub(crate) fn finish(mut self, snapshot: &mut Snapshot) -> (Standing, Changes) {
        if matches!(self.by, JudgedBy::Kept) {
            let of_kind = |kind: &'static Kind| {
                let objects = snapshot.kind(kind).into_iter().flat_map(KindState::objects);
                (kind, objects.map(|object| object.namespace.to_string()).collect())
            };
            self.kept.in_use = core_kinds(&snapshot.settings).map(of_kind).collect();
        }
        let JudgedBy::Reference(all) = std::mem::take(&mut self.by) else { return (self.kept, self.changes) };
        self.changes.reference.clone_from(&all.name);
        let Some(standing) = all.of(&self.unit) else { return (self.kept, self.changes) };
        for (reference, (value, file)) in &standing.objects {
            // What the job gives is not in a file of the branch.
            let is_given = *reference.kind != NAMESPACE && self.given.contains(reference);
            if !self.seen.contains(reference) && !is_given {
                self.changes.later.insert(named(reference, &format!(" (removed from {file})")));
                // The same was added when the commit was read.
                drop(state::add(snapshot, value));
            }
            if *reference.kind == NAMESPACE {
                let given = &snapshot.settings.policies.namespace_labels;
                let mut labels = labels_of(value);
                labels.extend(given.get(&reference.name).cloned().unwrap_or_default());
                snapshot.settings.policies.held_labels.insert(reference.name.clone(), labels);
            }
        }
        for (kind, namespaces) in &standing.in_use {
            snapshot.kind_mut(kind).know(namespaces);
        }
        (self.kept, self.changes)
    }
}

/// The kinds of which a namespace is known once one of their objects is in it.
fn core_kinds(settings: &Settings) -> impl Iterator<Item = &'static Kind> {
    let kinds = memgate_platforms::state_kinds(&settings.families);
    kinds.filter(|kind| kind.group.is_empty() && kind.namespaced)
}

/// The part of an object by which others are judged.
fn said<'v>(reference: &Reference, value: &'v Value) -> Cow<'v, Value> {
    if *reference.kind == NAMESPACE {
        let labels = labels_of(value).into_iter().map(|(key, value)| (key, Value::String(value)));
        return Cow::Owned(Value::Object(labels.collect()));
    }
    Cow::Borrowed(value)
}

fn labels_of(namespace: &Value) -> BTreeMap<String, String> {
    let labels = namespace.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// The labels that the choices of the repository give to a Namespace: one whose manifest is new does not undo them.
fn labels_by_pattern(settings: &PolicySettings, reference: &Reference) -> BTreeMap<String, String> {
    if *reference.kind != NAMESPACE {
        return BTreeMap::new();
    }
    let budget = Budget::default();
    let fits = settings.unknown_namespaces.iter().filter(|(glob, _)| glob.matches(&reference.name, &budget));
    fits.flat_map(|(_, labels)| labels.clone()).collect()
}

fn with_labels(namespace: &Value, more: &BTreeMap<String, String>) -> Value {
    let mut labels = labels_of(namespace);
    labels.extend(more.clone());
    let mut namespace = namespace.clone();
    if let Some(metadata) = namespace.get_mut("metadata").and_then(Value::as_object_mut) {
        let labels = labels.into_iter().map(|(key, value)| (key, Value::String(value))).collect();
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    namespace
}

/// An object in words, as in `MemoryPolicyExemption team-a/legacy (removed from a.yaml)`.
fn named(Reference { kind, namespace, name }: &Reference, end: &str) -> String {
    let start = if **kind == NAMESPACE { "labels of " } else { "" };
    let namespace = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    format!("{start}{} {namespace}{name}{end}", kind.kind)
}
