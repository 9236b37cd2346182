//! The map as a graph: objects in namespaces, the hosts of stores, and lines between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Fact, MapLine, MappedMemory, MappedObject, MemoryMap, Presence, SetMap};

/// The most lines of a Mermaid graph that GitHub and GitLab draw.
pub const MAX_DRAWN_LINES: usize = 500;

/// The most bytes of a Mermaid graph that GitHub and GitLab draw.
pub const MAX_DRAWN_BYTES: usize = 50_000;

/// The most characters of an id before its number: more than the names of an object have together.
const MAX_ID_CHARS: usize = 1000;

/// The graph of one set.
pub(super) struct Graph {
    /// The id and the name of the set; `None` without sets.
    pub(super) set: Option<(String, String)>,
    /// The namespaces with their objects; the objects without a namespace first.
    pub(super) namespaces: Vec<Namespace>,
    /// The hosts.
    pub(super) stores: Vec<Node>,
    /// The lines, in the order of the nodes to which they lead.
    pub(super) edges: Vec<Edge>,
}

/// The objects of a namespace.
pub(super) struct Namespace {
    pub(super) id: String,
    /// The name; empty for objects without a namespace.
    pub(super) name: String,
    pub(super) nodes: Vec<Node>,
}

/// A node.
pub(super) struct Node {
    pub(super) id: String,
    pub(super) shape: Shape,
    /// The lines of its label.
    pub(super) label: Vec<String>,
}

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// An agent, or another object that refers to memory.
    Referrer,
    /// A pod or a workload.
    Pod,
    /// A memory resource.
    Memory,
    /// A memory resource that was not found.
    Missing,
    /// A host.
    Store,
}

/// A line between two nodes.
pub(super) struct Edge {
    pub(super) from: String,
    pub(super) to: String,
    /// Empty for a line without a label.
    pub(super) label: String,
    pub(super) crosses: bool,
}

/// The graphs of all sets with memory. No id occurs twice in them.
pub(super) fn graphs(map: &MemoryMap) -> Vec<Graph> {
    let mut ids = Ids::default();
    map.sets.iter().filter(|set| !set.memories.is_empty()).map(|set| graph(set, &mut ids)).collect()
}

fn graph(of: &SetMap, ids: &mut Ids) -> Graph {
    let set = (!of.set.is_empty()).then(|| (ids.id(&["set", &of.set]), of.set.clone()));
    let mut nodes = Nodes { set: of.set.clone(), ..Nodes::default() };
    let mut edges = Vec::new();
    for (number, memory) in of.memories.iter().enumerate() {
        let shape = match memory.presence {
            Presence::Found | Presence::Undeclared => Shape::Memory,
            Presence::Missing | Presence::Unknown => Shape::Missing,
        };
        let key = Key { object: memory.object.clone(), family: memory.family, memory: Some(number) };
        let to = nodes.object(key, shape, memory_label(memory), ids);
        for MapLine { user, family, is_pod, crosses, differs } in &memory.users {
            let shape = if *is_pod { Shape::Pod } else { Shape::Referrer };
            let label = vec![format!("{} {}", user.kind, user.name)];
            let from = nodes.object(Key { object: user.clone(), family, memory: None }, shape, label, ids);
            let mut words: Vec<&str> = Vec::new();
            words.extend(crosses.then_some("across namespaces"));
            words.extend(differs.as_deref());
            edges.push(Edge { from, to: to.clone(), label: words.join(", "), crosses: *crosses });
        }
        for host in memory.facts.hosts.known() {
            let store = nodes.store(memory, host, ids);
            edges.push(Edge { from: to.clone(), to: store, label: String::new(), crosses: false });
        }
    }
    Graph { set, namespaces: nodes.namespaces(ids), stores: nodes.stores.into_values().collect(), edges }
}

/// The lines of the label of a memory resource. A known host has a node of its own.
fn memory_label(memory: &MappedMemory) -> Vec<String> {
    let MappedMemory { object, presence, facts, .. } = memory;
    let mut label = vec![format!("{} {}", object.kind, object.name)];
    label.extend(Some(presence.words()).filter(|words| !words.is_empty()).map(str::to_owned));
    let is_node = |label: &str, fact: &Fact| label == "host" && !fact.known().is_empty();
    let facts = facts.labelled().filter(|(label, fact)| !is_node(label, fact));
    label.extend(facts.map(|(label, fact)| format!("{label}: {fact}")));
    label
}

