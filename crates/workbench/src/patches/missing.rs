//! Patches for objects that a kustomization does not have.
//!
//! kustomize fails for such a patch, or does nothing. That is known only if all resources are files of the inputs.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::inputs::Inputs;
use crate::kustomization::{FILE_NAMES, Kustomization, Patch, Selector};
use crate::objects::is_checked;
use crate::origins::files::Files;
use crate::origins::overlay::Word;
use crate::passed_over::Why;
use crate::report::{ObjectRef, plain};
use crate::repository::{normal, without_dots};
use memgate_manifest::document::{Document, objects as objects_in};
use memgate_manifest::later::is_filled_in_later;
use memgate_manifest::source::Source;
use memgate_model::finding::Finding;
use memgate_model::label_selector::{LabelSelector, LabelValue};
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_platforms::common::PATCH_TARGET_MISSING;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::{quoted, quoted_key};
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::{did_you_mean, nearest};
use serde_json::Value;

/// How many names the patches of one kustomization are compared with, where kustomize changes names.
const MAX_COMPARED: usize = 100_000;

/// The objects of kinds that memgate checks, by the files of the inputs.
#[derive(Debug, Default)]
pub(super) struct Present {
    /// Of each file that was read, its objects.
    files: BTreeMap<PathBuf, Vec<ObjectRef>>,
    /// The namespace of objects that name none.
    home: String,
    /// The groups by kind and name, and by kind alone.
    groups: BTreeMap<(Arc<str>, Arc<str>), BTreeSet<String>>,
}

/// Names, with the namespaces of each.
type Named = BTreeMap<Arc<str>, BTreeSet<Arc<str>>>;

/// The objects that a kustomization builds, all of them.
#[derive(Debug)]
pub(super) struct Built {
    directory: PathBuf,
    /// The names by group and kind, with the namespaces of each.
    names: BTreeMap<(String, Arc<str>), Named>,
    /// The namespaces that a base gives to its objects.
    namespaces: BTreeSet<String>,
    renames: bool,
    /// Its objects, if a patch selects them by labels that are known.
    labelled: Option<Vec<Arc<Document>>>,
    /// How many more names patches are compared with.
    room: Cell<usize>,
}

impl Present {
    pub(super) fn of(inputs: &Inputs) -> Self {
        let home = inputs.snapshot.settings.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        let mut present = Self { home: home.to_owned(), ..Self::default() };
        let mut damaged: BTreeSet<&str> =
            inputs.errors.iter().filter_map(|error| error.place()).map(|(file, _)| file).collect();
        let templates = inputs.passed_over.iter().filter(|it| it.why == Why::Template);
        damaged.extend(templates.map(|it| it.source.name()));
        for source in inputs.sources.iter().filter(|source| !damaged.contains(source.name())) {
            present.files.insert(normal(Path::new(source.name())), Vec::new());
        }
        let checked = inputs.objects.iter().map(|it| (it.object.place.source(), &it.object.object_ref));
        let others = inputs.passed_over.iter().filter_map(|it| Some((&it.source, it.object_ref.as_ref()?)));
        let mut last: Option<(*const Source, PathBuf)> = None;
        for (source, object) in checked.chain(others) {
            let address = Arc::as_ptr(source);
            if last.as_ref().is_none_or(|(last, _)| *last != address) {
                last = Some((address, normal(Path::new(source.name()))));
            }
            for name in [Arc::clone(&object.name), Arc::default()] {
                let groups = present.groups.entry((Arc::clone(&object.kind), name)).or_default();
                groups.insert(object.group().to_owned());
            }
            let file = last.as_ref().and_then(|(_, file)| present.files.get_mut(file));
            if let Some(file) = file {
                file.push(object.clone());
            }
        }
        present
    }

    /// The groups of the objects of this kind and name; of an unknown name those of all objects of the kind.
    pub(super) fn groups(&self, kind: &str, name: &str) -> BTreeSet<&str> {
        let of = |name: &str| self.groups.get(&(kind.into(), name.into()));
        of(name).or_else(|| of("")).into_iter().flatten().map(String::as_str).collect()
    }

