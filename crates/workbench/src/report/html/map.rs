//! The map of memory: a picture of a small one, and always a table.

use maud::{Markup, html};

use super::budget::{MAP, PICTURES, fitting};
use super::picture::{ELSEWHERE, picture};
use super::tables::table;
use crate::report::counted;
use crate::report::map::{Fact, MapLine, MappedMemory, MemoryMap, Presence};

/// The most objects that are listed in one cell.
const MAX_USERS: usize = 25;

const COLUMNS: [&str; 9] = [
    "Memory", "Namespace", "Backend", "Host", "Durable", "Retention", "Secrets", "Referred to by",
    "Pods that get it",
];

/// The map; `None` without memory.
pub(super) fn section(map: &MemoryMap) -> Option<Markup> {
    let (count, _) = map.counts();
    if count == 0 {
        return None;
    }
    let of_sets = map.sets.iter().flat_map(|set| set.memories.iter().map(move |memory| (&*set.set, memory)));
    let shown = fitting(MAP, of_sets, |(set, memory)| row(set, memory));
    let sets = map.sets.iter().filter(|set| !set.memories.is_empty()).enumerate();
    let pictures = fitting(PICTURES, sets, |(number, set)| picture(set, number));
    Some(html! {
        (pictures.all())
        @if pictures.more > 0 {
            p { "Pictures of " (counted(pictures.more, "map")) " have no room in this page; " (ELSEWHERE) "." }
        }
        (table("Memory resources, what refers to them, and the pods that get them", [&COLUMNS, &[]], &shown))
        (shown.rest("memgate map prints all of them"))
    })
}

fn row(set: &str, memory: &MappedMemory) -> Markup {
    let MappedMemory { object, presence, facts, users, .. } = memory;
    let storage = match &facts.storage {
        Fact::Absent => String::new(),
        storage => format!("storage {storage}"),
    };
    let retention = [facts.retention.to_string(), storage];
    let retention: Vec<String> = retention.into_iter().filter(|text| !text.is_empty()).collect();
    let (pods, referrers): (Vec<&MapLine>, Vec<&MapLine>) = users.iter().partition(|line| line.is_pod);
    let class = if *presence == Presence::Missing { "deny" } else { "warn" };
    html! {
        tr {
            th scope="row" {
                (object.kind) " " (object.name)
                @if *presence != Presence::Found { " " strong class=(class) { (presence.words()) } }
                @if !set.is_empty() { " (set " (set) ")" }
            }
            td { (object.namespace) }
            td { (facts.backend.to_string()) }
            td { (facts.hosts.to_string()) }
            td { (facts.durable.to_string()) }
            td { (retention.join(", ")) }
            td { (facts.secrets.to_string()) }
            td { (list(&referrers)) }
            td { (list(&pods)) }
        }
    }
}

fn list(lines: &[&MapLine]) -> Markup {
    let more = lines.len().saturating_sub(MAX_USERS);
    html! {
        @if !lines.is_empty() {
            ul {
                @for line in lines.iter().take(MAX_USERS) {
                    li {
                        (line.user.title())
                        @if line.crosses { " " strong class="deny" { "across namespaces" } }
                        @if let Some(other) = &line.differs { " (by its own variables: " (other) ")" }
                    }
                }
                @if more > 0 { li { "and " (more) " more" } }
            }
        }
    }
}
