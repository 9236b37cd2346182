//! Makes the map of memory from the views of objects.

use std::collections::{BTreeMap, BTreeSet};

use crate::build::plan::Plan;
use crate::files::copied::CopiedSecrets;
use crate::files::exempt::duration;
use crate::files::inputs::Inputs;
use crate::files::objects::open_state;
use crate::files::view::{ViewedObject, shown_text, views_in};
use crate::report::ObjectRef;
use crate::report::map::{Fact, Facts, MapLine, MappedMemory, MappedObject, MemoryMap, Presence, UnitMap};
use memgate_model::family::Family;
use memgate_model::memory_view::{MemoryView, ReferenceView, Role, Why};
use memgate_model::request::Occasion;
use memgate_primitives::plain_text::shown_name;

/// The map of what was loaded, if the plan wants it.
pub(crate) fn map_if_wanted(plan: &Plan, inputs: &Inputs, occasion: Occasion<'static>) -> Option<MemoryMap> {
    plan.wants_map.then(|| MemoryMap { units: vec![map_of(inputs, occasion)] })
}

/// The map of what was loaded. Objects without a view are left out: the decisions about them say why.
fn map_of(inputs: &Inputs, occasion: Occasion<'static>) -> UnitMap {
    let (viewed, _) = views_in(inputs, &open_state(&inputs.snapshot), occasion);
    let mut maker = Maker::new(&inputs.snapshot.settings.families);
    let views = || viewed.iter().flat_map(|object| object.views.iter().map(move |view| (object, view)));
    // What an object declares of itself counts more than what another one says of it.
    for role in Role::ALL {
        views().filter(|(_, view)| view.role == role).for_each(|(object, view)| maker.add(object, view));
    }
    let mut memories: Vec<MappedMemory> = maker.memories.into_values().collect();
    memories.sort_by(|one, two| one.object.cmp(&two.object));
    let copied = CopiedSecrets::of(&inputs.origins);
    for text in memories.iter_mut().filter(|_| !copied.is_empty()).flat_map(|it| it.facts.texts_mut()) {
        *text = copied.masked(text).into_owned();
    }
    UnitMap { unit: shown_text(&inputs.unit), memories, judged: BTreeMap::new() }
}

/// Identifies a memory resource: family, and the object with its whole name; without a declaration, what is known of it.
type MemoryKey<'v> = (&'static str, &'v str, &'v str, String, Facts);

fn key(view: &MemoryView) -> MemoryKey<'_> {
    (view.family, &view.namespace, view.kind, view.name.clone(), Facts::default())
}

/// Collects memory resources and lines.
struct Maker<'v> {
    /// The kinds of memory resources, by family.
    kinds: BTreeSet<(&'static str, &'static str)>,
    memories: BTreeMap<MemoryKey<'v>, MappedMemory>,
}

impl<'v> Maker<'v> {
    fn new(families: &[&'static Family]) -> Self {
        let of = |family: &'static Family| {
            family.views.kinds.iter().map(|(kind, role)| (family.name, kind.kind, *role))
        };
        let all = families.iter().copied().flat_map(of);
        let kinds = all.filter(|(_, _, role)| *role == Role::Memory).map(|(family, kind, _)| (family, kind));
        Self { kinds: kinds.collect(), memories: BTreeMap::new() }
    }

    fn add(&mut self, object: &'v ViewedObject, view: &'v MemoryView) {
        if view.role == Role::Memory {
            // Of two declarations, decisions look at the later one.
            self.memories.remove(&key(view));
            let memory = self.declared(view);
            memory.object.group = shown_text(object.object_ref.group());
            return;
        }
        let user = mapped(&object.object_ref);
        let line = |crosses| MapLine {
            user: user.clone(),
            family: if view.role == Role::Pod { "" } else { view.family },
            is_pod: view.role == Role::Pod,
            crosses,
        };
        for source in view.sources.iter().map(|source| &source.view) {
            if source.is_undeclared() {
                self.undeclared(&object.object_ref, source).users.insert(line(false));
                continue;
            }
            let crosses = is_other(&view.namespace, &source.namespace);
            self.declared(source).users.insert(line(crosses));
        }
        let kinds = &self.kinds;
        let is_memory =
            |it: &&ReferenceView| it.found != Some(true) && kinds.contains(&(view.family, it.kind));
        let missing: Vec<_> = view.references.iter().filter(is_memory).collect();
        for reference in missing {
            // The reference has the namespace in the platform's own sense.
            let crosses = is_other(view.effective_namespace(), &reference.namespace);
            let namespace = if crosses { &reference.namespace } else { &view.namespace };
            self.missing(view.family, namespace, reference).users.insert(line(crosses));
        }
    }

