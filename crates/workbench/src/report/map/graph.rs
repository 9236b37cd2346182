//! The map as a graph that people can read: objects in namespaces, the hosts of stores, and lines between them.
//!
//! It has at most [`MAX_BOXES`] boxes. The objects of a larger map have one box for each namespace; where these are too many,
//! those with the strictest verdicts have one, and the others share one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use super::{Fact, MapLine, MappedMemory, MappedObject, MemoryMap, Presence, SetMap, Verdict};
use crate::report::counted;
use crate::report::fingerprint::hash;

/// The most boxes.
pub(crate) const MAX_BOXES: usize = 60;

/// The most lines between boxes that can be told apart.
const MAX_EDGES: usize = 240;

/// The most lines of the text of a graph: GitHub and GitLab draw up to so many edges.
const MAX_TEXT_LINES: usize = 500;

/// The most bytes of the text of a graph that GitHub and GitLab draw.
const MAX_TEXT_BYTES: usize = 50_000;

/// The most bytes of a label in the text of a graph.
pub(super) const MAX_LABEL_BYTES: usize = 280;

/// The most bytes of an id: the names of most objects together have fewer.
const MAX_ID_BYTES: usize = 64;

/// A graph of all sets.
#[derive(Debug)]
pub(crate) struct Graph {
    /// The boxes, by group.
    pub(crate) nodes: Vec<Node>,
    /// The lines, in the order of the boxes to which they lead.
    pub(crate) edges: Vec<Edge>,
    /// How many lines have no room.
    pub(crate) left_out: usize,
    /// Whether a box may stand for several objects.
    pub(crate) is_folded: bool,
}

/// A set, a namespace or a platform with its objects.
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
    pub(crate) verdict: Verdict,
    /// The object; without a name for a fold.
    pub(crate) object: MappedObject,
    /// What is said of it beside its name and its verdict.
    pub(crate) words: Vec<String>,
    /// What a fold stands for.
    pub(crate) fold: Option<Fold>,
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
    /// Several objects.
    Fold,
}

/// Several objects in one box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fold {
    /// How many there are.
    pub(crate) count: usize,
    /// How many have each verdict, the strictest first.
    pub(crate) verdicts: [usize; Verdict::ALL.len()],
    /// What they have in common.
    pub(crate) of: FoldOf,
}

/// What the objects in one box have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoldOf {
    /// The namespace; empty for objects without one.
    Namespace(String),
    /// They are in so many other namespaces.
    Rest(usize),
    /// They are hosts.
    Hosts,
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

/// The text of a graph within its limits, and whether a box may stand for several objects.
pub(super) fn bounded(map: &MemoryMap, write: impl Fn(&Graph) -> String) -> (String, bool) {
    let is_large = |text: &str| text.len() > MAX_TEXT_BYTES || text.lines().count() > MAX_TEXT_LINES;
    let mut graph = Graph::of(map);
    let mut text = write(&graph);
    if is_large(&text) && !graph.is_folded {
        graph = Items::of(map).graph(true);
        text = write(&graph);
    }
    while is_large(&text) && !graph.edges.is_empty() {
        graph.keep_edges(graph.edges.len() / 2);
        text = write(&graph);
    }
    (text, graph.is_folded)
}

impl Graph {
    /// The graph of a map.
    pub(crate) fn of(map: &MemoryMap) -> Self {
        let items = Items::of(map);
        let is_folded = items.all.len() > MAX_BOXES || items.edges.len() > MAX_EDGES;
        items.graph(is_folded)
    }

