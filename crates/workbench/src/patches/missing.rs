//! Patches for objects that a kustomization does not have.
//!
//! kustomize fails for such a patch, or does nothing. That is known only if all resources are files that can be read.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::inputs::Inputs;
use crate::kustomization::{FILE_NAMES, Kustomization, Patch, PatchBody, Selector};
use crate::objects::is_checked;
use crate::origins::files::{Files, Text};
use crate::origins::overlay::Word;
use crate::paths::Home;
use crate::report::{ObjectRef, plain};
use crate::repository::{normal, without_dots};
use memgate_manifest::document::{Document, objects as objects_in};
use memgate_manifest::later::is_filled_in_later;
use memgate_model::finding::Finding;
use memgate_model::label_selector::{LabelSelector, LabelValue};
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_platforms::common::PATCH_TARGET_MISSING;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::plain_text::{quoted, quoted_key};
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::{did_you_mean, nearest};
use serde_json::Value;

/// What a patch without a target does.
const NO_EFFECT: &str = "this patch changes nothing";

/// How many objects of kustomizations are looked at.
const MAX_OBJECTS: usize = 1_000_000;

/// How many names the patches of one kustomization are compared with, where kustomize changes names.
const MAX_COMPARED: usize = 100_000;

/// What is known of the objects of all kustomizations.
#[derive(Debug, Default)]
pub(super) struct Present {
    /// The namespace of objects that name none.
    home: String,
    /// The groups by kind and name, and by kind alone.
    groups: BTreeMap<(Arc<str>, Arc<str>), BTreeSet<String>>,
    /// How many more objects are looked at.
    room: usize,
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
    /// The objects that a base gives one, by group, kind and name.
    given: BTreeMap<(String, Arc<str>, Arc<str>), String>,
    renames: bool,
    /// Its objects, if a patch selects them by labels that are known.
    labelled: Option<Vec<Arc<Document>>>,
    /// How many more names patches are compared with.
    room: Cell<usize>,
}

impl Present {
    pub(super) fn of(inputs: &Inputs) -> Self {
        let home = inputs.snapshot.settings.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        let mut present = Self { home: home.to_owned(), room: MAX_OBJECTS, ..Self::default() };
        let checked = inputs.objects.iter().map(|it| &it.object.object_ref);
        let others = inputs.passed_over.iter().filter_map(|it| it.object_ref.as_ref());
        for object in checked.chain(others) {
            for name in [Arc::clone(&object.name), Arc::default()] {
                let groups = present.groups.entry((Arc::clone(&object.kind), name)).or_default();
                groups.insert(object.group().to_owned());
            }
        }
        present
    }

    /// The groups of the objects of this kind and name; of an unknown name those of all objects of the kind.
    pub(super) fn groups(&self, kind: &str, name: &str) -> BTreeSet<&str> {
        let of = |name: &str| self.groups.get(&(kind.into(), name.into()));
        of(name).or_else(|| of("")).into_iter().flatten().map(String::as_str).collect()
    }

    /// The objects of a kustomization with this file and home; `None` if not all of them are known.
    pub(super) fn built(
        &mut self,
        (file, home): (&Path, &Home),
        of: &Kustomization,
        files: &mut Files,
    ) -> Option<Built> {
        // What a Component patches is in the kustomizations that use it.
        if of.patches.is_empty() || of.is_component || of.is_open {
            return None;
        }
        let directory = file.parent().unwrap_or_else(|| Path::new(""));
        let (names, namespaces, given) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        let room = Cell::new(MAX_COMPARED);
        let is_narrow = |patch: &Patch| patch.target.as_ref().is_some_and(Selector::has_labels);
        let labelled = of.patches.iter().any(is_narrow).then(Vec::new);
        let (directory, renames) = (directory.to_owned(), of.renames);
        let mut built = Built { directory, names, namespaces, given, renames, labelled, room };
        let directory = file.parent().unwrap_or_else(|| Path::new(""));
        built.keep_labels(directory, &of.patches, home, files);
        let mut seen = BTreeSet::from([normal(directory)]);
        let mut todo = vec![(directory.to_owned(), of.resources.clone(), None::<String>)];
        while let Some((directory, resources, given)) = todo.pop() {
            for resource in resources {
                let path = without_dots(&directory.join(&resource));
                // kustomize refuses what it has already, and a kustomization that contains itself.
                seen.insert(normal(&path)).then_some(())?;
                if path.is_dir() {
                    let marker = FILE_NAMES.iter().find_map(|name| text(&path.join(name), home, files))?;
                    let below = Kustomization::of(&marker.values);
                    (!below.is_open).then_some(())?;
                    built.renames |= below.renames;
                    let given = given.clone().or_else(|| below.namespace.clone());
                    built.namespaces.extend(below.namespace);
                    built.labelled = built.labelled.filter(|_| !below.labels);
                    built.keep_labels(&path, &below.patches, home, files);
                    todo.push((path, below.resources, given));
                } else {
                    let objects = objects_in(&text(&path, home, files)?.values);
                    self.room = self.room.checked_sub(objects.len())?;
                    built.add(&objects, &self.home, given.as_ref())?;
                    built.labelled.iter_mut().for_each(|labelled| labelled.extend(objects.iter().cloned()));
                }
            }
        }
        Some(built)
    }
}

