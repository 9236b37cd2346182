//! The map of memory: a picture and a table.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::budget::{MAP, fitting};
use super::picture::picture;
use super::tables::{namespace_word, table};
use crate::report::map::{Fact, MapLine, MappedMemory, MemoryMap, SetMap, Verdict};
use memgate_model::finding::Severity;

/// The most objects that are listed in one cell.
const MAX_USERS: usize = 25;

/// The most rows of a table that need not be opened.
const MAX_OPEN: usize = 20;

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
    let of_sets = map.sets.iter().flat_map(|set| set.memories.iter().map(move |memory| (set, memory)));
    let shown = fitting(MAP, of_sets, |(set, memory)| row(set, memory));
    let caption = "Memory resources, what refers to them, and the pods that get them";
    let table = html! {
        div id="map-table" { (table(caption, [&COLUMNS, &[]], &shown)) }
        (shown.rest("memgate map prints all of them"))
    };
    Some(html! {
        (picture(map))
        @if count > MAX_OPEN {
            details { summary { "The map as a table of " (count) " memory resources" } (table) }
        } @else {
            (table)
        }
    })
}

fn row(set: &SetMap, memory: &MappedMemory) -> Markup {
    let MappedMemory { object, presence, facts, users, family, .. } = memory;
    let storage = match &facts.storage {
        Fact::Absent => String::new(),
        storage => format!("storage {storage}"),
    };
    let retention = [facts.retention.to_string(), storage];
    let retention: Vec<String> = retention.into_iter().filter(|text| !text.is_empty()).collect();
    let (pods, referrers): (Vec<&MapLine>, Vec<&MapLine>) = users.iter().partition(|line| line.is_pod);
    let shown = [&pods, &referrers].into_iter().flat_map(|lines| lines.iter().take(MAX_USERS));
    let namespaces =
        shown.map(|line| &line.user.namespace).chain([&object.namespace]).map(|it| namespace_word(it));
    let namespaces: Vec<String> = namespaces.collect::<BTreeSet<_>>().into_iter().collect();
    html! {
        tr data-namespace=(namespaces.join(" ")) data-platform=(family) data-severity=(severity(set.verdict_of(memory))) {
            th scope="row" {
                (object.kind) " " (object.name)
                (verdict(set.verdict_of(memory)))
                @if !presence.words().is_empty() { " " strong class="warn" { (presence.words()) } }
                @if !set.set.is_empty() { " (set " (set.set) ")" }
            }
            td { (object.namespace) }
            td { (facts.backend.to_string()) }
            td {
                (facts.hosts.to_string())
                @if memory.lacks_tls { " " strong class="warn" { "no TLS" } }
            }
            td { (facts.durable.to_string()) }
            td { (retention.join(", ")) }
            td { (facts.secrets.to_string()) }
            td { (list(set, &referrers)) }
            td { (list(set, &pods)) }
        }
    }
}

/// The severity of what is found of memory; empty without findings.
const fn severity(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Denied => Severity::Deny.name(),
        Verdict::Warned => Severity::Warn.name(),
        Verdict::Missing | Verdict::Unused | Verdict::Clean => "",
    }
}

/// A verdict behind a name.
fn verdict(verdict: Verdict) -> Markup {
    let class = match verdict {
        Verdict::Clean => return html! {},
        Verdict::Denied | Verdict::Missing => "deny",
        Verdict::Warned | Verdict::Unused => "warn",
    };
    html! { " " strong class=(class) { (verdict.words()) } }
}

fn list(set: &SetMap, lines: &[&MapLine]) -> Markup {
    let more = lines.len().saturating_sub(MAX_USERS);
    html! {
        @if !lines.is_empty() {
            ul {
                @for line in lines.iter().take(MAX_USERS) {
                    li {
                        (line.user.title()) (verdict(set.verdict(&line.user)))
                        @if line.crosses { " " strong class="deny" { "across namespaces" } }
                        @if let Some(other) = &line.differs { " (by its own variables: " (other) ")" }
                    }
                }
                @if more > 0 { li { "and " (more) " more" } }
            }
        }
    }
}
