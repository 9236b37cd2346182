//! The names of objects in files: each object has its own, and names others in the fields of the table of its platform.

use std::sync::Arc;

use memgate_manifest::document::Document;
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::{Source, Span};
use memgate_model::edge::{Edge, Named, Site, Wanted};
use memgate_model::kind::{Kind, NAMESPACE};
use memgate_model::object::{DEFAULT_NAMESPACE, Reference};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_model::workload;
use memgate_platforms::other_references::other_edges;
use memgate_platforms::state_kind;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::files::inputs::Inputs;
use memgate_workbench::files::load::objects_in;
use serde_json::Value;

/// A place with the name of an object.
pub(crate) struct NamedPlace {
    /// The object that has the field.
    pub(crate) place: Arc<DocumentPlace>,
    /// The field in it.
    pointer: Pointer,
    /// The object that is named, whether it exists or not.
    pub(crate) object: Reference,
    /// Whether it is the object's own name. Any other refers to an object.
    pub(crate) is_own: bool,
}

impl NamedPlace {
    /// The key and the value; `None` for a field that is not in the text itself.
    pub(crate) fn span(&self) -> Option<Span> {
        let found = self.place.locate(&self.pointer);
        found.exact.then(|| found.whole())
    }
}

/// The names in the objects of a file of this name, or of all files.
pub(crate) fn names(inputs: &Inputs, file: Option<&str>) -> Vec<NamedPlace> {
    let chosen = |source: &&Arc<Source>| file.is_none_or(|file| source.name() == file);
    let documents = inputs.sources.iter().filter(chosen).flat_map(|source| objects_in(source, inputs));
    documents.flat_map(|(document, _)| names_in(&document, &inputs.snapshot)).collect()
}

fn names_in(document: &Document, snapshot: &Snapshot) -> Vec<NamedPlace> {
    let (group, kind, value) = (document.group(), document.kind(), document.value());
    let families = &snapshot.settings.families;
    let given = document.namespace().or(snapshot.settings.namespace.as_deref());
    let home = given.unwrap_or(DEFAULT_NAMESPACE);
    let place = document.shared_place();
    let name = |pointer: Pointer, object: Reference, is_own: bool| {
        let place = Arc::clone(&place);
        NamedPlace { place, pointer, object, is_own }
    };
    let own_name = value.pointer("/metadata/name").and_then(Value::as_str);
    let own = state_kind(families, group, kind).zip(own_name).map(|(kind, own)| {
        let namespace = if kind.namespaced { home } else { "" };
        let reference = Reference { kind, namespace: namespace.to_owned(), name: own.to_owned() };
        name(Pointer::new("/metadata/name"), reference, true)
    });
    let mut names: Vec<NamedPlace> = own.into_iter().collect();
    let budget = Budget::default();
    let reader = if given.is_some() { StateReader::new } else { StateReader::without_namespace };
    let mut state = reader(snapshot, &budget);
    for edge in families.iter().flat_map(|family| family.edges.iter().chain(other_edges(family))) {
        if let Some(sites) = sites_of(edge, (group, kind), value) {
            let others = sites.references(edge, home, &mut state).into_iter();
            names.extend(others.map(|(pointer, object)| name(pointer, object, false)));
        }
    }
    names
}

/// The fields of an object in which a row of the table names another one.
struct Sites<'v> {
    /// The place of the value in the object.
    base: &'static str,
    /// The kind of the object; `None` for a pod, which any object may have.
    from: Option<&'static Kind>,
    /// The part of the object that the row is about.
    value: &'v Value,
    all: Vec<Site<'v, Value>>,
}

fn sites_of<'v>(edge: &'static Edge, (group, kind): (&str, &str), value: &'v Value) -> Option<Sites<'v>> {
    let pod = match workload::find(group, kind).filter(|it| it.is_built_in()) {
        Some(workload) => Some(workload.template()),
        None => (group.is_empty() && kind == "Pod").then_some(""),
    };
    let part = |base: &'static str| Some((base, value.pointer(base)?));
    let from = edge.from.iter().find(|known| known.is(group, kind)).copied();
    let base = if edge.from.is_empty() { pod } else { from.map(|_| "") };
    base.and_then(part).map(|(base, value)| Sites { base, from, value, all: edge.sites(value) })
}

impl Sites<'_> {
    /// The places of the names in the object, and the objects that they stand for.
    fn references(&self, edge: &Edge, home: &str, state: &mut StateReader<'_>) -> Vec<(Pointer, Reference)> {
        let from = self.from.filter(|_| !self.all.is_empty());
        let tree = from.and_then(|from| Tree::parse(&self.value.to_string(), &from.schema).ok());
        let tree = tree.unwrap_or(Tree::Null);
        let namespace = if from.is_some_and(|from| !from.namespaced) { "" } else { home };
        let of_site = |site: &Site<'_, Value>| {
            let named = edge.named(site, &tree, namespace)?;
            Some((Pointer::new(self.base).join(&site.pointer), resolve(edge, &named, &tree, state)))
        };
        self.all.iter().filter_map(of_site).collect()
    }
}

/// The object that a name stands for.
fn resolve(edge: &Edge, named: &Named<'_>, object: &Tree, state: &mut StateReader<'_>) -> Reference {
    let lookup = (edge.look_up)(&Wanted { edge, named: *named, by: object }, state);
    let peeked = || edge.to.iter().find_map(|kind| state.peek(kind, named.namespace, named.name));
    match lookup.found().or_else(peeked) {
        Some(found) => Reference {
            kind: found.kind,
            namespace: found.namespace.to_string(),
            name: found.name.to_string(),
        },
        None => Reference {
            kind: edge.to.first().copied().unwrap_or(&NAMESPACE),
            namespace: named.namespace.to_owned(),
            name: named.name.to_owned(),
        },
    }
}
