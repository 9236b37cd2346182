//! The map as a graph that people can read: objects in namespaces, the hosts of stores, and lines between them. A larger map
//! than one that can be read has none.

use std::collections::{BTreeMap, BTreeSet};

use super::{Fact, MapLine, MappedMemory, MappedObject, MemoryMap, Presence, UnitMap, Verdict};

/// The most boxes.
const MAX_BOXES: usize = 60;

/// The most lines between boxes that can be told apart.
const MAX_EDGES: usize = 240;

/// A graph of all units.
#[derive(Debug)]
pub(crate) struct Graph<'m> {
    /// The boxes: by group and name, hosts last.
    pub(crate) nodes: Vec<Node<'m>>,
    /// The lines, in the order of the boxes to which they lead.
    pub(crate) edges: Vec<Edge>,
    /// Whether its memory is of several platforms.
    names_families: bool,
}

/// A box.
#[derive(Debug)]
pub(crate) struct Node<'m> {
    pub(super) unit: &'m str,
    /// The name of the platform; empty for a pod and a host.
    pub(super) family: &'static str,
    /// The object.
    pub(crate) object: MappedObject,
    pub(crate) shape: Shape,
    /// None of a host, which nobody judges.
    pub(crate) verdict: Option<Verdict>,
    /// What is said of it beside its name and its verdict.
    pub(crate) words: Vec<String>,
}

/// A unit, a namespace or a platform: the word for it, and its name behind those of the outer ones.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group<'g>(pub(super) Vec<&'g str>);

impl Group<'_> {
    pub(crate) fn title(&self) -> String {
        let word_and_name = [self.0.first(), self.0.last()];
        word_and_name.map(|text| text.copied().unwrap_or_default()).join(" ")
    }
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
}

impl<'m> Graph<'m> {
    /// The graph of a map.
    ///
    /// # Errors
    /// In words, for a map that is too large.
    pub(crate) fn of(map: &'m MemoryMap) -> Result<Self, String> {
        let families: BTreeSet<&str> = map.memories().map(|memory| memory.family).collect();
        let mut graph = Self { nodes: Vec::new(), edges: Vec::new(), names_families: families.len() > 1 };
        map.units.iter().for_each(|unit| graph.add(unit));
        for (count, most, of) in
            [(graph.nodes.len(), MAX_BOXES, "boxes"), (graph.edges.len(), MAX_EDGES, "lines")]
        {
            if count > most {
                return Err(format!("the map has {count} {of}, and a picture at most {most}"));
            }
        }
        graph.sort();
        Ok(graph)
    }

    fn add(&mut self, unit: &'m UnitMap) {
        let (mut users, mut hosts) = (BTreeMap::new(), BTreeMap::new());
        for memory in &unit.memories {
            let to = self.nodes.len();
            let shape = match memory.presence {
                Presence::Found | Presence::Undeclared | Presence::Missing => Shape::Memory,
                Presence::Unknown => Shape::Unread,
            };
            let (family, object) = (memory.family, memory.object.clone());
            let (verdict, words) = (Some(unit.verdict_of(memory)), words(memory));
            self.nodes.push(Node { unit: &unit.unit, family, object, shape, verdict, words });
            for MapLine { user, family, is_pod, crosses, .. } in &memory.users {
                let from = *users.entry((user, *family)).or_insert_with(|| {
                    let shape = if *is_pod { Shape::Pod } else { Shape::Referrer };
                    let (object, verdict, words) = (user.clone(), Some(unit.verdict(user)), Vec::new());
                    self.nodes.push(Node { unit: &unit.unit, family, object, shape, verdict, words });
                    self.nodes.len() - 1
                });
                self.edges.push(Edge { to, from, crosses: *crosses, lacks_tls: false });
            }
            for host in memory.facts.hosts.known() {
                let namespace = memory.namespace_of(host);
                let store = *hosts.entry((namespace, host)).or_insert_with(|| {
                    let [namespace, kind, name] = [namespace, "host", host].map(str::to_owned);
                    let object = MappedObject { namespace, kind, name, group: String::new() };
                    let (shape, words) = (Shape::Store, Vec::new());
                    self.nodes.push(Node {
                        unit: &unit.unit,
                        family: "",
                        object,
                        shape,
                        verdict: None,
                        words,
                    });
                    self.nodes.len() - 1
                });
                let lacks_tls = memory.lacks_tls;
                self.edges.push(Edge { to: store, from: to, crosses: false, lacks_tls });
            }
        }
    }