    /// Leaves out lines without a mark first.
    fn keep_edges(&mut self, most: usize) {
        if self.edges.len() > most {
            self.edges.sort_by_key(|edge| Reverse(edge.marks().count()));
            self.left_out += self.edges.len() - most;
            self.edges.truncate(most);
            self.edges.sort();
        }
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
        let Some(fold) = &self.fold else {
            let MappedObject { namespace, kind, name, .. } = &self.object;
            let first = match (self.shape, namespace.as_str()) {
                (Shape::Store, namespace) if !namespace.is_empty() => {
                    format!("{kind} {name} (namespace {namespace})")
                }
                _ => format!("{kind} {name}"),
            };
            let verdict = Some(self.verdict.remark()).filter(|words| !words.is_empty()).map(str::to_owned);
            return std::iter::once(first).chain(verdict).chain(self.words.iter().cloned()).collect();
        };
        let own = if fold.of == FoldOf::Hosts { String::new() } else { format!(": {}", fold.number()) };
        let first = fold.name() + &own;
        let how = match &fold.of {
            FoldOf::Namespace(name) if name.is_empty() => "--around KIND/NAME".to_owned(),
            FoldOf::Namespace(name) => format!("--namespace {name}"),
            FoldOf::Rest(_) | FoldOf::Hosts => "--namespace NS".to_owned(),
        };
        let verdicts = Some(fold.verdicts(usize::MAX)).filter(|words| !words.is_empty());
        std::iter::once(first).chain(verdicts).chain([how]).collect()
    }
}

impl Fold {
    fn new(of: FoldOf) -> Self {
        Self { count: 0, verdicts: [0; Verdict::ALL.len()], of }
    }

    /// What it stands for, in words.
    pub(crate) fn name(&self) -> String {
        match &self.of {
            FoldOf::Namespace(name) if name.is_empty() => "without a namespace".to_owned(),
            FoldOf::Namespace(name) => format!("namespace {name}"),
            FoldOf::Rest(1) => "1 more namespace".to_owned(),
            FoldOf::Rest(count) => format!("{count} more namespaces"),
            FoldOf::Hosts => self.number(),
        }
    }

    /// How many there are, in words.
    pub(crate) fn number(&self) -> String {
        counted(self.count, if self.of == FoldOf::Hosts { "host" } else { "object" })
    }

    /// How many are denied and so on: so many of the verdicts, the strictest first.
    pub(crate) fn verdicts(&self, most: usize) -> String {
        let all = Verdict::ALL.into_iter().zip(self.verdicts);
        let found = all.filter(|(verdict, count)| *count > 0 && *verdict != Verdict::Clean);
        let words = found.take(most).map(|(verdict, count)| format!("{count} {}", verdict.words()));
        words.collect::<Vec<_>>().join(", ")
    }

    fn add(&mut self, verdict: Verdict) {
        self.count += 1;
        let all = Verdict::ALL.iter().zip(&mut self.verdicts);
        all.filter(|(it, _)| **it == verdict).for_each(|(_, count)| *count += 1);
    }

    /// The strictest verdict.
    fn strictest(&self) -> Verdict {
        let mut all = Verdict::ALL.into_iter().zip(self.verdicts);
        all.find(|(_, count)| *count > 0).map_or(Verdict::Clean, |(verdict, _)| verdict)
    }
}

/// An object or a host of the map.
struct Item<'m> {
    set: &'m SetMap,
    family: &'static str,
    object: MappedObject,
    shape: Shape,
    verdict: Verdict,
    words: Vec<String>,
}

/// Everything in a map, with its lines.
struct Items<'m> {
    all: Vec<Item<'m>>,
    edges: Vec<Edge>,
    /// Whether its memory is of several platforms.
    names_families: bool,
    has_sets: bool,
}

impl<'m> Items<'m> {
    fn of(map: &'m MemoryMap) -> Self {
        let memories = || map.sets.iter().flat_map(|set| &set.memories);
        let families: BTreeSet<&str> = memories().map(|memory| memory.family).collect();
        let (names_families, has_sets) = (families.len() > 1, map.sets.iter().any(|set| !set.set.is_empty()));
        let mut items = Self { all: Vec::new(), edges: Vec::new(), names_families, has_sets };
        map.sets.iter().for_each(|set| items.add(set));
        items.sort();
        items
    }

    fn add(&mut self, set: &'m SetMap) {
        let (mut users, mut hosts) = (BTreeMap::new(), BTreeMap::new());
        for memory in &set.memories {
            let to = self.all.len();
            let shape = match memory.presence {
                Presence::Found | Presence::Undeclared | Presence::Missing => Shape::Memory,
                Presence::Unknown => Shape::Unread,
            };
            let (family, object) = (memory.family, memory.object.clone());
            let (verdict, words) = (set.verdict_of(memory), words(memory));
            self.all.push(Item { set, family, object, shape, verdict, words });
            for MapLine { user, family, is_pod, crosses, differs } in &memory.users {
                let from = *users.entry((user, *family)).or_insert_with(|| {
                    let shape = if *is_pod { Shape::Pod } else { Shape::Referrer };
                    let (object, verdict) = (user.clone(), set.verdict(user));
                    self.all.push(Item { set, family, object, shape, verdict, words: Vec::new() });
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
                    let (shape, verdict, words) = (Shape::Store, Verdict::Clean, Vec::new());
                    self.all.push(Item { set, family: "", object, shape, verdict, words });
                    self.all.len() - 1
                });
                let lacks_tls = memory.lacks_tls;
                self.edges.push(Edge { to: store, from: to, crosses: false, lacks_tls, differs: None });
            }
        }
    }

