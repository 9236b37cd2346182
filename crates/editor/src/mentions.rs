//! The names of objects in files: each object has its own, and names others in the fields of the table of its platform.

use std::sync::Arc;

use memgate_manifest::document::Document;
use memgate_manifest::later::Later;
use memgate_manifest::place::DocumentPlace;
use memgate_manifest::source::{Location, Source, Span};
use memgate_model::edge::{Edge, Home, Named, Site, Wanted};
use memgate_model::family::Family;
use memgate_model::kind::{Kind, NAMESPACE};
use memgate_model::object::{DEFAULT_NAMESPACE, Lookup, Reference};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_model::workload;
use memgate_platforms::other_references::other_edges;
use memgate_platforms::state_kind;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::inputs::Inputs;
use memgate_workbench::load::objects_in;
use serde_json::Value;

/// A place with the name of an object.
pub(crate) struct Mention {
    /// The object that has the field.
    pub(crate) place: Arc<DocumentPlace>,
    /// The field in it.
    pub(crate) pointer: Pointer,
    /// The value of the field.
    pub(crate) text: String,
    /// The object that is named, whether it exists or not.
    pub(crate) object: Reference,
    /// What the name is for.
    pub(crate) role: Role,
    /// Whether a later step fills in the value, or what is known of it was put in.
    pub(crate) is_later: bool,
}

/// What a name is for.
#[derive(Clone, Copy)]
pub(crate) enum Role {
    /// It is the object's own.
    Own,
    /// It refers to another object.
    Reference {
        /// The row of the table.
        edge: &'static Edge,
        /// Whether objects of every namespace are meant.
        is_everywhere: bool,
        /// Whether the object is not among the files and may exist nevertheless: another one may make it.
        is_unknown: bool,
    },
    /// It selects the object in a kustomization.
    Selector,
    /// It is the namespace of an object.
    Namespace,
}

impl Mention {
    /// Where the field is.
    pub(crate) fn location(&self) -> Location {
        self.place.locate(&self.pointer)
    }

    /// The key and the value; `None` for a field that is not in the text itself.
    pub(crate) fn span(&self) -> Option<Span> {
        let found = self.location();
        found.exact.then(|| found.whole())
    }

    /// Whether it refers to another object.
    pub(crate) const fn is_reference(&self) -> bool {
        matches!(self.role, Role::Reference { .. })
    }

    /// The text with another name in it.
    pub(crate) fn renamed(&self, new: &str) -> String {
        Named { namespace: "", name: &self.object.name, key: None }.replaced(&self.text, new)
    }
}

/// The names in the objects of a file of this name, or of all files.
pub(crate) fn mentions(inputs: &Inputs, file: Option<&str>) -> Vec<Mention> {
    let mut reader = MentionReader::new(&inputs.snapshot);
    let chosen = |source: &&Arc<Source>| file.is_none_or(|file| source.name() == file);
    for source in inputs.sources.iter().filter(chosen) {
        for (document, later) in objects_in(source, inputs) {
            reader.add(&document, &later);
        }
    }
    reader.found
}

/// An object whose names are read.
pub(crate) struct NamingObject<'d> {
    /// The API group and the kind.
    pub(crate) group_kind: (&'d str, &'d str),
    /// The object.
    pub(crate) value: &'d Value,
    /// Its namespace, and whether that was given.
    pub(crate) namespace: (&'d str, bool),
}

/// Collects the names in objects.
pub(crate) struct MentionReader<'i> {
    snapshot: &'i Snapshot,
    /// What was found.
    pub(crate) found: Vec<Mention>,
}

impl<'i> MentionReader<'i> {
    /// Nothing is found yet.
    pub(crate) const fn new(snapshot: &'i Snapshot) -> Self {
        Self { snapshot, found: Vec::new() }
    }