    fn declared(&mut self, view: &'v MemoryView) -> &mut MappedMemory {
        self.memories.entry(key(view)).or_insert_with(|| {
            let object = named(&view.namespace, view.kind, &view.name);
            MappedMemory { object, family: view.family, facts: facts(view), ..MappedMemory::default() }
        })
    }

    /// The memory that a pod names by its own variables; a pod may name several.
    fn undeclared(&mut self, user: &'v ObjectRef, view: &'v MemoryView) -> &mut MappedMemory {
        let (family, facts, presence) = (view.family, facts(view), Presence::Undeclared);
        let key = (family, view.namespace.as_str(), view.kind, user.title(), facts.clone());
        self.memories.entry(key).or_insert_with(|| {
            let object = named(&view.namespace, &format!("own variables of {}", user.kind), &user.name);
            MappedMemory { object, family, presence, facts, ..MappedMemory::default() }
        })
    }

    fn missing(
        &mut self,
        family: &'static str,
        namespace: &'v str,
        ReferenceView { kind, name, found, .. }: &'v ReferenceView,
    ) -> &mut MappedMemory {
        let key = (family, namespace, *kind, name.clone(), Facts::default());
        let presence = if found.is_none() { Presence::Unknown } else { Presence::Missing };
        self.memories.entry(key).or_insert_with(|| {
            let object = named(namespace, kind, name);
            MappedMemory { object, family, presence, ..MappedMemory::default() }
        })
    }
}

/// Whether an object of one namespace reaches another one. Objects without a namespace are in none.
fn is_other(from: &str, to: &str) -> bool {
    !from.is_empty() && !to.is_empty() && from != to
}

/// An object by the names that a report gives it.
pub(crate) fn mapped(object_ref: &ObjectRef) -> MappedObject {
    let ObjectRef { namespace, kind, name, .. } = object_ref;
    MappedObject { group: shown_text(object_ref.group()), ..named(namespace, kind, name) }
}

fn named(namespace: &str, kind: &str, name: &str) -> MappedObject {
    let name = if name.is_empty() { "(no name)".to_owned() } else { shown_name(name).into_owned() };
    let (namespace, kind) = (shown_name(namespace).into_owned(), shown_text(kind));
    MappedObject { namespace, kind, name, group: String::new() }
}

/// What the map shows of a memory resource.
fn facts(view: &MemoryView) -> Facts {
    let durable = view.flag("durable").map(|durable| if durable { "yes" } else { "no" }.to_owned());
    let storage = view.text("storageBytes").map(shown_text);
    Facts {
        backend: or_unknown(view, "backend", backend(view)),
        hosts: or_unknown(view, "endpoint", hosts(view)),
        durable: or_unknown(view, "durable", durable),
        retention: retention(view),
        storage: or_unknown(view, "storageBytes", storage),
        secrets: or_unknown(view, "secrets", secrets(view)),
    }
}

fn or_unknown(view: &MemoryView, path: &str, values: impl IntoIterator<Item = String>) -> Fact {
    view.why_unknown(path).map_or_else(|| Fact::of(values), |why| unknown(&why))
}

fn unknown(why: &Why) -> Fact {
    Fact::Unknown(shown_text(&why.to_string()))
}

fn backend(view: &MemoryView) -> Option<String> {
    let backend = view.text("backend")?;
    let provider = view.text("provider").filter(|provider| !provider.is_empty() && *provider != backend);
    let provider = provider.map(|provider| format!(" ({})", shown_text(provider)));
    Some(format!("{}{}", shown_text(backend), provider.unwrap_or_default()))
}

fn hosts(view: &MemoryView) -> impl Iterator<Item = String> {
    view.endpoint.iter().flat_map(|endpoint| &endpoint.hosts).map(|it| {
        let port = it.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", shown_text(&it.host))
    })
}

fn retention(view: &MemoryView) -> Fact {
    if let Some(why) = view.why_unknown("ttlSeconds").or_else(|| view.why_unknown("maxEntries")) {
        return unknown(&why);
    }
    let time = view.integer("ttlSeconds").map(|seconds| match seconds {
        0 => "for ever".to_owned(),
        seconds => duration(i128::from(seconds) * 1_000_000_000),
    });
    let entries =
        view.integer("maxEntries").filter(|most| *most > 0).map(|most| format!("at most {most} entries"));
    Fact::of(time.into_iter().chain(entries))
}

/// The names of the Secrets, with the namespace of one elsewhere.
fn secrets(view: &MemoryView) -> BTreeSet<String> {
    let path = |namespace: &str, name: &str| {
        if is_other(&view.namespace, namespace) {
            format!("{}/{}", shown_name(namespace), shown_name(name))
        } else {
            shown_name(name).into_owned()
        }
    };
    view.secrets.iter().map(|it| path(&it.namespace, &it.name)).collect()
}
