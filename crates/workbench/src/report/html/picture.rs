//! The picture of the map, as inline SVG: users at the left, memory in the middle, hosts at the right, in frames for sets,
//! namespaces and platforms.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use maud::{Markup, html};

use super::tables::namespace_word;
use crate::report::map::graph::{Edge, Fold, FoldOf, Graph, Group, Node, Shape, Step, middle};
use crate::report::map::{MappedObject, MemoryMap, Verdict};
use crate::report::percent_encoded;

/// The width of a picture, and the left edges of the columns of boxes.
const WIDTH: usize = 1180;
const COLUMNS: [usize; 3] = [24, 456, 884];

/// The size of a box, and the distance to the next one.
const BOX: [usize; 2] = [290, 40];
const GAP: usize = 10;
const STEP: usize = BOX[1] + GAP;

/// The right edge of a frame, the height of its title, and how much smaller one inside of it is at each side.
const FRAME: usize = 764;
const TITLE: usize = 24;
const INSET: usize = 6;

/// The most characters in a box, in its second line, and in the title of a frame.
const MAX_CHARS: usize = 58;
const MAX_SECOND: usize = 34;

/// The most characters of an end of a line.
const MAX_END: usize = 120;

/// Where a box is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    column: usize,
    top: usize,
}

/// A frame around boxes.
struct Frame<'g> {
    title: &'g str,
    depth: usize,
    top: usize,
    bottom: usize,
}

/// The places of all boxes and frames.
struct Layout<'g> {
    places: Vec<Place>,
    frames: Vec<Frame<'g>>,
    height: usize,
}

/// The picture of a map.
pub(super) fn picture(map: &MemoryMap) -> Markup {
    draw(&Graph::of(map))
}

/// The kind with the namespace and the name, or what a fold stands for.
fn title(node: &Node) -> String {
    node.fold.as_ref().map_or_else(|| node.object.title(), Fold::name)
}

/// The column of a box.
fn column(node: &Node) -> usize {
    match (node.shape, node.fold.as_ref().map(|fold| &fold.of)) {
        (Shape::Store, _) | (_, Some(FoldOf::Hosts)) => 2,
        (Shape::Referrer | Shape::Pod, _) if !node.is_alone => 0,
        (_, Some(FoldOf::Alike { is_memory: false, .. })) => 0,
        _ => 1,
    }
}

/// Puts boxes below one another, those of a group inside of a frame.
struct Placing<'g> {
    layout: Layout<'g>,
    /// How many columns the boxes in the middle have from the left on, where there are no users; else 0.
    spread: usize,
    /// The boxes of the open group, for each of the first two columns.
    row: [Vec<usize>; 2],
    open: Vec<usize>,
    top: usize,
}

impl<'g> Placing<'g> {
    fn open(&mut self, group: &'g Group) {
        self.put_row(&BTreeMap::new());
        let (depth, top) = (self.open.len(), self.top);
        self.open.push(self.layout.frames.len());
        self.layout.frames.push(Frame { title: &group.title, depth, top, bottom: top });
        self.top += TITLE;
    }

    fn close(&mut self) {
        if let Some(frame) = self.open.pop().and_then(|number| self.layout.frames.get_mut(number)) {
            frame.bottom = self.top;
            self.top += GAP;
        }
    }

    /// Places the boxes that wait, users in the order of what they use.
    fn put_row(&mut self, first_use: &BTreeMap<usize, usize>) {
        let [users, memories] = &mut self.row;
        users.sort_by_key(|user| first_use.get(user));
        let rows = users.len().max(memories.len().div_ceil(self.spread.max(1)));
        let first = usize::from(self.spread == 0);
        for (first, numbers) in [(0, &*users), (first, &*memories)] {
            for (place, number) in numbers.iter().enumerate() {
                if let Some(it) = self.layout.places.get_mut(*number) {
                    *it = Place { column: first + place / rows, top: self.top + place % rows * STEP };
                }
            }
        }
        self.top += rows * STEP;
        self.row = [Vec::new(), Vec::new()];
    }
}

/// How many columns the boxes of namespaces and memory have, so that a large picture uses its width: hosts and the frames of
/// groups leave two of three.
fn spread(graph: &Graph) -> usize {
    let columns: Vec<usize> = graph.nodes.iter().map(column).collect();
    if !graph.is_folded || columns.contains(&0) {
        return 0;
    }
    let (count, has_hosts) = (columns.iter().filter(|column| **column == 1).count(), columns.contains(&2));
    // Lines to hosts would lead behind the boxes of a second column.
    if has_hosts && count <= 20 {
        return 1;
    }
    let has_groups = graph.nodes.iter().any(|node| !node.groups.is_empty());
    (count / 8 + 1).min(if has_groups || has_hosts { 2 } else { 3 })
}

