//! The picture of a small map, as inline SVG: users at the left, memory in the middle, stores at the right.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::report::map::{Fact, MappedMemory, MappedObject, Presence, SetMap};

/// The most boxes of a picture that can be read.
const MAX_BOXES: usize = 60;

/// The most lines.
const MAX_LINES: usize = 120;

/// Where a map is drawn that has no picture.
pub(super) const ELSEWHERE: &str = "memgate map -o dot writes a map for Graphviz";

/// The size of a box, and the distances between boxes, in pixels.
const BOX: [usize; 2] = [250, 38];
const GAP: [usize; 2] = [95, 12];

/// The characters of a line in a box.
const MAX_CHARS: usize = 32;

/// A box.
struct Entry {
    class: &'static str,
    lines: [String; 2],
}

/// The boxes and lines of a picture.
#[derive(Default)]
struct Picture {
    users: Vec<Entry>,
    memories: Vec<Entry>,
    stores: Vec<Entry>,
    /// From a user to a memory, and whether the line crosses namespaces.
    to_memory: Vec<(usize, usize, bool)>,
    /// From a memory to a store.
    to_store: Vec<(usize, usize)>,
}

/// The picture of a set; a sentence in its place if it would be too large.
pub(super) fn picture(set: &SetMap, number: usize) -> Markup {
    let of_set = if set.set.is_empty() { String::new() } else { format!(" of the set {}", set.set) };
    match drawable(set) {
        Some(picture) => draw(&picture, &format!("Map of memory{of_set}"), number),
        None => html! {
            p { "The map" (of_set) " is too large for a picture; " (ELSEWHERE) "." }
        },
    }
}

fn drawable(set: &SetMap) -> Option<Picture> {
    let lines: usize = set.memories.iter().map(|memory| memory.users.len()).sum();
    if set.memories.len() > MAX_BOXES || lines > MAX_LINES {
        return None;
    }
    let mut picture = Picture::default();
    let (mut users, mut stores) = (BTreeMap::<(&MappedObject, &str), usize>::new(), BTreeMap::new());
    for (index, memory) in set.memories.iter().enumerate() {
        picture.memories.push(memory_box(memory));
        for line in &memory.users {
            let user = *users.entry((&line.user, line.family)).or_insert_with(|| {
                picture.users.push(Entry { class: "user", lines: title(&line.user) });
                picture.users.len() - 1
            });
            picture.to_memory.push((user, index, line.crosses));
        }
        if let Some(lines) = store(memory) {
            // Memory at unknown hosts may have different ones.
            let apart = memory.facts.hosts.known().is_empty().then_some(index);
            let store = *stores.entry((lines.clone(), apart)).or_insert_with(|| {
                picture.stores.push(Entry { class: "store", lines });
                picture.stores.len() - 1
            });
            picture.to_store.push((index, store));
        }
    }
    let boxes = picture.users.len() + picture.memories.len() + picture.stores.len();
    (boxes <= MAX_BOXES).then_some(picture)
}

fn title(object: &MappedObject) -> [String; 2] {
    [format!("{} {}", object.kind, object.name), object.namespace.clone()]
}

fn memory_box(memory: &MappedMemory) -> Entry {
    let MappedMemory { object, presence, facts, .. } = memory;
    let [name, namespace] = title(object);
    let durable = match facts.durable.known() {
        [] => "",
        [yes] if yes == "yes" => "durable",
        _ => "not durable",
    };
    let backend = facts.backend.known().join(", ");
    let parts = [namespace.as_str(), presence.words(), &backend, durable];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let is_missing = matches!(presence, Presence::Missing | Presence::Unknown);
    Entry { class: if is_missing { "missing" } else { "memory" }, lines: [name, parts.join(", ")] }
}

/// The host, and the Secrets with their namespace; `None` for memory with neither.
fn store(memory: &MappedMemory) -> Option<[String; 2]> {
    let MappedMemory { object, facts, .. } = memory;
    let host = match &facts.hosts {
        Fact::Unknown(_) => "host is not known".to_owned(),
        hosts => hosts.known().iter().map(|host| memory.whole_host(host)).collect::<Vec<_>>().join(", "),
    };
    let whole = |name: &String| match object.namespace.as_str() {
        namespace if !namespace.is_empty() && !name.contains('/') => format!("{namespace}/{name}"),
        _ => name.clone(),
    };
    let secrets: Vec<String> = facts.secrets.known().iter().map(whole).collect();
    let secrets = if secrets.is_empty() { String::new() } else { format!("Secret {}", secrets.join(", ")) };
    match (host.is_empty(), secrets.is_empty()) {
        (true, true) => None,
        (true, false) => Some([secrets, String::new()]),
        _ => Some([host, secrets]),
    }
}

