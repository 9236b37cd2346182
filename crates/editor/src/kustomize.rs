//! The names of objects in kustomizations and their patches, of which no manifests are read.
//!
//! ```text
//! kustomization ──▶ selectors (patches, replacements, vars), patches in its text
//! patch file ──▶ part of an object, or a list of changes (JSON Patch) of the objects that a selector names
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use memgate_manifest::document::embedded::Embedded;
use memgate_manifest::document::{Document, values};
use memgate_manifest::later::is_filled_in_later;
use memgate_model::edge::{Edge, Site};
use memgate_model::kind::Kind;
use memgate_model::object::{DEFAULT_NAMESPACE, Object, Reference};
use memgate_model::snapshot::Snapshot;
use memgate_model::workload;
use memgate_platforms::state_kinds;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::pointer::{Pointer, list_index};
use memgate_workbench::inputs::Inputs;
use memgate_workbench::kustomization::is_kustomization;
use memgate_workbench::plan::Plan;
use memgate_workbench::read::kustomize_files;
use memgate_workbench::repository::normal;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use crate::mentions::{Mention, MentionReader, NamingObject, Role};

/// The fields with the name of an object that a kustomization selects.
static SELECTORS: [Edge; 6] = [
    Edge::new(&[], "/patches/*/target/name", &[]),
    Edge::new(&[], "/patchesJson6902/*/target/name", &[]),
    Edge::new(&[], "/replacements/*/source/name", &[]),
    Edge::new(&[], "/replacements/*/targets/*/select/name", &[]),
    Edge::new(&[], "/replacements/*/targets/*/reject/*/name", &[]),
    Edge::new(&[], "/vars/*/objref/name", &[]),
];

/// The same in a file of replacements.
static SELECTORS_IN_FILES: [Edge; 3] = [
    Edge::new(&[], "/*/source/name", &[]),
    Edge::new(&[], "/*/targets/*/select/name", &[]),
    Edge::new(&[], "/*/targets/*/reject/*/name", &[]),
];

/// The lists of patches, whose elements have a target.
const PATCHES: [&str; 2] = ["patches", "patchesJson6902"];

/// How many objects are compared with a pattern.
const MAX_SELECTED: usize = 1_000;

/// The most names in a path of a JSON Patch that is followed.
const MAX_DEPTH: usize = 32;

/// The largest index of a list in a JSON Patch that is followed.
const MAX_INDEX: usize = 1_000;

/// The names in the kustomizations of the inputs and their patches.
pub(crate) fn mentions_of_kustomize(inputs: &Inputs, plan: &Plan) -> Vec<Mention> {
    let mut reader = Reader { names: MentionReader::new(&inputs.snapshot), snapshot: &inputs.snapshot };
    let files = kustomize_files(inputs, plan);
    let (kustomizations, others): (Vec<_>, Vec<_>) =
        files.iter().partition(|source| is_kustomization(Path::new(source.name())));
    let mut targets = Targets::new();
    for source in kustomizations {
        for document in values(source, &mut Vec::new()) {
            reader.add_kustomization(&document, &mut targets);
        }
    }
    for source in others {
        let of_file = targets.remove(&normal(Path::new(source.name()))).unwrap_or_default();
        for document in values(source, &mut Vec::new()) {
            reader.add_patch(&document, &of_file);
            reader.add_selectors(&document, &SELECTORS_IN_FILES);
        }
    }
    reader.names.found
}

/// The objects to which the patches in a file apply.
type Targets = BTreeMap<PathBuf, BTreeSet<Target>>;

/// The object to which a patch applies.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    group: String,
    kind: String,
    namespace: String,
}

/// Collects the names in kustomizations and patches.
struct Reader<'i> {
    names: MentionReader<'i>,
    snapshot: &'i Snapshot,
}