/// A file that can be read as a whole.
fn text(path: &Path, home: &Home, files: &mut Files) -> Option<Arc<Text>> {
    let text = home.has_file(path).then(|| files.get(path)).flatten()?;
    (text.errors.is_empty() && !text.source.is_outside()).then_some(text)
}

impl Built {
    /// Forgets the labels if one of these patches may change them.
    fn keep_labels(&mut self, directory: &Path, patches: &[Patch], home: &Home, files: &mut Files) {
        let has_them = |text: &str| text.contains("labels") || text.contains("annotations");
        let changes = |patch: &Patch| match &patch.body {
            PatchBody::Text(text) => has_them(text),
            PatchBody::File(path) => text(&without_dots(&directory.join(path)), home, files)
                .is_none_or(|it| has_them(it.source.text())),
        };
        if self.labelled.is_some() && patches.iter().any(changes) {
            self.labelled = None;
        }
    }

    /// Adds objects, to which a base may give a namespace.
    fn add(&mut self, objects: &[Arc<Document>], home: &str, given: Option<&String>) -> Option<()> {
        for object in objects {
            (!is_filled_in_later(object.name())).then_some(())?;
            if let Some(given) = given {
                let key = (object.group().to_owned(), object.kind().into(), object.name().into());
                self.given.insert(key, given.clone());
            }
            let key = (object.group().to_owned(), object.kind().into());
            let namespaces = self.names.entry(key).or_default().entry(object.name().into()).or_default();
            let namespace = object.namespace().unwrap_or(home);
            namespaces.insert(namespace.into());
            if namespace == home {
                namespaces.insert(DEFAULT_NAMESPACE.into());
            }
        }
        Some(())
    }

