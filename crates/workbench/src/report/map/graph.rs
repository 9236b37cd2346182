//! The map as a graph that people can read: objects in namespaces, the hosts of stores, and lines between them. A larger map
//! than one that can be read has none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use super::{Fact, MapLine, MappedMemory, MappedObject, MemoryMap, Presence, UnitMap, Verdict};
use crate::report::fingerprint::hash;

/// The most boxes.
const MAX_BOXES: usize = 60;

/// The most lines between boxes that can be told apart.
const MAX_EDGES: usize = 240;

/// The most bytes of the text of a graph that GitHub and GitLab draw.
pub(super) const MAX_TEXT_BYTES: usize = 50_000;

/// The most bytes of a label in the text of a graph.
pub(super) const MAX_LABEL_BYTES: usize = 280;

/// The most bytes of an id: the names of most objects together have fewer.
const MAX_ID_BYTES: usize = 64;

/// A graph of all units.
#[derive(Debug)]
pub(crate) struct Graph {
    /// The boxes, by group.
    pub(crate) nodes: Vec<Node>,
    /// The lines, in the order of the boxes to which they lead.
    pub(crate) edges: Vec<Edge>,
}

/// A unit, a namespace or a platform with its objects.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: String,
    pub(crate) title: String,
}

/// A box.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: String,
    /// The groups in which it is, the outer ones first.
    pub(crate) groups: Vec<Rc<Group>>,
    pub(crate) shape: Shape,
    /// None of a host, which nobody judges.
    pub(crate) verdict: Option<Verdict>,
    /// The object.
    pub(crate) object: MappedObject,
    /// What is said of it beside its name and its verdict.
    pub(crate) words: Vec<String>,
}

/// What a box is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An agent, or another object that refers to memory.
    Referrer,
    /// A pod or a workload.
    Pod,
    /// A memory resource.
    Memory,
    /// A memory resource that was not among the inputs.
    Unread,
    /// A host.
    Store,
}

/// A line between two boxes, by their numbers.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) to: usize,
    pub(crate) from: usize,
    pub(crate) crosses: bool,
    pub(crate) lacks_tls: bool,
    /// What a pod sets otherwise by its own variables.
    pub(crate) differs: Option<String>,
}

/// Fails in words where there are too many of something for a picture.
fn expect_few(count: usize, most: usize, of: &str) -> Result<(), String> {
    let why = || format!("the map has {count} {of}, and a picture at most {most}");
    if count > most { Err(why()) } else { Ok(()) }
}

/// The text of the graph of a map.
///
/// # Errors
/// In words, for a map that is too large.
pub(super) fn text(map: &MemoryMap, write: fn(&Graph) -> String) -> Result<String, String> {
    let text = write(&Graph::of(map)?);
    expect_few(text.len(), MAX_TEXT_BYTES, "bytes")?;
    Ok(text)
}

impl Graph {
    /// The graph of a map.
    ///
    /// # Errors
    /// In words, for a map that is too large.
    pub(crate) fn of(map: &MemoryMap) -> Result<Self, String> {
        let items = Items::of(map);
        expect_few(items.all.len(), MAX_BOXES, "boxes")?;
        expect_few(items.edges.len(), MAX_EDGES, "lines")?;
        Ok(items.graph())
    }

    /// Walks over the boxes, and opens and closes their groups.
    pub(crate) fn walk<'g>(&'g self, mut step: impl FnMut(Step<'g>)) {
        let mut open: Vec<&Rc<Group>> = Vec::new();
        for node in &self.nodes {
            let same = open.iter().zip(&node.groups).take_while(|(one, two)| Rc::ptr_eq(one, two)).count();
            for _ in open.drain(same..) {
                step(Step::Close);
            }
            for group in node.groups.iter().skip(same) {
                step(Step::Open(group));
                open.push(group);
            }
            step(Step::Node(node));
        }
        for _ in open {
            step(Step::Close);
        }
    }
}

