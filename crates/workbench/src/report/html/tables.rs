//! The summary, and the tables of policies, changes, exemptions and what was not checked.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::budget::{Fitting, OTHERS, fitting};
use super::text;
use crate::report::html_data::{ExemptionState, Page, ShownExemption};
use crate::report::table::{Numbers, Row, Table};
use crate::report::{Report, changes, counted};
use memgate_model::finding::Severity;
use memgate_primitives::plain_text::shown_name;

/// A tile that most runs do not have.
const PATCHES: &str = "patches judged in part";

/// The numbers of the run, as tiles.
pub(super) fn tiles(report: &Report<'_>, page: &Page<'_>) -> Markup {
    let (memories, lines) = page.map.counts();
    let tiles = [
        (report.objects.len() - report.patches(), "objects judged", ""),
        (report.patches(), PATCHES, ""),
        (report.denied, "objects denied", "deny"),
        (report.count(Severity::Deny), "denials", "deny"),
        (report.count(Severity::Warn), "warnings", "warn"),
        (report.count(Severity::Note), "notes", "note"),
        (report.policies, "policies", ""),
        (page.exemptions.len(), "exemptions", ""),
        (report.passed_over.len(), "not checked", ""),
        (memories, "memory resources", ""),
        (lines, "lines to memory", ""),
    ];
    html! {
        ul class="tiles" {
            @for (count, words, class) in tiles.into_iter().filter(|(count, words, _)| *count > 0 || *words != PATCHES) {
                li { strong class=[(count > 0 && !class.is_empty()).then_some(class)] { (count) } (words) }
            }
        }
    }
}

/// The rows as a table that the script can sort, inside of what scrolls where it is wide. A long table has several parts.
/// The last columns hold numbers.
pub(super) fn table(caption: &str, [texts, numbers]: [&[&str]; 2], rows: &Fitting) -> Markup {
    let parts = rows.chunks.len();
    html! {
        @for (number, chunk) in rows.chunks.iter().enumerate() {
            @let part = if parts > 1 { format!(", part {} of {parts}", number + 1) } else { String::new() };
            div class={ "scroll" @if parts > 1 { " part" } } role="region" aria-label={ (caption) (part) } tabindex="0" {
                table data-sort="" {
                    caption { (caption) (part) }
                    thead {
                        tr {
                            @for name in texts { th scope="col" { (name) } }
                            @for name in numbers { th scope="col" class="number" { (name) } }
                        }
                    }
                    tbody { (chunk) }
                }
            }
        }
    }
}

/// The numbers by policy and namespace; `None` without findings.
pub(super) fn policies(of: &Table<'_>) -> Option<Markup> {
    const NAMES: [&str; 2] = ["Policy", "Namespace"];
    const NUMBERS: [&str; 5] = ["Objects", "Denials", "Warnings", "Exempted", "All findings"];
    let shown = fitting(OTHERS, &of.rows, |Row { policy, namespace, numbers }| {
        html! {
            tr {
                th scope="row" { (policy.map_or_else(|| "rules of the platforms".to_owned(), text)) }
                td { @if namespace.is_empty() { "–" } @else { (text(&shown_name(namespace))) } }
                @for number in numbers.cells() { td class="number" { (number) } }
            }
        }
    });
    let Numbers { objects, denials, warnings, exempted, all } = of.total;
    (!shown.is_empty()).then(|| {
        html! {
            (table("The numbers of each policy in each namespace", [&NAMES, &NUMBERS], &shown))
            p {
                "In total: " (counted(objects, "object")) ", " (counted(denials, "denial")) ", "
                (counted(warnings, "warning")) ", " (exempted) " exempted, " (counted(all, "finding")) "."
            }
            (shown.rest("-o json lists all of them"))
        }
    })
}

/// The objects whose verdict changes; `None` for a command that does not compare.
pub(super) fn changes(report: &Report<'_>) -> Option<Markup> {
    const COLUMNS: [&str; 6] = ["Object", "Owner", "Change", "Before", "After", "Place"];
    let all = report.changes.as_ref()?;
    let shown = fitting(OTHERS, changes::sorted(all), |change| {
        html! {
            tr {
                th scope="row" { (text(&change.object_ref.title())) }
                td { (text(change.owner.unwrap_or_default())) }
                td { (change.words()) }
                td { (change.from.name()) }
                td { (change.to.name()) }
                td { code { (text(change.file)) ":" (change.line) } }
            }
        }
    });
    Some(html! {
        @if shown.is_empty() {
            p { "The verdict of no object changes." }
        } @else {
            (table("Each object with its verdict before and after", [&COLUMNS, &[]], &shown))
            (shown.rest("-o json lists all of them"))
        }
    })
}

/// The exemptions; `None` without any.
pub(super) fn exemptions(page: &Page<'_>) -> Option<Markup> {
    const COLUMNS: [&str; 7] = ["Exemption", "Policy", "Rules", "Objects", "Ends", "State", "Reason"];
    let shown = fitting(OTHERS, &page.exemptions, exemption);
    (!shown.is_empty()).then(|| {
        html! {
            (table("The exemptions that were read, with their end", [&COLUMNS, &[]], &shown))
            (shown.rest("kubectl get memorypolicyexemptions -A lists those of a cluster"))
        }
    })
}

fn exemption(it: &ShownExemption) -> Markup {
    let class = match it.state {
        ExemptionState::InForce => "good",
        ExemptionState::EndsSoon | ExemptionState::Later => "warn",
        ExemptionState::Ended => "deny",
    };
    html! {
        tr {
            th scope="row" { (text(&it.name)) }
            td { (text(&it.policy)) }
            td { (text(&it.rules)) }
            td { (text(&it.target)) }
            td { time datetime=(it.expires_at) { (it.expires_at) } }
            td {
                strong class=(class) { (it.state.words()) }
                @if it.state == ExemptionState::Later { ", begins " time datetime=(it.from) { (it.from) } }
            }
            td { (text(&it.reason)) }
        }
    }
}

/// What was assumed; `None` if everything is known.
pub(super) fn assumed(report: &Report<'_>, page: &Page<'_>) -> Option<Markup> {
    let unknown = fitting(OTHERS, report.unknown_objects(), |it| html! { li { (text(it)) } });
    let assumed = fitting(OTHERS, &page.assumed, |it| html! { li { (text(it)) } });
    (!unknown.is_empty() || !assumed.is_empty()).then(|| {
        html! {
            @if !assumed.is_empty() { ul { (assumed.all()) } }
            (assumed.rest("the command writes all of them to standard error"))
            @if !unknown.is_empty() {
                h3 { "Objects that are not among the inputs" }
                p { "Nothing was concluded about them; --with adds them." }
                ul { (unknown.all()) }
            }
            (unknown.rest("-o json lists all of them"))
        }
    })
}

/// How many objects and documents were not checked, by reason; `None` without any.
pub(super) fn passed_over(report: &Report<'_>) -> Option<Markup> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for passed_over in &report.passed_over {
        *reasons.entry(passed_over.reason).or_default() += 1;
    }
    let shown = fitting(OTHERS, reasons, |(reason, count)| {
        html! { tr { th scope="row" { (reason) } td class="number" { (count) } } }
    });
    let caption = "Objects and documents, by the reason why they were not checked";
    (!shown.is_empty()).then(|| table(caption, [&["It …"], &["Number"]], &shown))
}