fn layout(graph: &Graph) -> Layout<'_> {
    let mut first_use = BTreeMap::new();
    for edge in &graph.edges {
        first_use.entry(edge.from).or_insert(edge.to);
    }
    let places = vec![Place::default(); graph.nodes.len()];
    let layout = Layout { places, frames: Vec::new(), height: 0 };
    let spread = spread(graph);
    let mut placing = Placing { layout, spread, row: [Vec::new(), Vec::new()], open: Vec::new(), top: 4 };
    let mut hosts = Vec::new();
    let mut numbers = 0..;
    graph.walk(|step| match step {
        Step::Open(group) => {
            placing.put_row(&first_use);
            placing.open(group);
        }
        Step::Node(node) => {
            let number = numbers.next().unwrap_or_default();
            placing.row.get_mut(column(node)).unwrap_or(&mut hosts).push(number);
        }
        Step::Close => {
            placing.put_row(&first_use);
            placing.close();
        }
    });
    placing.put_row(&first_use);
    let Placing { mut layout, top, .. } = placing;
    // A host stands beside what it serves, if there is room.
    let mut sums: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for Edge { from, to, .. } in &graph.edges {
        let (sum, count) = sums.entry(*to).or_default();
        *sum += layout.places.get(*from).map_or(0, |place| place.top);
        *count += 1;
    }
    let beside = |host: &usize| sums.get(host).map_or(0, |(sum, count)| sum / count);
    hosts.sort_by_key(beside);
    layout.height = top.max(4 + hosts.len() * STEP);
    let (mut first_free, mut last_free) = (4, layout.height - hosts.len() * STEP);
    for host in hosts {
        let top = beside(&host).clamp(first_free, last_free);
        (first_free, last_free) = (top + STEP, last_free + STEP);
        if let Some(place) = layout.places.get_mut(host) {
            *place = Place { column: 2, top };
        }
    }
    layout
}

fn draw(graph: &Graph) -> Markup {
    let layout = layout(graph);
    let folds = graph.nodes.iter().any(|node| node.fold.is_some());
    // An image cannot hold links.
    let role = if folds { "group" } else { "img" };
    let place = |number: usize| layout.places.get(number).copied().unwrap_or_default();
    html! {
        figure {
            svg role=(role) aria-labelledby="map-picture" viewBox={ "0 0 " (WIDTH) " " (layout.height) }
                width=(WIDTH) height=(layout.height) xmlns="http://www.w3.org/2000/svg" {
                title id="map-picture" { "Map of memory: the table below has the same content" }
                @for frame in &layout.frames { (draw_frame(frame)) }
                @for edge in &graph.edges { (draw_edge(edge, graph, [place(edge.from), place(edge.to)])) }
                @for (number, node) in graph.nodes.iter().enumerate() { (draw_node(node, place(number))) }
            }
            (caption(graph))
        }
    }
}

/// What the picture shows.
fn caption(graph: &Graph) -> Markup {
    let crosses = graph.edges.iter().any(|edge| edge.crosses);
    let lacks_tls = graph.edges.iter().any(|edge| edge.lacks_tls);
    html! {
        figcaption class="quiet" {
            @if graph.is_folded { "A box for several objects opens their namespace on this page. Hosts are at the right." }
            @else { "Users at the left, memory in the middle, hosts at the right." }
            @if crosses { " A dashed line leads across namespaces." }
            @if lacks_tls { " A dotted line leads to a host without TLS." }
            @if graph.left_out > 0 { " " (graph.left_out) " more lines have no room." }
        }
    }
}

fn draw_frame(Frame { title, depth, top, bottom }: &Frame<'_>) -> Markup {
    let left = 4 + depth * INSET;
    let width = (FRAME - depth * INSET).saturating_sub(left);
    html! {
        rect class="frame" x=(left) y=(top) width=(width) height=(bottom.saturating_sub(*top)) rx="6" {}
        text class="quiet" x=(left + 10) y=(top + 16) { (middle(title, MAX_CHARS)) }
    }
}

/// A line from a box to another one, which ends in a tip.
fn draw_edge(edge: &Edge, graph: &Graph, [from, to]: [Place; 2]) -> Markup {
    let end =
        |number: usize| graph.nodes.get(number).map_or_else(String::new, |it| middle(&title(it), MAX_END));
    let marks: Vec<&str> = edge.marks().map(|(name, _)| name).collect();
    let marks = (!marks.is_empty()).then(|| marks.join(" "));
    html! {
        path data-edge={ (end(edge.from)) " → " (end(edge.to)) } data-mark=[marks]
            d=(curve(from, to)) {}
    }
}