/// A step of a walk over the boxes.
pub(crate) enum Step<'g> {
    Open(&'g Group),
    Node(&'g Node),
    Close,
}

impl Edge {
    /// The marks, each as the word for programs and the words for people.
    pub(crate) fn marks(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let marks = [
            (self.crosses, ("cross-namespace", "across namespaces")),
            (self.lacks_tls, ("no-tls", "no TLS")),
        ];
        marks.into_iter().filter_map(|(is_set, mark)| is_set.then_some(mark))
    }

    /// The label; empty for a line without one.
    pub(super) fn label(&self) -> String {
        let words = self.marks().map(|(_, words)| words).chain(self.differs.as_deref());
        words.collect::<Vec<_>>().join(", ")
    }
}

impl Node {
    /// The lines of its label.
    pub(super) fn label(&self) -> Vec<String> {
        let MappedObject { namespace, kind, name, .. } = &self.object;
        let first = if self.shape == Shape::Store && !namespace.is_empty() {
            format!("{kind} {name} (namespace {namespace})")
        } else {
            format!("{kind} {name}")
        };
        let verdict = self.verdict.map(Verdict::remark).filter(|words| !words.is_empty()).map(str::to_owned);
        std::iter::once(first).chain(verdict).chain(self.words.iter().cloned()).collect()
    }
}

/// An object or a host of the map.
struct Item<'m> {
    unit: &'m str,
    family: &'static str,
    object: MappedObject,
    shape: Shape,
    verdict: Option<Verdict>,
    words: Vec<String>,
}

impl Item<'_> {
    const fn is_memory(&self) -> bool {
        matches!(self.shape, Shape::Memory | Shape::Unread)
    }
}

/// Everything in a map, with its lines.
struct Items<'m> {
    all: Vec<Item<'m>>,
    edges: Vec<Edge>,
    /// Whether its memory is of several platforms.
    names_families: bool,
}

impl<'m> Items<'m> {
    fn of(map: &'m MemoryMap) -> Self {
        let families: BTreeSet<&str> = map.memories().map(|memory| memory.family).collect();
        let mut items = Self { all: Vec::new(), edges: Vec::new(), names_families: families.len() > 1 };
        map.units.iter().for_each(|unit| items.add(unit));
        items
    }

    fn add(&mut self, unit: &'m UnitMap) {
        let (mut users, mut hosts) = (BTreeMap::new(), BTreeMap::new());
        for memory in &unit.memories {
            let to = self.all.len();
            let shape = match memory.presence {
                Presence::Found | Presence::Undeclared | Presence::Missing => Shape::Memory,
                Presence::Unknown => Shape::Unread,
            };
            let (family, object) = (memory.family, memory.object.clone());
            let (verdict, words) = (Some(unit.verdict_of(memory)), words(memory));
            self.all.push(Item { unit: &unit.unit, family, object, shape, verdict, words });
            for MapLine { user, family, is_pod, crosses, differs } in &memory.users {
                let from = *users.entry((user, *family)).or_insert_with(|| {
                    let shape = if *is_pod { Shape::Pod } else { Shape::Referrer };
                    let (object, verdict, words) = (user.clone(), Some(unit.verdict(user)), Vec::new());
                    self.all.push(Item { unit: &unit.unit, family, object, shape, verdict, words });
                    self.all.len() - 1
                });
                let (crosses, differs) = (*crosses, differs.clone());
                self.edges.push(Edge { to, from, crosses, lacks_tls: false, differs });
            }
            for host in memory.facts.hosts.known() {
                let namespace = memory.namespace_of(host);
                let store = *hosts.entry((namespace, host)).or_insert_with(|| {
                    let [namespace, kind, name] = [namespace, "host", host].map(str::to_owned);
                    let object = MappedObject { namespace, kind, name, group: String::new() };
                    let (shape, words) = (Shape::Store, Vec::new());
                    self.all.push(Item { unit: &unit.unit, family: "", object, shape, verdict: None, words });
                    self.all.len() - 1
                });
                let lacks_tls = memory.lacks_tls;
                self.edges.push(Edge { to: store, from: to, crosses: false, lacks_tls, differs: None });
            }
        }
    }

    /// The order of the boxes: by group and name, hosts last.
    fn order(&self) -> Vec<usize> {
        let key = |item: &Item<'m>| {
            let Item { unit, object, shape, family: own, .. } = item;
            let family = if self.names_families { *own } else { "" };
            let MappedObject { namespace, kind, name, .. } = object.clone();
            ((*unit, *shape == Shape::Store, namespace, family), (kind, name, *own, item.is_memory()))
        };
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_cached_key(|number| self.all.get(*number).map(key));
        order
    }

    fn graph(self) -> Graph {
        let order = self.order();
        let Self { all, mut edges, names_families } = self;
        let place = |number: usize| order.iter().position(|it| *it == number).unwrap_or_default();
        for edge in &mut edges {
            (edge.from, edge.to) = (place(edge.from), place(edge.to));
        }
        let mut all: Vec<Option<Item<'_>>> = all.into_iter().map(Some).collect();
        let mut builder = Builder { ids: Ids::default(), groups: BTreeMap::new(), names_families };
        let items = order.iter().filter_map(|number| all.get_mut(*number)?.take());
        Graph { nodes: items.map(|item| builder.node(item)).collect(), edges: joined(edges) }
    }
}

