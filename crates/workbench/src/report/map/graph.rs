//! The map as a graph that people can read: objects in namespaces, the hosts of stores, and lines between them.
//!
//! It has at most [`MAX_BOXES`] boxes. The objects of a larger map have one box for each namespace; where these are too many,
//! those with the strictest verdicts have one, and the others share one. In a namespace that was asked for, and in a map of
//! one, memory keeps its boxes as far as they fit, and the objects of a kind that use the same memory share one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use super::selection::Part;
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
    /// What is said of it beside its name and its verdict; of a fold, how to see its objects.
    pub(crate) words: Vec<String>,
    /// What a fold stands for.
    pub(crate) fold: Option<Fold>,
    /// Whether it stands for its namespace, which has no group.
    pub(crate) is_alone: bool,
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
    /// The kind, in one namespace, and the memory that they use.
    Alike { namespace: String, kind: String, is_memory: bool },
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
                _ if self.is_alone => self.object.title(),
                _ => format!("{kind} {name}"),
            };
            let verdict = Some(self.verdict.remark()).filter(|words| !words.is_empty()).map(str::to_owned);
            return std::iter::once(first).chain(verdict).chain(self.words.iter().cloned()).collect();
        };
        let own = match fold.of {
            FoldOf::Hosts | FoldOf::Alike { .. } => String::new(),
            FoldOf::Namespace(_) | FoldOf::Rest(_) => format!(": {}", fold.number()),
        };
        let first = fold.name() + &own;
        let verdicts = Some(fold.verdicts(usize::MAX)).filter(|words| !words.is_empty());
        std::iter::once(first).chain(verdicts).chain(self.words.iter().cloned()).collect()
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
            FoldOf::Alike { kind, .. } => format!("{} of kind {kind}", self.number()),
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

impl Item<'_> {
    const fn is_memory(&self) -> bool {
        matches!(self.shape, Shape::Memory | Shape::Unread)
    }

    fn namespace(&self) -> Key<'_> {
        Key::Namespace(&self.set.set, &self.object.namespace)
    }
}

/// Everything in a map, with its lines.
struct Items<'m> {
    part: &'m Part,
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
        let (all, edges, part) = (Vec::new(), Vec::new(), &map.part);
        let mut items = Self { part, all, edges, names_families, has_sets };
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
            let is_memory = item.is_memory();
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
        let Self { part, all, mut edges, names_families, has_sets } = self;
        let (ids, groups) = (Ids::default(), BTreeMap::new());
        let mut builder = Builder { part, ids, groups, names_families, has_sets };
        let nodes = if is_folded {
            let (boxes, places) = fold(all, &edges, part);
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
    /// With whether its namespace shows its objects.
    One(Item<'m>, bool),
    /// The first one, and all.
    Many(Item<'m>, Fold),
}

/// What shares a box.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    /// An item in a box of its own, by its number.
    Own(usize),
    /// The objects of a platform, a kind and a shape that use the same boxes, by set and namespace. Memory uses none.
    Alike([&'a str; 4], &'static str, BTreeSet<usize>),
    /// The objects of a namespace of a set.
    Namespace(&'a str, &'a str),
    /// The objects of all other namespaces.
    Rest,
    Hosts,
}

impl Key<'_> {
    /// Whether it belongs to no set.
    const fn is_common(&self) -> bool {
        matches!(self, Self::Rest | Self::Hosts)
    }
}

/// Gives items their boxes.
struct Sharing<'a, 'm> {
    all: &'a [Item<'m>],
    /// The items that each one uses.
    used: Vec<Vec<usize>>,
    /// Whether an item is in a namespace that shows its objects: in one that was asked for, or in the only one.
    is_inside: Vec<bool>,
}

