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
pub(crate) fn lenses(mut question: Question<'_>) -> Result<Vec<CodeLens>, Error> {
    let (file, text) = (question.file(), &question.buffer.text);
    let viewed = memgate_platforms::ALL.iter().flat_map(|family| family.views.kinds);
    let mut memories = viewed.filter(|(_, role)| *role == Role::Memory);
    if !memories.any(|(kind, _)| text.contains(kind.kind)) {
        return Ok(Vec::new());
    }
    question.run.plan.checks_only_open = false;
    let lines = Lines::new(text, question.encoding);
    let mut lenses: BTreeMap<usize, (Range, BTreeSet<User>)> = BTreeMap::new();
    for loaded in load_views(&question.run, |_| true)? {
        let users = users(&loaded);
        let in_file = loaded.objects.iter().filter(|it| it.object.object.place.source().name() == file);
        for viewed in in_file {
            let Some(memory) = memory(viewed, &loaded.inputs.snapshot) else { continue };
            let head = viewed.object.object.place.locate(&Pointer::root()).caret;
            let (_, all) = lenses
                .entry(head.start)
                .or_insert_with(|| (lines.range(head.start, head.end), BTreeSet::new()));
            all.extend(users.get(&memory).into_iter().flatten().cloned());
        }
    }
    Ok(lenses.into_values().map(|(range, users)| lens(range, &users)).collect())
}

/// An object that uses memory: its file and first byte, and its kind if it runs once and ends, so that it is not an agent.
type User = (String, usize, Option<&'static Kind>);

/// A memory resource: platform, kind, namespace and name.
type Memory = (Option<String>, [String; 3]);

fn lens(range: Range, users: &BTreeSet<User>) -> CodeLens {
    let agents = users.iter().filter(|(_, _, once)| once.is_none()).count();
    let once = users.iter().find_map(|(_, _, once)| *once).filter(|_| agents == 0);
    let title = match (agents, once) {
        (0, Some(kind)) if users.len() == 1 => format!("1 {} uses this memory", kind.kind),
        (0, Some(kind)) => format!("{} {} use this memory", users.len(), kind.plural),
        (0, None) => "no agent uses this memory".to_owned(),
        (1, _) => "1 agent uses this memory".to_owned(),
        _ => format!("{} use this memory", counted(agents, "agent")),
    };
    // Without a command, an editor would ask for it later.
    let command = Command { title, command: String::new(), arguments: None };
    CodeLens { range, command: Some(command), data: None }
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
        let user = || (place.source().name().to_owned(), place.start(), once);
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
        used(edge, &tree, &names.namespace, snapshot)
    })
}

fn used(edge: &Edge, object: &Tree, namespace: &str, snapshot: &Snapshot) -> Vec<Memory> {
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