/// Each line between two boxes once.
fn joined(mut edges: Vec<Edge>) -> Vec<Edge> {
    edges.sort();
    edges.dedup_by(|next, kept| {
        let is_same = (next.from, next.to) == (kept.from, kept.to);
        if is_same {
            kept.crosses |= next.crosses;
            kept.lacks_tls |= next.lacks_tls;
            kept.differs = kept.differs.take().or_else(|| next.differs.take());
        }
        is_same
    });
    edges
}

/// What is said of a memory resource beside its name. A known host has a box of its own.
fn words(memory: &MappedMemory) -> Vec<String> {
    let presence = Some(memory.presence.words()).filter(|words| !words.is_empty()).map(str::to_owned);
    let is_box = |label: &str, fact: &Fact| label == "host" && !fact.known().is_empty();
    let facts = memory.facts.labelled().filter(|(label, fact)| !is_box(label, fact));
    presence.into_iter().chain(facts.map(|(label, fact)| format!("{label}: {fact}"))).collect()
}

/// Makes boxes, with ids and groups.
struct Builder {
    ids: Ids,
    /// By their names, those of the outer ones first.
    groups: BTreeMap<Vec<String>, Rc<Group>>,
    names_families: bool,
}

impl Builder {
    fn node(&mut self, item: Item<'_>) -> Node {
        let Item { unit, family, object, shape, verdict, words } = item;
        let MappedObject { namespace, kind, name, .. } = &object;
        let id = match shape {
            Shape::Store => self.ids.id(&["host", unit, namespace, name]),
            Shape::Memory | Shape::Unread => self.ids.id(&["memory", unit, family, kind, namespace, name]),
            Shape::Referrer | Shape::Pod => self.ids.id(&["user", unit, family, kind, namespace, name]),
        };
        let groups = self.groups(unit, if shape == Shape::Store { "" } else { namespace }, family);
        Node { id, groups, shape, verdict, object, words }
    }

    /// The groups of an object: the unit, the namespace and the platform, as far as there are several.
    fn groups(&mut self, unit: &str, namespace: &str, family: &str) -> Vec<Rc<Group>> {
        let family = if self.names_families && !namespace.is_empty() { family } else { "" };
        let parts = [
            (!unit.is_empty(), "unit", vec![unit]),
            (!namespace.is_empty(), "namespace", vec![unit, namespace]),
            (!family.is_empty(), "platform", vec![unit, namespace, family]),
        ];
        let parts = parts.into_iter().filter(|(is_there, ..)| *is_there);
        parts
            .map(|(_, word, names)| {
                let names: Vec<&str> = std::iter::once(word).chain(names).collect();
                let ids = &mut self.ids;
                let group = self.groups.entry(names.iter().map(|name| (*name).to_owned()).collect());
                let title = format!("{word} {}", names.last().copied().unwrap_or_default());
                Rc::clone(group.or_insert_with(|| Rc::new(Group { id: ids.id(&names), title })))
            })
            .collect()
    }
}