    /// Sorts the items by group and name, hosts last.
    fn sort(&mut self) {
        let names_families = self.names_families;
        let key = |item: &Item<'m>| {
            let family = if names_families { item.family } else { "" };
            let Item { set, object, shape, family: own, .. } = item;
            let is_memory = matches!(shape, Shape::Memory | Shape::Unread);
            let MappedObject { namespace, kind, name, .. } = object;
            (
                (&*set.set, *shape == Shape::Store, namespace.clone(), family),
                (kind.clone(), name.clone(), *own, is_memory),
            )
        };
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_cached_key(|number| self.all.get(*number).map(key));
        let places = places(&order);
        let mut all: Vec<(usize, Item<'m>)> =
            places.iter().copied().zip(std::mem::take(&mut self.all)).collect();
        all.sort_by_key(|(place, _)| *place);
        self.all = all.into_iter().map(|(_, item)| item).collect();
        move_ends(&mut self.edges, &places);
    }

    /// The graph: each item in a box of its own, or those of a namespace in one.
    fn graph(self, is_folded: bool) -> Graph {
        let Self { all, mut edges, names_families, has_sets } = self;
        let mut builder = Builder { ids: Ids::default(), groups: BTreeMap::new(), names_families, has_sets };
        let nodes = if is_folded {
            let (boxes, places) = fold(all);
            move_ends(&mut edges, &places);
            boxes.into_iter().map(|one| builder.node_of(one)).collect()
        } else {
            all.into_iter().map(|item| builder.node(item, true)).collect()
        };
        let mut graph = Graph { nodes, edges: joined(edges), left_out: 0, is_folded };
        graph.keep_edges(MAX_EDGES);
        graph
    }
}

/// For each number, its place in an order.
fn places(order: &[usize]) -> Vec<usize> {
    let mut places = vec![0; order.len()];
    for (place, number) in order.iter().enumerate() {
        if let Some(it) = places.get_mut(*number) {
            *it = place;
        }
    }
    places
}

fn move_ends(edges: &mut [Edge], places: &[usize]) {
    let place = |number: usize| places.get(number).copied().unwrap_or_default();
    for edge in edges {
        (edge.from, edge.to) = (place(edge.from), place(edge.to));
    }
}

