//! The map of memory as a table.

use maud::{Markup, html};

use super::{first, table};
use crate::report::map::{Fact, MapLine, MapVerdict, MappedMemory, MemoryMap, UnitMap};

/// The most objects that are listed in one cell.
const MAX_USERS: usize = 25;

const COLUMNS: [&str; 9] = [
    "Memory", "Namespace", "Backend", "Host", "Durable", "Retention", "Secrets", "Referred to by",
    "Pods that get it",
];

/// The map; `None` without memory.
pub(super) fn section(map: &MemoryMap) -> Option<Markup> {
    let of_units = map.units.iter().flat_map(|unit| unit.memories.iter().map(move |memory| (unit, memory)));
    let [rows, rest] = first(of_units, "memgate map", |(unit, memory)| row(unit, memory));
    let caption = "Memory resources, what refers to them, and the pods that get them";
    map.memories().next().is_some().then(|| html! { (table(caption, &COLUMNS, &rows)) (rest) })
}

fn row(unit: &UnitMap, memory: &MappedMemory) -> Markup {
    let MappedMemory { object, presence, facts, users, .. } = memory;
    let storage = match &facts.storage {
        Fact::Absent => String::new(),
        storage => format!("storage {storage}"),
    };
    let retention = [facts.retention.to_string(), storage];
    let retention: Vec<String> = retention.into_iter().filter(|text| !text.is_empty()).collect();
    let (pods, referrers): (Vec<&MapLine>, Vec<&MapLine>) = users.iter().partition(|line| line.is_pod);
    html! {
        tr {
            th scope="row" {
                (object.kind) " " (object.name)
                (verdict(unit.verdict_of(memory)))
                @if !presence.words().is_empty() { " " strong class="warn" { (presence.words()) } }
                @if !unit.unit.is_empty() { " (unit " (unit.unit) ")" }
            }
            td { (object.namespace) }
            td { (facts.backend.to_string()) }
            td { (facts.hosts.to_string()) }
            td { (facts.durable.to_string()) }
            td { (retention.join(", ")) }
            td { (facts.secrets.to_string()) }
            td { (list(unit, &referrers)) }
            td { (list(unit, &pods)) }
        }
    }
}

/// A verdict behind a name.
fn verdict(verdict: MapVerdict) -> Markup {
    let class = match verdict {
        MapVerdict::Clean => return html! {},
        MapVerdict::Denied | MapVerdict::Memoryless | MapVerdict::Missing => "deny",
        MapVerdict::Warned => "warn",
    };
    html! { " " strong class=(class) { (verdict.name()) } }
}

fn list(unit: &UnitMap, lines: &[&MapLine]) -> Markup {
    let more = lines.len().saturating_sub(MAX_USERS);
    html! {
        @if !lines.is_empty() {
            ul {
                @for line in lines.iter().take(MAX_USERS) {
                    li {
                        (line.user.title()) (verdict(unit.verdict(&line.user)))
                        @if line.crosses { " " strong class="deny" { "across namespaces" } }
                    }
                }
                @if more > 0 { li { "and " (more) " more" } }
            }
        }
    }
}