    /// The objects of a kustomization with this file; `None` if not all of them are known.
    pub(super) fn built(&self, file: &Path, of: &Kustomization, files: &mut Files) -> Option<Built> {
        // What a Component patches is in the kustomizations that use it.
        if of.patches.is_empty() || of.is_component || of.is_open {
            return None;
        }
        let directory = file.parent().unwrap_or_else(|| Path::new(""));
        let (names, namespaces) = (BTreeMap::new(), BTreeSet::new());
        let room = Cell::new(MAX_COMPARED);
        let is_narrow = |patch: &Patch| patch.target.as_ref().is_some_and(Selector::has_labels);
        let labelled = of.patches.iter().any(is_narrow).then(Vec::new);
        let mut built =
            Built { directory: directory.to_owned(), names, namespaces, renames: of.renames, labelled, room };
        let (mut seen, mut todo) = (BTreeSet::new(), vec![(directory.to_owned(), of.resources.clone())]);
        while let Some((directory, resources)) = todo.pop() {
            // kustomize refuses one that contains itself.
            seen.insert(normal(&directory)).then_some(())?;
            for resource in resources {
                let path = without_dots(&directory.join(&resource));
                if let Some(objects) = self.files.get(&normal(&path)) {
                    built.add(objects, &self.home)?;
                    if let Some(labelled) = &mut built.labelled {
                        labelled.extend(objects_in(&files.get(&path)?.values));
                    }
                    continue;
                }
                let marker = FILE_NAMES.iter().map(|name| path.join(name)).find(|it| it.is_file())?;
                let below = Kustomization::of(&files.get(&marker)?.values);
                (!below.is_open).then_some(())?;
                built.renames |= below.renames;
                built.namespaces.extend(below.namespace);
                built.labelled = built.labelled.filter(|_| !below.labels);
                todo.push((path, below.resources));
            }
        }
        Some(built)
    }
}

impl Built {
    fn add(&mut self, objects: &[ObjectRef], home: &str) -> Option<()> {
        for object in objects {
            (!is_filled_in_later(&object.name)).then_some(())?;
            let key = (object.group().to_owned(), Arc::clone(&object.kind));
            let namespaces = self.names.entry(key).or_default().entry(Arc::clone(&object.name)).or_default();
            namespaces.insert(Arc::clone(&object.namespace));
            if *object.namespace == *home {
                namespaces.insert(DEFAULT_NAMESPACE.into());
            }
        }
        Some(())
    }

    /// The groups and kinds of the objects that a selector selects, if that is known.
    pub(super) fn selected(&self, selector: &Selector) -> Option<BTreeSet<(String, String)>> {
        let word = |text: &Option<String>| text.as_deref().map_or(Some(None), |it| Word::of(it).map(Some));
        let [group, kind, name] = [&selector.group, &selector.kind, &selector.name].map(word);
        let (group, kind, name) = (group?, kind?, name?);
        let fits = |word: &Option<Word>, text: &str| word.as_ref().is_none_or(|word| word.fits(text));
        let is_of_kind = |of: &str, it: &str| fits(&group, of) && fits(&kind, it);
        if selector.has_labels() {
            let labels = selector.label_selectors()?;
            let labelled = self.labelled.as_ref()?;
            self.spend(labelled.len())?;
            let is_one = |it: &&Arc<Document>| {
                is_of_kind(it.group(), it.kind()) && fits(&name, it.name()) && has_labels(it.value(), &labels)
            };
            let kinds =
                labelled.iter().filter(is_one).map(|it| (it.group().to_owned(), it.kind().to_owned()));
            return Some(kinds.collect());
        }
        let mut selected = BTreeSet::new();
        for ((own_group, own_kind), names) in self.names.iter().filter(|((of, it), _)| is_of_kind(of, it)) {
            self.spend(if matches!(name, Some(Word::Pattern(_))) { names.len() } else { 1 })?;
            let is_named = match &name {
                Some(Word::Name(name)) => names.contains_key(&**name),
                _ => names.keys().any(|it| fits(&name, it)),
            };
            if is_named {
                selected.insert((own_group.clone(), own_kind.to_string()));
            }
        }
        // An overlay may know an object by the name that a base gave it.
        (!selected.is_empty() || !self.renames).then_some(selected)
    }

    /// Counts so many comparisons; `None` if there were too many.
    fn spend(&self, comparisons: usize) -> Option<()> {
        let left = self.room.get().checked_sub(comparisons);
        self.room.set(left.unwrap_or_default());
        left.map(|_| ())
    }