    /// The groups and kinds of the objects that a selector selects, if that is known.
    pub(super) fn selected(&self, selector: &Selector) -> Option<BTreeSet<(String, String)>> {
        let word = |text: &Option<String>| text.as_deref().map_or(Some(None), |it| Word::of(it).map(Some));
        let namespace = selector.namespace.clone().filter(|it| !is_filled_in_later(it));
        let [group, kind, name, namespace] =
            [&selector.group, &selector.kind, &selector.name, &namespace].map(word);
        let (group, kind, name, namespace) = (group?, kind?, name?, namespace?);
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
        let is_home = |home: &str| is_filled_in_later(home) || fits(&namespace, effective(home));
        // A base may give any of its objects this namespace.
        let is_given = namespace.is_none() || self.namespaces.iter().any(|home| is_home(home));
        let is_at_home = |homes: &BTreeSet<Arc<str>>| is_given || homes.iter().any(|home| is_home(home));
        let looks_at_all = matches!(name, Some(Word::Pattern(_))) || !is_given;
        let mut selected = BTreeSet::new();
        for ((own_group, own_kind), names) in self.names.iter().filter(|((of, it), _)| is_of_kind(of, it)) {
            self.spend(if looks_at_all { names.len() } else { 1 })?;
            let is_named = match &name {
                Some(Word::Name(name)) => names.get(&**name).is_some_and(is_at_home),
                _ => names.iter().any(|(it, homes)| fits(&name, it) && is_at_home(homes)),
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
        // Without a namespace it is for an object without one, or in `default`.
        let is_missing = !name.is_empty() && self.lacks(object.group(), kind, name, Some(namespace));
        let at = is_missing.then(|| Pointer::new("/metadata/name"))?;
        let wanted = (object.group(), &**kind, &**name, Some(&**namespace));
        Some(self.finding(at, wanted, "kustomize fails for this patch"))
    }

    /// The warning about a patch for the objects that a selector selects. kustomize reads its texts as patterns.
    pub(super) fn warning_of(&self, selector: &Selector, target: &Pointer) -> Option<Finding> {
        let Selector { group, kind: Some(kind), name, .. } = selector else { return None };
        kind.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(())?;
        let validated = memgate_platforms::ALL.iter().flat_map(|family| family.kinds.validated);
        let groups = validated.filter(|it| it.kind == kind).map(|it| it.group);
        let groups: BTreeSet<&str> = match group {
            Some(group) => BTreeSet::from([group.as_str()]),
            None => groups.collect(),
        };
        let Some(first) = groups.first().filter(|_| groups.iter().any(|group| is_checked(group, kind)))
        else {
            return self.warning_of_kind(kind, target.key("kind"));
        };
        if let Some(field) = self.unselected_by(selector) {
            let (directory, kind) = (self.shown(), quoted_key(kind));
            let kind = kind.trim_matches('"');
            let message =
                format!("the {field} selects no {kind} among the resources of {directory}, so {NO_EFFECT}");
            return Some(Finding::warn(&PATCH_TARGET_MISSING, target.key(field), message));
        }
        let (name, namespace) = (name.as_ref()?, selector.namespace.as_deref());
        let is_plain = is_dns_subdomain(name) && namespace.is_none_or(is_dns_subdomain);
        (is_plain && groups.iter().all(|group| self.lacks(group, kind, name, namespace))).then_some(())?;
        Some(self.finding(target.key("name"), (first, kind, name, namespace), NO_EFFECT))
    }

    /// The field of a selector because of which it selects nothing, if without it, it selects something: that of its labels, or
    /// the namespace.
    fn unselected_by(&self, selector: &Selector) -> Option<&'static str> {
        let selects = |selector: &Selector| Some(!self.selected(selector)?.is_empty());
        if !selector.has_labels() {
            // Of one with a name the name is said to be in another namespace.
            let is_named = selector.name.as_deref().is_some_and(is_dns_subdomain);
            (!is_named && selector.namespace.is_some() && !selects(selector)?).then_some(())?;
            return selects(&Selector { namespace: None, ..selector.clone() })?.then_some("namespace");
        }
        let is_known = !self.renames || selector.name.is_none();
        (is_known && !selects(selector)?).then_some(())?;
        let [labels, annotations] = &selector.labels;
        let by = |labels| selects(&Selector { labels, ..selector.clone() });
        by([None, None])?.then_some(())?;
        let is_of_labels = labels.is_some() && (annotations.is_none() || !by([labels.clone(), None])?);
        Some(if is_of_labels { "labelSelector" } else { "annotationSelector" })
    }

    /// The warning about a patch for objects of a kind that is nearly one that it has.
    fn warning_of_kind(&self, kind: &str, at: Pointer) -> Option<Finding> {
        // Generators make such objects too.
        (!["ConfigMap", "Secret"].contains(&kind)).then_some(())?;
        self.spend(self.names.len())?;
        let kinds = || self.names.keys().map(|(_, kind)| &**kind);
        let meant = nearest(kind, kinds()).filter(|_| !kinds().any(|it| it == kind))?;
        let (directory, meant) = (self.shown(), did_you_mean(Some(meant)));
        let kind = quoted_key(kind);
        let message =
            format!("the resources of {directory} do not have the kind {kind}, so {NO_EFFECT}{meant}");
        Some(Finding::warn(&PATCH_TARGET_MISSING, at, message))
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

    /// Whether it has an object of a kind.
    pub(super) fn has_kind(&self, group: &str, kind: &str) -> bool {
        self.names.contains_key(&(group.to_owned(), kind.into()))
    }

    /// Its directory in messages.
    fn shown(&self) -> String {
        let directory = without_dots(&self.directory);
        let directory = directory.to_string_lossy();
        if directory.is_empty() { ".".to_owned() } else { plain(&directory).into_owned() }
    }

    fn finding(
        &self,
        at: Pointer,
        (group, kind, name, namespace): (&str, &str, &str, Option<&str>),
        effect: &str,
    ) -> Finding {
        let names = self.names.get(&(group.to_owned(), kind.into()));
        let names = names.filter(|names| self.spend(names.len()).is_some());
        let homes = names.and_then(|names| names.get(name)).into_iter().flatten();
        let homes: Vec<&str> = homes.map(|home| effective(home)).collect();
        let given = self.given.get(&(group.to_owned(), kind.into(), name.into())).map(String::as_str);
        let meant = match given.or_else(|| homes.first().copied()).filter(|_| !homes.is_empty()) {
            Some(home) => format!("; it is in namespace {}", quoted(home)),
            None => did_you_mean(nearest(name, names.into_iter().flatten().map(|(it, _)| &**it))),
        };
        let place = match namespace {
            _ if homes.is_empty() => "",
            Some("") => " without a namespace",
            _ => " in this namespace",
        };
        let message = format!(
            "the resources of {} do not have {} {}{place}, so {effect}{meant}",
            self.shown(),
            quoted_key(kind).trim_matches('"'),
            quoted(name),
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