impl<'a, 'm> Sharing<'a, 'm> {
    fn of(all: &'a [Item<'m>], edges: &[Edge], part: &Part) -> Self {
        let namespaces = || all.iter().filter(|it| it.shape != Shape::Store).map(Item::namespace);
        let is_only = namespaces().next().is_some_and(|first| namespaces().all(|other| other == first));
        let is_inside = |item: &Item<'_>| {
            let is_shown = match part {
                Part::All => is_only,
                Part::Namespaces(names) => names.contains(&item.object.namespace),
                Part::Around => true,
            };
            is_shown && item.shape != Shape::Store
        };
        let mut used = vec![Vec::new(); all.len()];
        for Edge { from, to, .. } in edges {
            used.get_mut(*from).into_iter().for_each(|used| used.push(*to));
        }
        Self { all, used, is_inside: all.iter().map(is_inside).collect() }
    }

    fn items(&self) -> impl Iterator<Item = (usize, &'a Item<'m>, bool)> {
        let all = self.all.iter().zip(&self.is_inside).enumerate();
        all.map(|(number, (item, is_inside))| (number, item, *is_inside))
    }

    /// The key of each item, where these memory resources have boxes of their own. Without any, not even of the others,
    /// objects of a kind share a box whatever they use.
    fn keys_with(&self, own: Option<&[usize]>) -> Vec<Key<'a>> {
        let is_own: BTreeSet<usize> = own.into_iter().flatten().copied().collect();
        let key = |number: usize, item: &'a Item<'m>, is_inside: bool, uses: BTreeSet<usize>| {
            let MappedObject { namespace, kind, .. } = &item.object;
            let shape = match item.shape {
                Shape::Store => return Key::Hosts,
                _ if !is_inside => return item.namespace(),
                _ if is_own.contains(&number) => return Key::Own(number),
                Shape::Memory | Shape::Unread => "memory",
                Shape::Pod => "pod",
                Shape::Referrer | Shape::Fold => "referrer",
            };
            Key::Alike([&*item.set.set, namespace, item.family, kind], shape, uses)
        };
        // Each box by its first item.
        let mut firsts = BTreeMap::new();
        let boxes: Vec<usize> = self
            .items()
            .map(|(number, item, is_inside)| {
                *firsts.entry(key(number, item, is_inside, BTreeSet::new())).or_insert(number)
            })
            .collect();
        let uses = |number: usize, item: &Item<'_>| -> BTreeSet<usize> {
            let used = self.used.get(number).filter(|_| own.is_some() && !item.is_memory());
            used.into_iter().flatten().filter_map(|it| boxes.get(*it).copied()).collect()
        };
        let items = self.items();
        items.map(|(number, item, is_inside)| key(number, item, is_inside, uses(number, item))).collect()
    }

    /// The key of each item: inside, as many memory resources as fit have boxes of their own, those with the strictest
    /// verdicts and the most users first.
    fn keys(&mut self) -> Vec<Key<'a>> {
        let mut users = vec![0_usize; self.all.len()];
        for used in self.used.iter().flatten() {
            users.get_mut(*used).into_iter().for_each(|count| *count += 1);
        }
        let memories = self.items().filter(|(_, item, is_inside)| *is_inside && item.is_memory());
        let mut ranked: Vec<_> =
            memories.map(|(number, item, _)| (Reverse((item.verdict, users.get(number))), number)).collect();
        ranked.sort();
        let ranked: Vec<usize> = ranked.into_iter().map(|(_, number)| number).take(MAX_BOXES).collect();
        let is_object = |item: &Item<'_>| item.shape != Shape::Store;
        let others = self.items().filter(|(_, item, is_inside)| !is_inside && is_object(item));
        let others = others.map(|(_, item, _)| item.namespace()).collect::<BTreeSet<_>>().len();
        let has_hosts = self.all.iter().any(|item| !is_object(item));
        let room = MAX_BOXES - usize::from(has_hosts) - others.min(MAX_BOXES / 3);
        let fits = |own: Option<usize>| {
            let keys = self.keys_with(own.and_then(|own| ranked.get(..own)));
            let inside = keys.iter().zip(&self.is_inside).filter(|(_, is_inside)| **is_inside);
            inside.map(|(key, _)| key).collect::<BTreeSet<_>>().len() <= room
        };
        let mut own = None;
        if fits(Some(0)) {
            let (mut least, mut most) = (0, ranked.len());
            while least < most {
                let middle = least + (most - least).div_ceil(2);
                if fits(Some(middle)) {
                    least = middle;
                } else {
                    most = middle - 1;
                }
            }
            own = ranked.get(..least);
        } else if !fits(None) {
            self.is_inside.fill(false);
        }
        self.keys_with(own)
    }
}

