//! The picture of the map, as inline SVG: users at the left, memory in the middle, hosts at the right, in frames for units,
//! namespaces and platforms.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::report::map::Verdict;
use crate::report::map::graph::{Edge, Graph, Group, Node, Shape, Step, middle};

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
struct Frame {
    title: String,
    depth: usize,
    top: usize,
    bottom: usize,
}

/// The places of all boxes and frames.
struct Layout {
    places: Vec<Place>,
    frames: Vec<Frame>,
    height: usize,
}

/// The column of a box.
const fn column(node: &Node<'_>) -> usize {
    match node.shape {
        Shape::Referrer | Shape::Pod => 0,
        Shape::Memory | Shape::Unread => 1,
        Shape::Store => 2,
    }
}

/// Puts boxes below one another, those of a group inside of a frame.
struct Placing {
    layout: Layout,
    /// The first box that each box uses.
    first_use: BTreeMap<usize, usize>,
    /// The boxes of the open group, for each of the first two columns.
    row: [Vec<usize>; 2],
    open: Vec<usize>,
    top: usize,
}

impl Placing {
    fn open(&mut self, group: &Group<'_>) {
        self.put_row();
        let (depth, top) = (self.open.len(), self.top);
        self.open.push(self.layout.frames.len());
        self.layout.frames.push(Frame { title: group.title(), depth, top, bottom: top });
        self.top += TITLE;
    }

    fn close(&mut self) {
        self.put_row();
        if let Some(frame) = self.open.pop().and_then(|number| self.layout.frames.get_mut(number)) {
            frame.bottom = self.top;
            self.top += GAP;
        }
    }

    /// Places the boxes that wait, users in the order of what they use.
    fn put_row(&mut self) {
        let [users, memories] = &mut self.row;
        users.sort_by_key(|user| self.first_use.get(user));
        let rows = users.len().max(memories.len());
        for (column, numbers) in self.row.iter().enumerate() {
            for (row, number) in numbers.iter().enumerate() {
                if let Some(it) = self.layout.places.get_mut(*number) {
                    *it = Place { column, top: self.top + row * STEP };
                }
            }
        }
        self.top += rows * STEP;
        self.row = [Vec::new(), Vec::new()];
    }
}