    /// The warning about a patch that names its object itself, at this pointer.
    pub(super) fn warning(&self, object: &ObjectRef) -> Option<Finding> {
        let ObjectRef { kind, name, namespace, .. } = object;
        let namespace = Some(&**namespace).filter(|it| !it.is_empty());
        let is_missing = !name.is_empty() && self.lacks(object.group(), kind, name, namespace);
        let at = is_missing.then(|| Pointer::new("/metadata/name"))?;
        Some(self.finding(at, (object.group(), kind, name), "kustomize fails for this patch"))
    }

    /// The warning about a patch for the objects that a selector selects. kustomize reads its texts as patterns.
    pub(super) fn warning_of(&self, selector: &Selector, at: Pointer) -> Option<Finding> {
        let Selector { group, kind: Some(kind), name: Some(name), .. } = selector else { return None };
        let is_plain = kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) && is_dns_subdomain(name);
        let validated = memgate_platforms::ALL.iter().flat_map(|family| family.kinds.validated);
        let groups = validated.filter(|it| it.kind == kind).map(|it| it.group);
        let groups: BTreeSet<&str> = match group {
            Some(group) => BTreeSet::from([group.as_str()]),
            None => groups.collect(),
        };
        let first = groups.first()?;
        let namespace = selector.namespace.as_deref();
        let is_plain = is_plain && namespace.is_none_or(is_dns_subdomain);
        (is_plain && groups.iter().all(|group| self.lacks(group, kind, name, namespace))).then_some(())?;
        Some(self.finding(at, (first, kind, name), "this patch changes nothing"))
    }

    /// Whether it has no such object; with a namespace, none there.
    fn lacks(&self, group: &str, kind: &str, name: &str, namespace: Option<&str>) -> bool {
        if !is_checked(group, kind) || [Some(name), namespace].into_iter().flatten().any(is_filled_in_later) {
            return false;
        }
        let Some(names) = self.names.get(&(group.to_owned(), kind.into())) else { return true };
        if let Some(homes) = names.get(name) {
            return namespace.is_some_and(|wanted| {
                let is_it = |home: &str| effective(home) == effective(wanted);
                !homes.iter().any(|home| is_it(home) || is_filled_in_later(home))
                    && !self.namespaces.iter().any(|home| is_it(home) || is_filled_in_later(home))
            });
        }
        // An overlay may know it by the name that a base gave it.
        let is_counted = self.spend(if self.renames { names.len() } else { 0 }).is_some();
        is_counted && (!self.renames || !names.keys().any(|known| name.contains(&**known)))
    }

    fn finding(&self, at: Pointer, (group, kind, name): (&str, &str, &str), effect: &str) -> Finding {
        let names = self.names.get(&(group.to_owned(), kind.into()));
        let names = names.filter(|names| self.spend(names.len()).is_some());
        let homes = names.and_then(|names| names.get(name)).into_iter().flatten();
        let homes: Vec<&str> = homes.map(|home| effective(home)).collect();
        let meant = match homes.first() {
            Some(home) => format!("; it is in namespace {}", quoted(home)),
            None => did_you_mean(nearest(name, names.into_iter().flatten().map(|(it, _)| &**it))),
        };
        let directory = without_dots(&self.directory);
        let directory = directory.to_string_lossy();
        let directory = if directory.is_empty() { ".".into() } else { plain(&directory) };
        let message = format!(
            "the resources of {directory} do not have {} {}{}, so {effect}{meant}",
            quoted_key(kind).trim_matches('"'),
            quoted(name),
            if homes.is_empty() { "" } else { " in this namespace" }
        );
        Finding::warn(&PATCH_TARGET_MISSING, at, message)
    }
}

/// The namespace that kustomize takes for this one.
fn effective(namespace: &str) -> &str {
    if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace }
}

/// Whether an object has the labels and annotations that these select.
fn has_labels(object: &Value, selectors: &[LabelSelector; 2]) -> bool {
    ["labels", "annotations"].iter().zip(selectors).all(|(field, selector)| {
        let values = object.get("metadata").and_then(|it| it.get(field));
        let value = |key: &str| values.and_then(|it| it.get(key)?.as_str());
        selector.matches(|key| value(key).map_or(LabelValue::Missing, LabelValue::Found)) == Some(true)
    })
}
