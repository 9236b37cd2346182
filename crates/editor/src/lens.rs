//! How many agents use a memory, at the head of each memory resource.

use std::collections::{BTreeMap, BTreeSet};

use lsp_types::{CodeLens, Command, Range};

use crate::mentions::resolve;
use crate::navigation::Question;
use crate::objects::{Loaded, Target, Viewed, load_views};
use crate::positions::Lines;
use memgate_model::edge::Edge;
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::memory_view::Role;
use memgate_model::object::Reference;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_platforms::validated;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::load::Error;
use memgate_workbench::map::is_for_others;
use memgate_workbench::report::{ObjectRef, counted};

/// The lenses of the memory resources in a file.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn lenses(question: &Question<'_>) -> Result<Vec<CodeLens>, Error> {
    let lens = |(range, users): (Range, Users)| {
        // Without a command, an editor would ask for it later.
        let command = Command { title: users.title(), command: String::new(), arguments: None };
        CodeLens { range, command: Some(command), data: None }
    };
    Ok(used(question)?.into_values().map(lens).collect())
}

/// The memory resources in a file by the first bytes of their heads: the head, and who uses them.
///
/// # Errors
/// When the files cannot be loaded.
pub(crate) fn used(question: &Question<'_>) -> Result<BTreeMap<usize, (Range, Users)>, Error> {
    let (file, text) = (question.file(), &question.buffer.text);
    let viewed = memgate_platforms::ALL.iter().flat_map(|family| family.views.kinds);
    let mut memories = viewed.filter(|(_, role)| *role == Role::Memory);
    if !memories.any(|(kind, _)| text.contains(kind.kind)) {
        return Ok(BTreeMap::new());
    }
    let mut run = question.run.clone();
    run.plan.checks_only_open = false;
    let lines = Lines::new(text, question.encoding);
    let mut heads: BTreeMap<usize, (Range, Users)> = BTreeMap::new();
    for loaded in load_views(&run, |_| true)? {
        let users = users(&loaded);
        let in_file = loaded.objects.iter().filter(|it| it.object.object.place.source().name() == file);
        for viewed in in_file {
            let Some(memory) = memory(viewed, &loaded.inputs.snapshot) else { continue };
            let head = viewed.object.object.place.locate(&Pointer::root()).caret;
            let (_, all) = heads
                .entry(head.start)
                .or_insert_with(|| (lines.range(head.start, head.end), Users::default()));
            all.0.extend(users.get(&memory).into_iter().flatten().cloned());
        }
    }
    Ok(heads)
}

/// The users of a memory resource.
#[derive(Default)]
pub(crate) struct Users(BTreeSet<User>);

/// An object that uses memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct User {
    file: String,
    start: usize,
    /// The kind, if it runs once and ends, so that it is not an agent.
    once: Option<&'static Kind>,
    /// Kind, namespace and name.
    title: String,
}

/// A memory resource: platform, kind, namespace and name.
type Memory = (Option<String>, [String; 3]);

impl Users {
    /// The number of agents, or of others where no agent uses it.
    pub(crate) fn title(&self) -> String {
        let agents = self.names().count();
        let once = self.0.iter().find_map(|user| user.once);
        match (agents, once) {
            (0, None) => "no agent uses this memory".to_owned(),
            (1, Some(kind)) if self.has_no_agent() => format!("1 {} uses this memory", kind.kind),
            (_, Some(kind)) if self.has_no_agent() => format!("{agents} {} use this memory", kind.plural),
            (1, _) => "1 agent uses this memory".to_owned(),
            _ => format!("{} use this memory", counted(agents, "agent")),
        }
    }

    /// The names of those that are counted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let counts = |user: &&User| user.once.is_none() || self.has_no_agent();
        self.0.iter().filter(counts).map(|user| &*user.title)
    }

    fn has_no_agent(&self) -> bool {
        self.0.iter().all(|user| user.once.is_some())
    }
}

/// The memory resource that others use by its name; `None` for another object, and for an agent with a memory of its own.
fn memory(viewed: &Viewed, snapshot: &Snapshot) -> Option<Memory> {
    let view = viewed.views.iter().find(|view| view.role == Role::Memory)?;
    let object_ref = &viewed.object.object.object_ref;
    let ObjectRef { kind, namespace, name, .. } = object_ref;
    let target = Target { family: Some(view.family), kind, namespace, name };
    is_for_others(&snapshot.settings.families, object_ref).then(|| key(target))
}

fn key(Target { family, kind, namespace, name }: Target<'_>) -> Memory {
    (family.map(str::to_owned), [kind, namespace, name].map(str::to_owned))
}

/// The users of each memory resource.
fn users(loaded: &Loaded) -> BTreeMap<Memory, BTreeSet<User>> {
    let mut users: BTreeMap<Memory, BTreeSet<User>> = BTreeMap::new();
    for viewed in &loaded.objects {
        let (place, request) = (&viewed.object.object.place, viewed.object.request());
        let families = &loaded.inputs.snapshot.settings.families;
        let is_once = |(family, kind): &(&Family, &'static Kind)| family.views.transient.contains(kind);
        let once = validated(families, &request.group, &request.kind).filter(is_once).map(|(_, kind)| kind);
        let title = viewed.object.object.object_ref.title();
        let file = place.source().name();
        let user = || User { file: file.to_owned(), start: place.start(), once, title: title.clone() };
        for memory in by_view(viewed).chain(by_table(viewed, &loaded.inputs.snapshot)) {
            users.entry(memory).or_default().insert(user());
        }
    }
    users
}

/// What an object uses by its views, which know the memory that is used without a name too.
fn by_view(viewed: &Viewed) -> impl Iterator<Item = Memory> {
    let referrers = viewed.views.iter().filter(|view| view.role == Role::Referrer);
    referrers.flat_map(|view| &view.sources).map(|source| {
        let view = &source.view;
        let (namespace, name) = (&*view.namespace, &*view.name);
        key(Target { family: Some(view.family), kind: view.kind, namespace, name })
    })
}

/// What an object uses by the table of its platform.
fn by_table(viewed: &Viewed, snapshot: &Snapshot) -> impl Iterator<Item = Memory> {
    let names = &viewed.object.object.object_ref;
    let (group, _) = names.api_version.split_once('/').unwrap_or_default();
    let edges = snapshot.settings.families.iter().flat_map(|family| family.edges);
    let from = move |edge: &&'static Edge| edge.from.iter().find(|kind| kind.is(group, &names.kind)).copied();
    let of_kind = edges.filter(|edge| edge.uses_memory);
    of_kind.filter_map(move |edge| Some((edge, from(&edge)?))).flat_map(move |(edge, kind)| {
        let tree = Tree::parse(viewed.object.manifest(), &kind.schema).unwrap_or(Tree::Null);
        used_by(edge, &tree, &names.namespace, snapshot)
    })
}

fn used_by(edge: &Edge, object: &Tree, namespace: &str, snapshot: &Snapshot) -> Vec<Memory> {
    let budget = Budget::default();
    let mut state = StateReader::new(snapshot, &budget);
    let mut memories = Vec::new();
    for site in edge.sites(object).iter().filter(|site| (edge.counts)(site, object)) {
        let named = edge.named(site, object, namespace);
        let found: Option<Reference> = named.map(|named| resolve(edge, &named, object, &mut state).0);
        memories.extend(found.map(|found| key(Target::of(&found))));
    }
    memories
}