/// Identifies an object of a set: other platforms may have a kind of the same name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    object: MappedObject,
    family: &'static str,
    /// The number of a memory resource: it may have the name of an object that uses memory, and a pod may name several by
    /// its own variables.
    memory: Option<usize>,
}

/// The nodes of a set, each once.
#[derive(Default)]
struct Nodes {
    set: String,
    objects: BTreeMap<Key, Node>,
    /// By the host, with its namespace.
    stores: BTreeMap<String, Node>,
}

impl Nodes {
    fn object(&mut self, key: Key, shape: Shape, label: Vec<String>, ids: &mut Ids) -> String {
        let set = &self.set;
        let node = self.objects.entry(key).or_insert_with_key(|Key { object, family, memory }| {
            let MappedObject { namespace, kind, name } = object;
            let role = if memory.is_some() { "memory" } else { "user" };
            Node { id: ids.id(&[role, set, family, kind, namespace, name]), shape, label }
        });
        node.id.clone()
    }

    fn store(&mut self, memory: &MappedMemory, host: &str, ids: &mut Ids) -> String {
        let (set, whole) = (&self.set, memory.whole_host(host));
        let label = vec![format!("host {whole}")];
        let node = self.stores.entry(whole).or_insert_with(|| {
            let id = ids.id(&["host", set, memory.namespace_of(host), host]);
            Node { id, shape: Shape::Store, label }
        });
        node.id.clone()
    }

    /// Takes the objects by namespace.
    fn namespaces(&mut self, ids: &mut Ids) -> Vec<Namespace> {
        let mut namespaces: Vec<Namespace> = Vec::new();
        for (Key { object, .. }, node) in std::mem::take(&mut self.objects) {
            match namespaces.last_mut().filter(|last| last.name == object.namespace) {
                Some(last) => last.nodes.push(node),
                None => {
                    let id = ids.id(&["namespace", &self.set, &object.namespace]);
                    namespaces.push(Namespace { id, name: object.namespace, nodes: vec![node] });
                }
            }
        }
        namespaces
    }
}

/// The ids so far.
#[derive(Default)]
struct Ids {
    taken: BTreeSet<String>,
    /// The last number behind an id.
    numbers: BTreeMap<String, usize>,
}

impl Ids {
    /// An id of ASCII letters, digits and underscores, made from a word and names. Names that Kubernetes accepts have an
    /// id that no others have. Of other names, an id has a number if an earlier one is the same.
    fn id(&mut self, names: &[&str]) -> String {
        let mut base = String::new();
        for name in names.iter().filter(|name| !name.is_empty()) {
            base.push_str(if base.is_empty() { "" } else { "__" });
            let mut before = ' ';
            for c in name.chars() {
                match c {
                    c if c.is_ascii_alphanumeric() => base.push(c),
                    // A second one would look like the border of two names.
                    '-' | ' ' if before != '-' => base.push('_'),
                    c => _ = write!(base, "_{:X}_", u32::from(c)),
                }
                before = c;
            }
        }
        base.truncate(MAX_ID_CHARS);
        let mut id = base.clone();
        while !self.taken.insert(id.clone()) {
            let number = self.numbers.entry(base.clone()).or_insert(1);
            *number += 1;
            id.clone_from(&base);
            let _ = write!(id, "_{number}");
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kubernetes_have_ids_without_numbers() {
        let names = [
            ["user", "Agent", "a-b", "c"],
            ["user", "Agent", "a", "b-c"],
            ["user", "Agent", "a", "b--c"],
            ["user", "Agent", "a", "b.c"],
            ["user", "Agent", "a", "b-2e-c"],
            ["user", "Agent", "1a", ""],
        ];
        let mut ids = Ids::default();
        assert_eq!(
            names.map(|names| ids.id(&names)),
            [
                "user__Agent__a_b__c", "user__Agent__a__b_c", "user__Agent__a__b__2D_c",
                "user__Agent__a__b_2E_c", "user__Agent__a__b_2e_c", "user__Agent__1a",
            ]
        );
    }

    #[test]
    fn ids_occur_once() {
        let mut ids = Ids::default();
        let names = [["host", "a b"], ["host", "a-b"], ["host", "a-b"], ["host", "a b 2"]];
        assert_eq!(
            names.map(|names| ids.id(&names)),
            ["host__a_b", "host__a_b_2", "host__a_b_3", "host__a_b_2_2"]
        );
        assert_eq!(ids.id(&["host", &"\u{e4}\"".repeat(500)]).len(), MAX_ID_CHARS);
    }
}