/// Each line between two boxes once, without those inside of one.
fn joined(mut edges: Vec<Edge>) -> Vec<Edge> {
    edges.retain(|edge| edge.from != edge.to);
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

/// One item, or several.
enum Folded<'m> {
    One(Item<'m>),
    Many { set: Option<&'m SetMap>, fold: Fold },
}

/// Identifies what shares a box: the set and the namespace; all hosts of a set are one.
type Share = (String, Option<String>);

fn share(item: &Item<'_>) -> Share {
    let namespace = (item.shape != Shape::Store).then(|| item.object.namespace.clone());
    (item.set.set.clone(), namespace)
}

/// Puts the objects of each namespace into one box, and returns the box of each item.
fn fold(all: Vec<Item<'_>>) -> (Vec<Folded<'_>>, Vec<usize>) {
    let mut folds: BTreeMap<Share, Fold> = BTreeMap::new();
    for item in &all {
        let of = || Fold::new(FoldOf::Namespace(item.object.namespace.clone()));
        folds.entry(share(item)).or_insert_with(of).add(item.verdict);
    }
    let hosts: usize = folds.iter().filter(|((_, it), _)| it.is_none()).map(|(_, fold)| fold.count).sum();
    folds.retain(|(_, namespace), _| namespace.is_some());
    // Hosts have boxes of their own if there is room for all of them.
    let folds_hosts = folds.len() + hosts > MAX_BOXES && hosts > 1;
    let room = MAX_BOXES - hosts.min(1);
    let mut own: Vec<(&Share, &Fold)> = folds.iter().collect();
    if own.len() > room {
        own.sort_by_key(|(_, fold)| Reverse((fold.verdicts, fold.count)));
        own.truncate(room - 1);
    }
    let own: BTreeSet<Share> = own.into_iter().map(|(share, _)| share.clone()).collect();
    let rest = folds.len() - own.len();
    let mut boxes: Vec<Folded<'_>> = Vec::new();
    let (mut places, mut of_share) = (Vec::with_capacity(all.len()), BTreeMap::<Option<Share>, usize>::new());
    for item in all {
        let (set, verdict, share) = (item.set, item.verdict, share(&item));
        let is_own = own.contains(&share);
        let is_host = share.1.is_none();
        let is_alone = folds.get(&share).is_none_or(|fold| fold.count == 1);
        let mut place = boxes.len();
        if if is_host { !folds_hosts } else { is_own && is_alone } {
            boxes.push(Folded::One(item));
        } else {
            let (set, of) = match &share.1 {
                None => (None, FoldOf::Hosts),
                Some(namespace) if is_own => (Some(set), FoldOf::Namespace(namespace.clone())),
                Some(_) => (None, FoldOf::Rest(rest)),
            };
            let key = match of {
                FoldOf::Hosts => Some((String::new(), None)),
                FoldOf::Namespace(_) => Some(share),
                FoldOf::Rest(_) => None,
            };
            place = *of_share.entry(key).or_insert(place);
            if place == boxes.len() {
                boxes.push(Folded::Many { set, fold: Fold::new(of) });
            }
            if let Some(Folded::Many { fold, .. }) = boxes.get_mut(place) {
                fold.add(verdict);
            }
        }
        places.push(place);
    }
    // What belongs to no set comes last.
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    order.sort_by_key(|number| matches!(boxes.get(*number), Some(Folded::Many { set: None, .. })));
    let moved = self::places(&order);
    let mut sorted: Vec<(usize, Folded<'_>)> = moved.iter().copied().zip(boxes).collect();
    sorted.sort_by_key(|(place, _)| *place);
    let places = places.into_iter().map(|it| moved.get(it).copied().unwrap_or_default()).collect();
    (sorted.into_iter().map(|(_, one)| one).collect(), places)
}

/// Makes boxes, with ids and groups.
struct Builder {
    ids: Ids,
    /// By their names, those of the outer ones first.
    groups: BTreeMap<Vec<String>, Rc<Group>>,
    names_families: bool,
    has_sets: bool,
}

impl Builder {
    fn node_of(&mut self, folded: Folded<'_>) -> Node {
        let (set, fold) = match folded {
            Folded::One(item) => return self.node(item, false),
            Folded::Many { set, fold } => (set, fold),
        };
        let set = set.map_or("", |set| &*set.set);
        let id = match &fold.of {
            FoldOf::Namespace(name) => self.ids.id(&["namespace", set, name]),
            FoldOf::Rest(_) => self.ids.id(&["namespaces"]),
            FoldOf::Hosts => self.ids.id(&["hosts"]),
        };
        let groups = if set.is_empty() { Vec::new() } else { self.groups(set, &MappedObject::default(), "") };
        let (shape, verdict) = (Shape::Fold, fold.strictest());
        let (object, words) = (MappedObject::default(), Vec::new());
        Node { id, groups, shape, verdict, object, words, fold: Some(fold) }
    }

    fn node(&mut self, item: Item<'_>, is_in_namespace: bool) -> Node {
        let Item { set, family, object, shape, verdict, words } = item;
        let MappedObject { namespace, kind, name, .. } = &object;
        let id = match shape {
            Shape::Store => self.ids.id(&["host", &set.set, namespace, name]),
            Shape::Memory | Shape::Unread => {
                self.ids.id(&["memory", &set.set, family, kind, namespace, name])
            }
            _ => self.ids.id(&["user", &set.set, family, kind, namespace, name]),
        };
        let none = MappedObject::default();
        let is_inside = is_in_namespace && shape != Shape::Store;
        let groups = self.groups(&set.set, if is_inside { &object } else { &none }, family);
        Node { id, groups, shape, verdict, object, words, fold: None }
    }

    /// The groups of an object: the set, the namespace and the platform, as far as there are several.
    fn groups(
        &mut self,
        set: &str,
        MappedObject { namespace, .. }: &MappedObject,
        family: &str,
    ) -> Vec<Rc<Group>> {
        let family = if self.names_families && !namespace.is_empty() { family } else { "" };
        let parts = [
            (self.has_sets && !set.is_empty(), "set", vec![set]),
            (!namespace.is_empty(), "namespace", vec![set, namespace]),
            (!family.is_empty(), "platform", vec![set, namespace, family]),
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

    pub(crate) const SIZES: [Size; 10] = [
        [1, 1, 0],
        [2, 3, 2],
        [58, 1, 0],
        [1, 1, 59],
        [1, 30, 1],
        [1, 1, 10_000],
        [100, 10, 9],
        [10_000, 1, 1],
        [59, 2, 1],
        [60, 2, 1],
    ];

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
        MemoryMap { sets: vec![SetMap { set: String::new(), memories: all, judged }] }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{SIZES, map};
    use super::*;
    use crate::report::map::{dot, mermaid};

    #[test]
    fn a_graph_of_any_size_keeps_its_limits() {
        for size in SIZES {
            for (length, is_other) in [(1, false), (253, false), (253, true)] {
                let mut map = map(size, length);
                if is_other {
                    // Letters that are escaped, and a platform and a set for each memory resource.
                    let families = ["ark", "arkonis", "kagent", "orka", "orloj", "sympozium"];
                    let memories = map.sets.pop().expect("a set").memories.into_iter();
                    map.sets = memories
                        .zip(families.into_iter().cycle())
                        .enumerate()
                        .map(|(number, (mut memory, family))| {
                            memory.family = family;
                            memory.object.name = "\u{10ffff}&".repeat(120);
                            let set = format!("{number}{}", "\"<".repeat(120));
                            SetMap { set, memories: vec![memory], judged: BTreeMap::new() }
                        })
                        .collect();
                }
                for write in [dot::write, mermaid::write] {
                    let (text, is_folded) = bounded(&map, write);
                    let graph = Graph::of(&map);
                    let lines = text.lines().count();
                    assert!(
                        text.len() <= MAX_TEXT_BYTES && lines <= MAX_TEXT_LINES,
                        "{size:?}: {lines}\n{text}"
                    );
                    assert!((1..=MAX_BOXES).contains(&graph.nodes.len()), "{size:?}: {}", graph.nodes.len());
                    assert_eq!(is_folded, text.contains("--namespace n") || text.contains("--namespace NS"));
                    assert!(graph.edges.len() <= MAX_EDGES, "{size:?}: {}", graph.edges.len());
                }
            }
        }
    }

    #[test]
    fn a_box_for_several_says_how_many_and_how_to_see_them() {
        let map = map([10, 10, 2], 1);
        for (text, forms) in [
            (
                bounded(&map, dot::write).0,
                ["class=\"denied\"", "label=\"namespace n3: 30 objects\\n10 denied\\n--namespace n3\""],
            ),
            (
                bounded(&map, mermaid::write).0,
                ["class namespace__n3 denied", "[[\"namespace n3: 30 objects, 10 denied, --namespace n3\"]]"],
            ),
        ] {
            for form in forms.into_iter().chain(["across namespaces", "no TLS"]) {
                assert!(text.contains(form), "{form}\n{text}");
            }
        }
    }

    /// The members of all boxes are all objects and hosts, and each box has the strictest verdict of its members.
    #[test]
    fn no_object_is_lost() {
        for size in SIZES {
            let [namespaces, memories, agents] = size;
            let graph = Graph::of(&map(size, 1));
            let count = |node: &Node| node.fold.as_ref().map_or(1, |fold| fold.count);
            let all = graph.nodes.iter().map(count).sum::<usize>();
            assert_eq!(all, namespaces * memories * (2 + agents), "{size:?}");
            for node in
                graph.nodes.iter().filter(|node| matches!(&node.fold, Some(it) if it.of != FoldOf::Hosts))
            {
                assert_eq!(node.verdict, Verdict::Denied, "{node:?}");
            }
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