impl Reader<'_> {
    fn add_kustomization(&mut self, document: &Document, targets: &mut Targets) {
        self.add_selectors(document, &SELECTORS);
        let directory = Path::new(document.source().name()).parent().unwrap_or_else(|| Path::new(""));
        let mut in_text = Vec::new();
        for list in PATCHES {
            let patches = document.value().get(list).and_then(Value::as_array);
            for (index, patch) in patches.into_iter().flatten().enumerate() {
                let target = patch.get("target").map(|target| self.target(target));
                if let Some(path) = patch.get("path").and_then(Value::as_str) {
                    targets.entry(normal(&directory.join(path))).or_default().extend(target.clone());
                }
                in_text.push((Pointer::root().key(list).index(index).key("patch"), target));
            }
        }
        let merged = document.value().get("patchesStrategicMerge").and_then(Value::as_array);
        for index in 0..merged.map_or(0, Vec::len) {
            in_text.push((Pointer::new("/patchesStrategicMerge").index(index), None));
        }
        for (at, target) in in_text {
            let patch = Embedded::read(document, &at, &mut Vec::new()).filter(|patch| patch.is_placed);
            let targets = target.into_iter().collect();
            patch.iter().flat_map(|it| &it.documents).for_each(|it| self.add_patch(it, &targets));
        }
    }

    fn add_patch(&mut self, document: &Document, targets: &BTreeSet<Target>) {
        if document.value().is_array() {
            for target in targets {
                self.add_changes(document, target);
            }
            return;
        }
        let target = targets.first().map(|target| &*target.namespace);
        let (group, kind, name) = (document.group(), document.kind(), document.name());
        let home = document.namespace().or(target).map(str::to_owned);
        let home = home.unwrap_or_else(|| self.home_of(Some(group), kind, name));
        let object = NamingObject {
            group_kind: (group, kind),
            value: document.value(),
            namespace: (&home, document.namespace().is_some()),
        };
        let is_later = |at: &Pointer| document.value().pointer(at.as_str()).is_some_and(is_later);
        self.names.add_object(&object, &|at| Some((document.shared_place(), at.clone(), is_later(at))));
    }

    /// Adds the names in the values of a JSON Patch.
    fn add_changes(&mut self, document: &Document, target: &Target) {
        for (index, change) in document.value().as_array().into_iter().flatten().enumerate() {
            let (path, value) = (change.get("path").and_then(Value::as_str), change.get("value"));
            let made = path.zip(value).and_then(|(path, value)| made(path, value));
            let Some((at, value)) = made else { continue };
            let object = NamingObject {
                group_kind: (&target.group, &target.kind),
                value: &value,
                namespace: (&target.namespace, true),
            };
            let start = Pointer::root().index(index).key("value");
            let is_later = |at: &Pointer| value.pointer(at.as_str()).is_some_and(is_later);
            self.names.add_object(&object, &|pointer| {
                let below = pointer.as_str().strip_prefix(at.as_str())?;
                Some((document.shared_place(), start.join(&Pointer::new(below)), is_later(pointer)))
            });
        }
    }

    fn add_selectors(&mut self, document: &Document, selectors: &'static [Edge]) {
        for selector in selectors {
            for Site { pointer, text, holder, .. } in selector.sites(document.value()) {
                let Some(object) = self.selected(holder) else { continue };
                self.names.found.push(Mention {
                    place: document.shared_place(),
                    pointer,
                    text: text.to_owned(),
                    object,
                    role: Role::Selector,
                    is_later: is_filled_in_later(text),
                });
            }
        }
    }

    /// The objects to which a patch with this target applies.
    fn target(&self, selector: &Value) -> Target {
        let selected = self.selected(selector);
        let text = |field: &str| selector.get(field).and_then(Value::as_str).map(str::to_owned);
        let kind = text("kind").unwrap_or_default();
        let of_workload = || workload::built_in().find(|it| it.kind == kind).map(|it| it.group.to_owned());
        let known = selected.as_ref().map(|object| object.kind.group.to_owned());
        let group = text("group").or(known).or_else(of_workload).unwrap_or_default();
        let home = selected.map(|object| object.namespace).or_else(|| text("namespace"));
        let namespace = home.unwrap_or_else(|| self.home_of(None, &kind, ""));
        Target { group, kind, namespace }
    }

    /// The object that a selector names; `None` for a kind that is not known. A selector without a group, kind or namespace
    /// means an existing object.
    fn selected(&self, selector: &Value) -> Option<Reference> {
        let text = |field: &str| selector.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        let name = text("name").unwrap_or_default();
        let group = text("group").or_else(|| Some(text("apiVersion")?.split_once('/')?.0));
        let kind = self.existing(group, text("kind"), name)?;
        let home = || self.home_of(Some(kind.group), kind.kind, name);
        let namespace = text("namespace").map_or_else(home, str::to_owned);
        let namespace = if kind.namespaced { namespace } else { String::new() };
        Some(Reference { kind, namespace, name: name.to_owned() })
    }

    /// The kind with this group and name, if they are given; one that has an object of this name comes first.
    fn existing(&self, group: Option<&str>, kind: Option<&str>, name: &str) -> Option<&'static Kind> {
        let is_it = |known: &&Kind| {
            group.is_none_or(|group| known.group == group) && kind.is_none_or(|kind| known.kind == kind)
        };
        let mut kinds = state_kinds(self.names.families()).filter(is_it);
        let first = kinds.next()?;
        let has = |known: &&'static Kind| self.names.home(known, name).is_some();
        Some(std::iter::once(first).chain(kinds).find(has).unwrap_or(first))
    }

    /// The namespace of the first object that a pattern selects.
    fn home_by(&self, kind: &'static Kind, name: &str) -> Option<String> {
        let pattern = if name.is_empty() { None } else { Some(pattern(name)?) };
        let mut objects = self.snapshot.kind(kind)?.objects().take(MAX_SELECTED);
        let is_it = |object: &&Object| pattern.as_ref().is_none_or(|it| it.is_match(&object.name));
        objects.find(is_it).map(|object| object.namespace.to_string())
    }

    /// The namespace of an object that a patch or selector names without one.
    fn home_of(&self, group: Option<&str>, kind: &str, name: &str) -> String {
        let existing = self.existing(group, Some(kind), name);
        let home = existing.and_then(|kind| self.names.home(kind, name).or_else(|| self.home_by(kind, name)));
        let chosen = || self.snapshot.settings.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        home.unwrap_or_else(|| chosen().to_owned())
    }
}