/// Puts objects into boxes, and returns the box of each item.
fn fold<'m>(all: Vec<Item<'m>>, edges: &[Edge], part: &Part) -> (Vec<Folded<'m>>, Vec<usize>) {
    let mut sharing = Sharing::of(&all, edges, part);
    let mut keys = sharing.keys();
    let is_inside = sharing.is_inside;
    let mut folds: BTreeMap<&Key<'_>, Fold> = BTreeMap::new();
    for (key, item) in keys.iter().zip(&all) {
        folds.entry(key).or_insert_with(|| Fold::new(FoldOf::Hosts)).add(item.verdict);
    }
    let hosts = folds.remove(&Key::Hosts).map_or(0, |fold| fold.count);
    // Hosts have boxes of their own if there is room for all of them.
    let folds_hosts = folds.len() + hosts > MAX_BOXES && hosts > 1;
    let (mut namespaces, others): (Vec<_>, Vec<_>) =
        folds.iter().partition(|(key, _)| matches!(key, Key::Namespace(..)));
    let (count, room) = (namespaces.len(), (MAX_BOXES - hosts.min(1)).saturating_sub(others.len()));
    if count > room {
        namespaces.sort_by_key(|(_, fold)| Reverse((fold.verdicts, fold.count)));
        namespaces.truncate(room.saturating_sub(1));
    }
    let rest = count - namespaces.len();
    let with_box: BTreeSet<Key<'_>> = namespaces.into_iter().map(|(key, _)| (*key).clone()).collect();
    let alone = folds.iter().filter(|(_, fold)| fold.count == 1).map(|(key, _)| (*key).clone());
    let alone: BTreeSet<Key<'_>> = alone.collect();
    for (number, key) in keys.iter_mut().enumerate() {
        if matches!(key, Key::Namespace(..)) && !with_box.contains(key) {
            *key = Key::Rest;
        } else if if *key == Key::Hosts { !folds_hosts } else { alone.contains(key) } {
            *key = Key::Own(number);
        }
    }
    // What belongs to no set comes last.
    let (of_sets, common): (Vec<_>, Vec<_>) = keys.iter().partition(|key| !key.is_common());
    let mut places: BTreeMap<&Key<'_>, usize> = BTreeMap::new();
    for key in of_sets.into_iter().chain(common) {
        let next = places.len();
        places.entry(key).or_insert(next);
    }
    let of = |key: &Key<'_>| match key {
        Key::Own(_) => None,
        Key::Alike([_, namespace, _, kind], shape, _) => Some(FoldOf::Alike {
            namespace: (*namespace).to_owned(),
            kind: (*kind).to_owned(),
            is_memory: *shape == "memory",
        }),
        Key::Namespace(_, namespace) => Some(FoldOf::Namespace((*namespace).to_owned())),
        Key::Rest => Some(FoldOf::Rest(rest)),
        Key::Hosts => Some(FoldOf::Hosts),
    };
    let mut boxes: Vec<Option<Folded<'m>>> = Vec::new();
    boxes.resize_with(places.len(), || None);
    let folds: Vec<Option<FoldOf>> = {
        let mut sorted: Vec<_> = places.iter().collect();
        sorted.sort_by_key(|(_, place)| **place);
        sorted.into_iter().map(|(key, _)| of(key)).collect()
    };
    let places: Vec<usize> = keys.iter().filter_map(|key| places.get(key).copied()).collect();
    drop(keys);
    for ((item, place), is_inside) in all.into_iter().zip(&places).zip(is_inside) {
        let verdict = item.verdict;
        let Some(one) = boxes.get_mut(*place) else { continue };
        let one = one.get_or_insert_with(|| match folds.get(*place).cloned().flatten() {
            Some(of) => Folded::Many(item, Fold::new(of)),
            None => Folded::One(item, is_inside),
        });
        if let Folded::Many(_, fold) = one {
            fold.add(verdict);
        }
    }
    (boxes.into_iter().flatten().collect(), places)
}

/// Makes boxes, with ids and groups.
struct Builder<'m> {
    part: &'m Part,
    ids: Ids,
    /// By their names, those of the outer ones first.
    groups: BTreeMap<Vec<String>, Rc<Group>>,
    names_families: bool,
    has_sets: bool,
}