fn layout(graph: &Graph<'_>) -> Layout {
    let mut first_use = BTreeMap::new();
    for edge in &graph.edges {
        first_use.entry(edge.from).or_insert(edge.to);
    }
    let places = vec![Place::default(); graph.nodes.len()];
    let layout = Layout { places, frames: Vec::new(), height: 0 };
    let row = [Vec::new(), Vec::new()];
    let mut placing = Placing { layout, first_use, row, open: Vec::new(), top: 4 };
    let mut hosts = Vec::new();
    graph.walk(|step| match step {
        Step::Open(group) => placing.open(group),
        Step::Node(number, node) => {
            placing.row.get_mut(column(node)).unwrap_or(&mut hosts).push(number);
        }
        Step::Close => placing.close(),
    });
    placing.put_row();
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

/// Draws a graph.
pub(super) fn draw(graph: &Graph<'_>) -> Markup {
    let layout = layout(graph);
    let place = |number: usize| layout.places.get(number).copied().unwrap_or_default();
    html! {
        figure {
            svg role="img" aria-labelledby="map-picture" viewBox={ "0 0 " (WIDTH) " " (layout.height) }
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
fn caption(graph: &Graph<'_>) -> Markup {
    let crosses = graph.edges.iter().any(|edge| edge.crosses);
    let lacks_tls = graph.edges.iter().any(|edge| edge.lacks_tls);
    html! {
        figcaption class="quiet" {
            "Users at the left, memory in the middle, hosts at the right."
            @if crosses { " A dashed line leads across namespaces." }
            @if lacks_tls { " A dotted line leads to a host without TLS." }
        }
    }
}

fn draw_frame(Frame { title, depth, top, bottom }: &Frame) -> Markup {
    let left = 4 + depth * INSET;
    let width = (FRAME - depth * INSET).saturating_sub(left);
    html! {
        rect class="frame" x=(left) y=(top) width=(width) height=(bottom.saturating_sub(*top)) rx="6" {}
        text class="quiet" x=(left + 10) y=(top + 16) { (middle(title, MAX_CHARS)) }
    }
}

/// A line from a box to another one, which ends in a tip.
fn draw_edge(edge: &Edge, graph: &Graph<'_>, [from, to]: [Place; 2]) -> Markup {
    let end = |number: usize| {
        graph.nodes.get(number).map_or_else(String::new, |node| middle(&node.object.title(), MAX_END))
    };
    let marks: Vec<&str> = edge.marks().map(|(name, _)| name).collect();
    let marks = (!marks.is_empty()).then(|| marks.join(" "));
    html! {
        path data-edge={ (end(edge.from)) " → " (end(edge.to)) } data-mark=[marks]
            d=(curve(from, to)) {}
    }
}

/// From the right edge of a box to the left edge of one in a later column.
fn curve(from: Place, to: Place) -> String {
    let left = |place: Place| COLUMNS.get(place.column).copied().unwrap_or_default();
    let (begin, goal) = (left(from) + BOX[0], left(to));
    let turn = usize::midpoint(begin, goal);
    let [start, end] = [from, to].map(|place| place.top + BOX[1] / 2);
    format!("M{begin} {start} C{turn} {start} {turn} {end} {goal} {end} m-6 -4 l6 4 l-6 4")
}

fn draw_node(node: &Node<'_>, Place { column, top }: Place) -> Markup {
    let left = COLUMNS.get(column).copied().unwrap_or_default();
    let [first, second] = lines(node);
    let class = match node.shape {
        Shape::Referrer | Shape::Pod => "user",
        Shape::Memory => "memory",
        Shape::Unread => "memory unread",
        Shape::Store => "store",
    };
    html! {
        g class=(class) data-node=(node.object.title()) data-verdict=[node.verdict.map(Verdict::name)] {
            rect x=(left) y=(top) width=(BOX[0]) height=(BOX[1]) rx="4" {}
            text x=(left + 10) y=(top + 17) { (first) }
            text class="verdict" x=(left + 10) y=(top + 33) { (second) }
        }
    }
}

/// The two lines in a box: a name, and the verdict with what has room beside it.
fn lines(node: &Node<'_>) -> [String; 2] {
    let mut second = String::new();
    let words = node.words.iter().map(|it| it.strip_prefix("backend: ").unwrap_or(it));
    for part in node.verdict.map(Verdict::words).into_iter().chain([&*node.object.kind]).chain(words) {
        let longer = if second.is_empty() { part.to_owned() } else { format!("{second} · {part}") };
        if longer.chars().count() > MAX_SECOND && !second.is_empty() {
            break;
        }
        second = longer;
    }
    let second = middle(&second, MAX_SECOND);
    let room = (MAX_CHARS - second.chars().count()).min(MAX_SECOND);
    [middle(&node.object.name, room), second]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::report::map::graph::samples::{SIZES, map};

    #[test]
    fn a_picture_of_any_size_keeps_its_limits() {
        for (size, length) in SIZES.into_iter().flat_map(|size| [(size, 1), (size, 253)]) {
            let map = map(size, length);
            let graph = Graph::of(&map).expect("is small");
            let layout = layout(&graph);
            let mut taken = BTreeSet::new();
            for (place, node) in layout.places.iter().zip(&graph.nodes) {
                assert!(taken.insert((place.column, place.top)), "two boxes at {place:?}");
                assert!(place.top + BOX[1] < layout.height && COLUMNS[place.column] + BOX[0] <= WIDTH);
                let texts: usize = lines(node).iter().map(|line| line.chars().count()).sum();
                assert!(texts < 60, "{:?}", lines(node));
                let words = node.verdict.map_or("host", Verdict::words);
                assert!(lines(node)[1].starts_with(words), "{:?}", lines(node));
            }
            let picture = draw(&graph).0;
            assert!(picture.len() < 300_000, "{}", picture.len());
        }
    }

    #[test]
    fn a_host_has_no_verdict() {
        let picture = draw(&Graph::of(&map([1, 1, 2], 1)).expect("is small")).0;
        assert!(picture.contains("<g class=\"store\" data-node=\"host h0.example.com\">"), "{picture}");
        assert!(picture.contains("data-node=\"Memory n0/m0\" data-verdict=\"ok\""), "{picture}");
        assert!(picture.contains("data-node=\"Agent n0/a0-0\" data-verdict=\"denied\""), "{picture}");
    }
}