fn draw(picture: &Picture, name: &str, number: usize) -> Markup {
    let columns = [&picture.users, &picture.memories, &picture.stores];
    let most = columns.iter().map(|column| column.len()).max().unwrap_or_default();
    let [width, height] = [3 * BOX[0] + 2 * GAP[0] + 2, most * (BOX[1] + GAP[1]) + 2];
    let id = format!("map-picture-{number}");
    let crosses = picture.to_memory.iter().any(|(_, _, crosses)| *crosses);
    let missing = picture.memories.iter().any(|entry| entry.class == "missing");
    html! {
        figure {
            svg role="img" aria-labelledby=(id) viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height)
                xmlns="http://www.w3.org/2000/svg" {
                title id=(id) { (name) ": the table below has the same content" }
                @for (user, memory, crosses) in &picture.to_memory {
                    path class=[crosses.then_some("crosses")]
                        d=(curve(0, top(*user, columns[0].len(), most), top(*memory, columns[1].len(), most))) {}
                }
                @for (memory, store) in &picture.to_store {
                    path d=(curve(1, top(*memory, columns[1].len(), most), top(*store, columns[2].len(), most))) {}
                }
                @for (column, entries) in columns.into_iter().enumerate() {
                    @for (index, entry) in entries.iter().enumerate() {
                        (draw_box(entry, left(column), top(index, entries.len(), most)))
                    }
                }
            }
            figcaption class="quiet" {
                "Users at the left, memory in the middle, stores at the right."
                @if crosses { " A dashed line leads across namespaces." }
                @if missing { " A dashed box is memory that was not found." }
            }
        }
    }
}

const fn left(column: usize) -> usize {
    1 + column * (BOX[0] + GAP[0])
}

/// The upper edge of a box in a column of so many, which is in the middle of the picture.
const fn top(index: usize, count: usize, most: usize) -> usize {
    let free = (most - count) * (BOX[1] + GAP[1]) / 2;
    1 + free + index * (BOX[1] + GAP[1])
}

/// The line from a box of a column to a box of the next one.
fn curve(column: usize, from: usize, to: usize) -> String {
    let [start, end] = [left(column) + BOX[0], left(column + 1)];
    let [from, to] = [from, to].map(|top| top + BOX[1] / 2);
    let middle = usize::midpoint(start, end);
    format!("M{start} {from} C{middle} {from} {middle} {to} {end} {to}")
}

fn draw_box(entry: &Entry, left: usize, top: usize) -> Markup {
    let [first, second] = &entry.lines;
    html! {
        g class=(entry.class) {
            title { (first) " " (second) }
            rect x=(left) y=(top) width=(BOX[0]) height=(BOX[1]) rx="4" {}
            text x=(left + 8) y=(top + 16) { (short(first)) }
            text class="quiet" x=(left + 8) y=(top + 31) { (short(second)) }
        }
    }
}

/// A text that fits into a box.
fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::map::Facts;

    fn stores(memories: [(&str, Fact, Option<&str>); 2]) -> Vec<[String; 2]> {
        let memory = |(namespace, hosts, secret): (&str, Fact, Option<&str>)| MappedMemory {
            object: MappedObject { namespace: namespace.to_owned(), ..MappedObject::default() },
            facts: Facts { hosts, secrets: Fact::of(secret.map(str::to_owned)), ..Facts::default() },
            ..MappedMemory::default()
        };
        let set = SetMap { set: String::new(), memories: memories.map(memory).into() };
        let picture = drawable(&set).expect("is small");
        assert_eq!(picture.to_store.len(), 2);
        picture.stores.into_iter().map(|entry| entry.lines).collect()
    }

    #[test]
    fn a_store_is_shared_if_its_host_is_known() {
        let unknown = || Fact::Unknown("it is in a Secret".to_owned());
        let known = || Fact::of(["db.example.com:1".to_owned()]);
        let lines = |one: &str, two: &str| [one.to_owned(), two.to_owned()];
        assert_eq!(
            stores([("team-a", unknown(), Some("redis")), ("team-b", unknown(), Some("redis"))]),
            [
                lines("host is not known", "Secret team-a/redis"),
                lines("host is not known", "Secret team-b/redis")
            ]
        );
        assert_eq!(stores([("a", unknown(), None), ("a", unknown(), None)]).len(), 2);
        assert_eq!(stores([("a", known(), None), ("b", known(), None)]), [lines("db.example.com:1", "")]);
        let bare = || Fact::of(["redis:1".to_owned()]);
        assert_eq!(stores([("a", bare(), None), ("a", bare(), None)]).len(), 1);
        assert_eq!(
            stores([("a", bare(), None), ("b", bare(), None)]),
            [lines("redis:1 (namespace a)", ""), lines("redis:1 (namespace b)", "")]
        );
        assert_eq!(stores([("a", known(), Some("x")), ("b", known(), Some("ops/x"))]).len(), 2);
    }
}