    /// The platforms.
    pub(crate) fn families(&self) -> &'i [&'static Family] {
        &self.snapshot.settings.families
    }

    /// The namespace of an existing object of this name: where objects are that name none, else the first.
    pub(crate) fn home(&self, kind: &'static Kind, name: &str) -> Option<String> {
        let budget = Budget::default();
        let state = StateReader::new(self.snapshot, &budget);
        let chosen = self.snapshot.settings.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        let here = state.peek(kind, chosen, name).map(|object| &*object.namespace);
        here.or_else(|| state.elsewhere(kind, "", name)).map(str::to_owned)
    }

    fn add(&mut self, document: &Document, later: &Later) {
        let namespace = document.namespace();
        let chosen = self.snapshot.settings.namespace.as_deref();
        let home = namespace.or(chosen).unwrap_or(DEFAULT_NAMESPACE);
        let object = NamingObject {
            group_kind: (document.group(), document.kind()),
            value: document.value(),
            namespace: (home, namespace.or(chosen).is_some()),
        };
        let is_later = |pointer: &Pointer| later.known.contains(pointer) || later.unknown.contains(pointer);
        let place = document.shared_place();
        self.add_object(&object, &|pointer| Some((Arc::clone(&place), pointer.clone(), is_later(pointer))));
    }

    /// Adds the names in an object. `locate` gives the document of a field, its place there, and whether a later step fills
    /// it in.
    pub(crate) fn add_object(&mut self, object: &NamingObject<'_>, locate: &Locate<'_>) {
        self.add_own(object, locate);
        let (group, kind) = object.group_kind;
        let pod = match workload::find(group, kind).filter(|it| it.is_built_in()) {
            Some(workload) => Some(workload.template()),
            None => (group.is_empty() && kind == "Pod").then_some(""),
        };
        let budget = Budget::default();
        let reader = if object.namespace.1 { StateReader::new } else { StateReader::without_namespace };
        let mut state = reader(self.snapshot, &budget);
        let selects = workload::SELECTORS.iter().find(|known| (known.0, known.1) == (group, kind));
        let part = |base: &'static str| Some((base, object.value.pointer(base)?));
        let selector = selects.and_then(|(_, _, base)| part(base));
        let families = self.families().iter();
        for edge in families.flat_map(|family| family.edges.iter().chain(other_edges(family))) {
            let from = edge.from.iter().find(|known| known.is(group, kind)).copied();
            let base = if edge.from.is_empty() { pod } else { from.map(|_| "") };
            if let Some((base, value)) = base.and_then(part) {
                let sites = edge.sites(value);
                self.add_references(edge, &sites, (base, from, value), (object, locate), &mut state);
            }
            // What selects pods by a label names what the label does.
            let label = edge.path.strip_prefix("/metadata/labels").filter(|_| edge.from.is_empty());
            if let Some((label, (base, value))) = label.zip(selector) {
                let text = value.pointer(label).and_then(Value::as_str);
                let site = |text| Site { pointer: Pointer::new(label), text, holder: value, element: None };
                let sites: Vec<_> = text.map(site).into_iter().collect();
                self.add_references(edge, &sites, (base, None, value), (object, locate), &mut state);
            }
        }
    }

    fn add_own(&mut self, object: &NamingObject<'_>, locate: &Locate<'_>) {
        let (group, kind) = object.group_kind;
        let text = |pointer: &str| object.value.pointer(pointer).and_then(Value::as_str);
        let kind = state_kind(self.families(), group, kind);
        if let Some((kind, name)) = kind.zip(text("/metadata/name")) {
            let namespace = if kind.namespaced { object.namespace.0 } else { "" };
            let reference = Reference { kind, namespace: namespace.to_owned(), name: name.to_owned() };
            self.push("/metadata/name", name, (reference, Role::Own), locate);
        }
        if let Some(namespace) = text("/metadata/namespace") {
            self.push("/metadata/namespace", namespace, (namespaced(namespace), Role::Namespace), locate);
        }
    }

    fn add_references(
        &mut self,
        edge: &'static Edge,
        sites: &[Site<'_, Value>],
        (base, from, value): (&str, Option<&'static Kind>, &Value),
        (object, locate): (&NamingObject<'_>, &Locate<'_>),
        state: &mut StateReader<'_>,
    ) {
        if sites.is_empty() {
            return;
        }
        let tree = from.and_then(|from| Tree::parse(&value.to_string(), &from.schema).ok());
        let tree = tree.unwrap_or(Tree::Null);
        let is_everywhere = from.is_some_and(|from| !from.namespaced);
        let namespace = if is_everywhere { "" } else { object.namespace.0 };
        for site in sites {
            let Some(named) = edge.named(site, &tree, namespace) else { continue };
            let (object, is_unknown) = resolve(edge, &named, &tree, state);
            let role = Role::Reference { edge, is_everywhere, is_unknown };
            let pointer = Pointer::new(base).join(&site.pointer);
            self.push(pointer.as_str(), site.text, (object, role), locate);
            let beside = match edge.home {
                Home::Beside(field) => site.pointer.parent().map(|parent| parent.key(field)),
                Home::Own | Home::OrIn(_) | Home::InText(_) => None,
            };
            let beside = beside.and_then(|at| Some((value.pointer(at.as_str())?.as_str()?, at)));
            if let Some((text, at)) = beside {
                self.push(at.as_str(), text, (namespaced(text), Role::Namespace), locate);
            }
        }
    }

    fn push(&mut self, pointer: &str, text: &str, (object, role): (Reference, Role), locate: &Locate<'_>) {
        if let Some((place, pointer, is_later)) = locate(&Pointer::new(pointer)) {
            self.found.push(Mention { place, pointer, text: text.to_owned(), object, role, is_later });
        }
    }
}

/// Gives the document of a field, its place there, and whether a later step fills it in.
pub(crate) type Locate<'l> = dyn Fn(&Pointer) -> Option<(Arc<DocumentPlace>, Pointer, bool)> + 'l;

fn namespaced(name: &str) -> Reference {
    Reference { kind: &NAMESPACE, namespace: String::new(), name: name.to_owned() }
}

/// The object that a name stands for, and whether it is unknown.
pub(crate) fn resolve(
    edge: &Edge,
    named: &Named<'_>,
    object: &Tree,
    state: &mut StateReader<'_>,
) -> (Reference, bool) {
    let lookup = (edge.look_up)(&Wanted { edge, named: *named, by: object }, state);
    let peeked = || edge.to.iter().find_map(|kind| state.peek(kind, named.namespace, named.name));
    let is_absent = lookup == Lookup::Absent;
    let found = lookup.found().or_else(peeked);
    let is_unknown = found.is_none() && !is_absent;
    let reference = match found {
        Some(found) => {
            let (namespace, name) = (found.namespace.to_string(), found.name.to_string());
            Reference { kind: found.kind, namespace, name }
        }
        None => Reference {
            kind: edge.to.first().copied().unwrap_or(&NAMESPACE),
            namespace: named.namespace.to_owned(),
            name: named.name.to_owned(),
        },
    };
    (reference, is_unknown)
}