    /// Puts the boxes in order, and joins the lines between the same two.
    fn sort(&mut self) {
        let key = |(_, node): &(usize, Node<'m>)| {
            let Node { unit, family: own, object, shape, .. } = node;
            let family = if self.names_families { *own } else { "" };
            let MappedObject { namespace, kind, name, .. } = object.clone();
            let is_memory = matches!(shape, Shape::Memory | Shape::Unread);
            ((*unit, *shape == Shape::Store, namespace, family), (kind, name, *own, is_memory))
        };
        let mut nodes: Vec<_> = std::mem::take(&mut self.nodes).into_iter().enumerate().collect();
        nodes.sort_by_cached_key(key);
        let place = |number: usize| nodes.iter().position(|(it, _)| *it == number).unwrap_or_default();
        for edge in &mut self.edges {
            (edge.from, edge.to) = (place(edge.from), place(edge.to));
        }
        self.nodes = nodes.into_iter().map(|(_, node)| node).collect();
        self.edges.sort();
        self.edges.dedup_by(|next, kept| {
            let is_same = (next.from, next.to) == (kept.from, kept.to);
            if is_same {
                kept.crosses |= next.crosses;
                kept.lacks_tls |= next.lacks_tls;
            }
            is_same
        });
    }

    /// The groups of a box, the outer ones first: the unit, the namespace and the platform, as far as there are several.
    fn groups<'g>(&self, Node { unit, family, object, shape, .. }: &'g Node<'m>) -> Vec<Group<'g>> {
        let namespace = if *shape == Shape::Store { "" } else { object.namespace.as_str() };
        let has_platform = self.names_families && !namespace.is_empty() && !family.is_empty();
        let groups = [
            (!unit.is_empty(), vec!["unit", unit]),
            (!namespace.is_empty(), vec!["namespace", unit, namespace]),
            (has_platform, vec!["platform", unit, namespace, family]),
        ];
        groups.into_iter().filter_map(|(is_there, names)| is_there.then_some(Group(names))).collect()
    }

    /// Walks over the boxes, and opens and closes their groups.
    pub(crate) fn walk(&self, mut step: impl FnMut(Step<'_>)) {
        let mut open = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let groups = self.groups(node);
            let same = open.iter().zip(&groups).take_while(|(one, two)| one == two).count();
            for _ in open.drain(same..) {
                step(Step::Close);
            }
            for group in groups.into_iter().skip(same) {
                step(Step::Open(&group));
                open.push(group);
            }
            step(Step::Node(number, node));
        }
        for _ in open {
            step(Step::Close);
        }
    }
}

/// A step of a walk over the boxes.
pub(crate) enum Step<'g> {
    Open(&'g Group<'g>),
    /// A box with its number.
    Node(usize, &'g Node<'g>),
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
}

/// What is said of a memory resource beside its name. A known host has a box of its own.
fn words(memory: &MappedMemory) -> Vec<String> {
    let presence = Some(memory.presence.words()).filter(|words| !words.is_empty()).map(str::to_owned);
    let is_box = |label: &str, fact: &Fact| label == "host" && !fact.known().is_empty();
    let facts = memory.facts.labelled().filter(|(label, fact)| !is_box(label, fact));
    presence.into_iter().chain(facts.map(|(label, fact)| format!("{label}: {fact}"))).collect()
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

    #[test]
    fn a_map_of_sixty_boxes_has_a_graph() {
        for size in SIZES {
            let [namespaces, memories, agents] = size;
            let map = map(size, 1);
            let graph = Graph::of(&map).expect("is small");
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
    fn a_long_text_keeps_its_ends() {
        assert_eq!(["abc", "abcd", "abcdefghij"].map(|text| middle(text, 3)), ["abc", "a…d", "a…j"]);
        assert_eq!(middle(&"ä".repeat(253), 30).chars().count(), 30);
    }
}