/// A text of at most so many characters: of a longer one its start and its end.
pub(crate) fn middle(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (start, end) = (most / 2, most - most / 2 - 1);
    text.chars().take(start).chain(['…']).chain(text.chars().skip(count - end)).collect()
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
    /// id that no others have; a long id ends with a hash of them. Of other names, an id has a number if an earlier one is
    /// the same.
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
        if base.len() > MAX_ID_BYTES {
            let end = format!("__{}", hash(names));
            base.truncate(MAX_ID_BYTES - end.len());
            base += &end;
        }
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

/// Maps of any size.
#[cfg(test)]
pub(crate) mod samples {
    use super::*;
    use crate::report::map::Facts;

    /// Namespaces, the memory resources of each, and the agents of each of these.
    pub(crate) type Size = [usize; 3];

    /// Sizes of maps with a picture; the last one has sixty boxes.
    pub(crate) const SIZES: [Size; 5] = [[1, 1, 0], [2, 3, 2], [29, 1, 0], [1, 1, 57], [10, 2, 1]];

    /// A map of this size. Each memory resource has a host of its own, its first agent is denied, and the second one is in
    /// the next namespace. All names have this length.
    pub(crate) fn map([namespaces, memories, agents]: Size, length: usize) -> MemoryMap {
        let object = |kind: &str, namespace: usize, name: &str| MappedObject {
            namespace: format!("{:x<length$}", format!("n{}", namespace % namespaces)),
            kind: kind.to_owned(),
            name: format!("{name:x<length$}"),
            group: String::new(),
        };
        let (mut all, mut judged) = (Vec::new(), BTreeMap::new());
        for number in 0..namespaces * memories {
            let user = |agent: usize| {
                let home = number + usize::from(agent == 1);
                MapLine {
                    user: object("Agent", home, &format!("a{number}-{agent}")),
                    crosses: home % namespaces != number % namespaces,
                    ..MapLine::default()
                }
            };
            let users: BTreeSet<MapLine> = (0..agents).map(user).collect();
            judged.extend((0..agents).take(1).map(|agent| (user(agent).user, Verdict::Denied)));
            let hosts = Fact::of([format!("{:x<length$}", format!("h{number}.example.com"))]);
            all.push(MappedMemory {
                object: object("Memory", number, &format!("m{number}")),
                family: "ark",
                facts: Facts { hosts, ..Facts::default() },
                lacks_tls: true,
                users,
                ..MappedMemory::default()
            });
        }
        MemoryMap { units: vec![UnitMap { unit: String::new(), memories: all, judged }] }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{SIZES, map};
    use super::*;
    use crate::report::map::{Facts, dot, mermaid};

    #[test]
    fn a_map_of_sixty_boxes_has_a_graph() {
        for size in SIZES {
            let [namespaces, memories, agents] = size;
            let graph = Graph::of(&map(size, 1)).expect("is small");
            assert_eq!(graph.nodes.len(), namespaces * memories * (2 + agents), "{size:?}");
            for node in &graph.nodes {
                assert_eq!(node.verdict.is_none(), node.shape == Shape::Store, "{node:?}");
            }
        }
    }

    #[test]
    fn a_larger_one_says_what_it_has_too_many_of() {
        for (size, why) in [
            ([61, 1, 0], "has 122 boxes, and a picture at most 60"),
            ([1, 1, 59], "has 61 boxes, and"),
            ([10_000, 1, 1], "has 30000 boxes, and"),
        ] {
            let error = Graph::of(&map(size, 1)).expect_err("is large");
            assert!(error.contains(why), "{error}");
        }
        // Twenty memory resources that all of twenty agents use.
        let mut map = map([1, 20, 0], 1);
        for memory in &mut map.units[0].memories {
            let object = |number: usize| MappedObject { name: number.to_string(), ..MappedObject::default() };
            memory.users =
                (0..20).map(|number| MapLine { user: object(number), ..MapLine::default() }).collect();
        }
        let error = Graph::of(&map).expect_err("has 420 lines");
        assert!(error.contains("has 420 lines, and a picture at most 240"), "{error}");
    }

    #[test]
    fn a_text_that_is_not_drawn_is_too_large() {
        // Twelve memory resources that all of twenty pods use, each with long variables of its own.
        let mut map = map([1, 12, 0], 1);
        for memory in &mut map.units[0].memories {
            memory.facts = Facts::default();
            let line = |number: usize| MapLine {
                user: MappedObject { name: number.to_string(), ..MappedObject::default() },
                differs: Some("\"".repeat(300)),
                ..MapLine::default()
            };
            memory.users = (0..20).map(line).collect();
        }
        assert!(Graph::of(&map).is_ok());
        for write in [dot::write, mermaid::write] {
            let error = text(&map, write).expect_err("is long");
            assert!(error.contains("a picture at most 50000"), "{error}");
        }
    }

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
        let long = ["\u{e4}\"", "a"].map(|text| text.repeat(500));
        let long = long.map(|name| ids.id(&["host", &name]));
        assert_eq!(long.each_ref().map(String::len), [MAX_ID_BYTES; 2]);
        assert_ne!(long[0].rsplit_once("__"), long[1].rsplit_once("__"));
    }

    #[test]
    fn a_long_text_keeps_its_ends() {
        assert_eq!(["abc", "abcd", "abcdefghij"].map(|text| middle(text, 3)), ["abc", "a…d", "a…j"]);
        assert_eq!(middle(&"ä".repeat(253), 30).chars().count(), 30);
    }
}