/// From the right edge of a box to the left edge of one in a later column, or back; within a column around the boxes between
/// the two, at the side that has room.
fn curve(from: Place, to: Place) -> String {
    const TO_RIGHT: &str = "m-6 -4 l6 4 l-6 4";
    const TO_LEFT: &str = "m6 -4 l-6 4 l6 4";
    let left = |place: Place| COLUMNS.get(place.column).copied().unwrap_or_default();
    let right = |place: Place| left(place) + BOX[0];
    let [start, end] = [from, to].map(|place| place.top + BOX[1] / 2);
    let distance = (30 + start.abs_diff(end) / 5).min(120);
    let is_last = from.column + 1 == COLUMNS.len();
    let (begin, turn, goal, tip) = match from.column.cmp(&to.column) {
        Ordering::Less => (right(from), usize::midpoint(right(from), left(to)), left(to), TO_RIGHT),
        Ordering::Greater => (left(from), usize::midpoint(left(from), right(to)), right(to), TO_LEFT),
        Ordering::Equal if is_last => (left(from), left(from) - distance, left(to), TO_RIGHT),
        Ordering::Equal => (right(from), right(from) + distance, right(to), TO_LEFT),
    };
    format!("M{begin} {start} C{turn} {start} {turn} {end} {goal} {end} {tip}")
}

fn draw_node(node: &Node, Place { column, top }: Place) -> Markup {
    let left = COLUMNS.get(column).copied().unwrap_or_default();
    let [first, second] = lines(node);
    let class = match node.shape {
        Shape::Referrer | Shape::Pod => "user",
        Shape::Memory => "memory",
        Shape::Unread => "memory unread",
        Shape::Store => "store",
        Shape::Fold => "fold",
    };
    let group = html! {
        g class=(class) data-node=(title(node)) data-verdict=(node.verdict.name())
            data-fold=[node.fold.as_ref().map(|fold| fold.count)] {
            rect x=(left) y=(top) width=(BOX[0]) height=(BOX[1]) rx="4" {}
            text x=(left + 10) y=(top + 17) { (first) }
            text class="verdict" x=(left + 10) y=(top + 33) { (second) }
        }
    };
    match link(node) {
        Some(link) => html! { a href=(link) { (group) } },
        None => group,
    }
}

/// The part of the page that a box opens: its namespace, unless the box is only one of those of it, or the table.
fn link(node: &Node) -> Option<String> {
    let namespace = match node.fold.as_ref().map(|fold| &fold.of) {
        Some(FoldOf::Namespace(name) | FoldOf::Alike { namespace: name, .. }) => name,
        Some(FoldOf::Rest(_) | FoldOf::Hosts) => return Some("#map-table".to_owned()),
        None if node.is_alone => &node.object.namespace,
        None => return None,
    };
    Some(format!("#namespace={}", percent_encoded(&namespace_word(namespace), "-._")))
}