impl Builder<'_> {
    fn node_of(&mut self, folded: Folded<'_>) -> Node {
        let (Item { set, object, family, .. }, fold) = match folded {
            Folded::One(item, is_inside) => return self.node(item, is_inside),
            Folded::Many(first, fold) => (first, fold),
        };
        let (set, none) = (&*set.set, MappedObject::default());
        let (id, groups) = match &fold.of {
            FoldOf::Alike { namespace, kind, .. } => {
                (self.ids.id(&["kind", set, family, kind, namespace]), self.groups(set, &object, family))
            }
            FoldOf::Namespace(name) => (self.ids.id(&["namespace", set, name]), self.groups(set, &none, "")),
            FoldOf::Rest(_) => (self.ids.id(&["namespaces"]), Vec::new()),
            FoldOf::Hosts => (self.ids.id(&["hosts"]), Vec::new()),
        };
        let (shape, verdict, words) = (Shape::Fold, fold.strictest(), vec![self.how(&fold.of)]);
        Node { id, groups, shape, verdict, object: none, words, fold: Some(fold), is_alone: false }
    }

    /// How to see the objects of a box: never by what made this map.
    fn how(&self, of: &FoldOf) -> String {
        const LIST: &str = "-o text lists them";
        match (of, self.part) {
            (FoldOf::Namespace(name), Part::All) if name.is_empty() => "--around KIND/NAME".to_owned(),
            (FoldOf::Namespace(name), Part::All | Part::Around) if !name.is_empty() => {
                format!("--namespace {name}")
            }
            (FoldOf::Namespace(name), Part::Namespaces(names)) if !names.contains(name) => {
                if name.is_empty() { LIST.to_owned() } else { format!("--namespace {name}") }
            }
            (FoldOf::Alike { namespace, .. }, Part::All) if !namespace.is_empty() => {
                format!("--namespace {namespace} {LIST}")
            }
            (FoldOf::Rest(_) | FoldOf::Hosts, Part::All) => "--namespace NS".to_owned(),
            _ => LIST.to_owned(),
        }
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
        let (none, is_alone) = (MappedObject::default(), !is_in_namespace && shape != Shape::Store);
        let is_inside = is_in_namespace && shape != Shape::Store;
        let groups = self.groups(&set.set, if is_inside { &object } else { &none }, family);
        Node { id, groups, shape, verdict, object, words, fold: None, is_alone }
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
        MemoryMap { sets: vec![SetMap { set: String::new(), memories: all, judged }], part: Part::All }
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
            // Agents are denied, memory is not.
            let has_agents =
                |fold: &Fold| !matches!(fold.of, FoldOf::Hosts | FoldOf::Alike { is_memory: true, .. });
            for node in graph.nodes.iter().filter(|node| node.fold.as_ref().is_some_and(has_agents)) {
                assert_eq!(node.verdict, Verdict::Denied, "{node:?}");
            }
        }
    }

    /// In one namespace, memory has boxes of its own as far as they fit.
    #[test]
    fn objects_with_the_same_memory_share_a_box() {
        let label = |graph: &Graph| graph.nodes.iter().map(Node::label).collect::<Vec<_>>();
        let mut map = map([1, 1, 10_000], 1);
        let graph = Graph::of(&map);
        let users = ["10000 objects of kind Agent", "1 denied", "--namespace n0 -o text lists them"];
        assert_eq!(label(&graph), [&users[..], &["Memory m0"], &["host h0.example.com"]]);
        assert_eq!(graph.nodes[0].groups.len(), 1);
        assert_eq!(graph.edges.len(), 2);
        map.keep_namespaces(&BTreeSet::from(["n0".to_owned()]));
        assert_eq!(label(&Graph::of(&map))[0][2], "-o text lists them");
        // Six memory resources with ten users each, of which one is in the next namespace.
        let mut map = samples::map([12, 6, 10], 1);
        map.keep_namespaces(&BTreeSet::from(["n3".to_owned()]));
        let graph = Graph::of(&map);
        let count = |start: &str| label(&graph).iter().filter(|lines| lines[0].starts_with(start)).count();
        assert_eq!(
            ["Memory m", "9 objects of kind Agent", "namespace n2", "Agent n4/"].map(count),
            [6, 6, 1, 0],
            "{:?}",
            label(&graph)
        );
    }

    #[test]
    fn more_memory_than_fits_shares_a_box() {
        let graph = Graph::of(&map([1, 1_000, 2], 1));
        assert!((50..=MAX_BOXES).contains(&graph.nodes.len()), "{}", graph.nodes.len());
        let memories = graph.nodes.iter().filter(|node| node.shape == Shape::Memory).count();
        assert!(memories > 20, "{memories}");
        let kinds = graph.nodes.iter().filter_map(|node| Some(&node.fold.as_ref()?.of));
        let rest = FoldOf::Alike { namespace: "n0".to_owned(), kind: "Memory".to_owned(), is_memory: true };
        assert_eq!(kinds.filter(|of| **of == rest).count(), 1);
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