/// The pattern of a selector, which kustomize compares with whole names; `None` for what is a name itself.
pub(crate) fn pattern(name: &str) -> Option<Regex> {
    const MAX_BYTES: usize = 64 << 10;
    let pattern = (!is_dns_subdomain(name)).then(|| format!("^(?:{name})$"))?;
    RegexBuilder::new(&pattern).size_limit(MAX_BYTES).build().ok()
}

fn is_later(value: &Value) -> bool {
    value.as_str().is_some_and(is_filled_in_later)
}

/// The object in which only the value of a change is, and where it is there.
fn made(path: &str, value: &Value) -> Option<(Pointer, Value)> {
    let (mut at, mut object) = (String::new(), value.clone());
    let path = Pointer::new(path);
    let tokens: Vec<_> = path.tokens().take(MAX_DEPTH + 1).map(std::borrow::Cow::into_owned).collect();
    if tokens.len() > MAX_DEPTH {
        return None;
    }
    for token in tokens.iter().rev() {
        let index = if token == "-" { Some(0) } else { list_index(token) };
        object = match index {
            Some(index) if index > MAX_INDEX => return None,
            Some(index) => {
                let mut list = vec![Value::Null; index];
                list.push(object);
                Value::Array(list)
            }
            None => Value::Object(Map::from_iter([(token.clone(), object)])),
        };
        let index = index.map(|index| Pointer::root().index(index));
        at = index.unwrap_or_else(|| Pointer::root().key(token)).as_str().to_owned() + &at;
    }
    Some((Pointer::new(at), object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_stands_in_an_object() {
        for (path, at, object) in [
            ("/spec/a~1b", "/spec/a~1b", json!({"spec": {"a/b": 5}})),
            ("/spec/list/-", "/spec/list/0", json!({"spec": {"list": [5]}})),
            ("/spec/list/1/x", "/spec/list/1/x", json!({"spec": {"list": [null, {"x": 5}]}})),
            ("", "", json!(5)),
        ] {
            assert_eq!(made(path, &json!(5)), Some((Pointer::new(at), object)), "{path}");
        }
        assert_eq!(made("/list/1001", &json!(5)), None);
        assert_eq!(made(&"/a".repeat(100_000), &json!(5)), None);
    }
}