/// The two lines in a box: a name, and the verdict with what has room beside it.
fn lines(node: &Node) -> [String; 2] {
    let mut second = String::new();
    if let Some(fold) = &node.fold {
        for most in [2, 1] {
            second = match (node.verdict, &fold.of) {
                (Verdict::Clean, FoldOf::Hosts) => node.verdict.words().to_owned(),
                (Verdict::Clean, _) => format!("{}, {}", fold.number(), node.verdict.words()),
                _ => format!("{} of {}", fold.verdicts(most), fold.number()),
            };
            if second.chars().count() <= MAX_SECOND {
                break;
            }
        }
    } else {
        let words = node.words.iter().map(|it| it.strip_prefix("backend: ").unwrap_or(it));
        for part in [node.verdict.words(), &node.object.kind].into_iter().chain(words) {
            let longer = if second.is_empty() { part.to_owned() } else { format!("{second} · {part}") };
            if longer.chars().count() > MAX_SECOND && !second.is_empty() {
                break;
            }
            second = longer;
        }
    }
    let second = middle(&second, MAX_SECOND);
    let MappedObject { namespace, name, .. } = &node.object;
    let is_elsewhere = node.is_alone && !namespace.is_empty();
    let own = || if is_elsewhere { format!("{namespace}/{name}") } else { name.clone() };
    let name = node.fold.as_ref().map_or_else(own, Fold::name);
    let room = (MAX_CHARS - second.chars().count()).min(MAX_SECOND);
    [middle(&name, room), second]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::report::map::Facts;
    use crate::report::map::graph::samples::{SIZES, map};

    /// Fails unless a picture keeps its limits.
    fn expect_good(map: &MemoryMap) -> (Graph, String) {
        let graph = Graph::of(map);
        let layout = layout(&graph);
        assert!((1..=60).contains(&graph.nodes.len()), "{}", graph.nodes.len());
        let mut taken = BTreeSet::new();
        for (place, node) in layout.places.iter().zip(&graph.nodes) {
            assert!(taken.insert((place.column, place.top)), "two boxes at {place:?}");
            assert!(place.top + BOX[1] < layout.height && COLUMNS[place.column] + BOX[0] <= WIDTH);
            let texts: usize = lines(node).iter().map(|line| line.chars().count()).sum();
            assert!(texts < 60, "{:?}", lines(node));
            assert!(lines(node)[1].contains(node.verdict.words()), "{:?}", lines(node));
        }
        let picture = draw(&graph).0;
        assert!(picture.len() < 300_000, "{}", picture.len());
        (graph, picture)
    }

    #[test]
    fn a_picture_of_any_size_keeps_its_limits() {
        for size in SIZES {
            for length in [1, 253] {
                expect_good(&map(size, length));
            }
        }
    }

    #[test]
    fn a_large_map_has_a_box_for_each_namespace() {
        let (graph, picture) = expect_good(&map([10, 10, 2], 1));
        let folds: Vec<&Fold> = graph.nodes.iter().filter_map(|node| node.fold.as_ref()).collect();
        assert_eq!(folds.len(), 11);
        assert!(folds.iter().filter(|fold| fold.of != FoldOf::Hosts).all(|fold| fold.count == 30));
        let fold = "data-node=\"namespace n3\" data-verdict=\"denied\" data-fold=\"30\"";
        assert!(picture.contains("<a href=\"#namespace=n3\">") && picture.contains(fold), "{picture}");
        assert!(picture.contains("10 denied of 30 objects"), "{picture}");
        assert_eq!(picture.matches("data-mark=\"no-tls\"").count(), 10);
    }

    #[test]
    fn a_large_picture_uses_its_width() {
        for (size, with_hosts, columns) in [
            ([10_000, 1, 1], true, 2),
            ([10_000, 1, 1], false, 3),
            ([12, 10, 1], false, 2),
            ([1, 80, 0], false, 2),
        ] {
            let mut map = map(size, 1);
            if !with_hosts {
                map.sets
                    .iter_mut()
                    .flat_map(|set| &mut set.memories)
                    .for_each(|it| it.facts = Facts::default());
            }
            let (graph, _) = expect_good(&map);
            let layout = layout(&graph);
            let taken: BTreeSet<usize> = layout.places.iter().map(|place| place.column).collect();
            assert_eq!(taken.len(), columns + usize::from(with_hosts), "{size:?}");
            assert!(taken.contains(&0) && layout.height <= 1_600, "{size:?}: {}", layout.height);
        }
    }

    #[test]
    fn objects_of_one_namespace_share_boxes_by_their_memory() {
        let (graph, picture) = expect_good(&map([1, 2, 5_000], 1));
        for form in [
            "<a href=\"#namespace=n0\"><g class=\"fold\" data-node=\"5000 objects of kind Agent\" data-verdict=\"denied\" data-fold=\"5000\">",
            "data-node=\"Memory n0/m0\"",
            "1 denied of 5000 objects",
        ] {
            assert!(picture.contains(form), "{form}\n{picture}");
        }
        assert!(graph.nodes.len() < 10, "{}", graph.nodes.len());
    }

    #[test]
    fn what_is_alone_in_its_namespace_has_the_name_of_it() {
        let mut map = map([59, 1, 0], 1);
        map.sets[0].memories.truncate(59);
        let (graph, picture) = expect_good(&map);
        assert!(graph.is_folded);
        let form = "<a href=\"#namespace=n7\"><g class=\"memory\" data-node=\"Memory n7/m7\"";
        assert!(picture.contains(form) && picture.contains(">n7/m7<"), "{picture}");
    }

    #[test]
    fn what_has_no_room_shares_a_box() {
        let (graph, picture) = expect_good(&map([10_000, 1, 1], 1));
        let count: usize =
            graph.nodes.iter().map(|node| node.fold.as_ref().map_or(1, |fold| fold.count)).sum();
        assert_eq!(count, 30_000);
        assert!(picture.contains("9942 more namespaces") && !picture.contains("#namespace=\""), "{picture}");
        assert_eq!(picture.matches("<a href=\"#map-table\">").count(), 2, "{picture}");
    }

    #[test]
    fn a_link_is_one_word() {
        let link = |name: &str| {
            let mut nodes = Graph::of(&map([1, 1, 0], 1)).nodes;
            let mut node = nodes.remove(0);
            node.is_alone = true;
            node.object.namespace = name.to_owned();
            link(&node)
        };
        assert_eq!(link("team-a").as_deref(), Some("#namespace=team-a"));
        assert_eq!(link("a&q=\"ü b").as_deref(), Some("#namespace=a%26q%3D%22%C3%BC_b"));
        assert_eq!(link("").as_deref(), Some("#namespace=-"));
    }
}
