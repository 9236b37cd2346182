//! The tiles, the matrix of policies and namespaces, the dates to come, and the tables of numbers, changes, exemptions and
//! what was not judged.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::budget::{Fitting, OTHERS, fitting};
use super::findings::{Articles, NONE, Shown, by_policy, namespaces, policy_word, words};
use super::{text, word};
use crate::report::html_data::{ExemptionState, Gone, Page, ShownExemption};
use crate::report::table::{Numbers, Row, Table};
use crate::report::{LocatedFinding, Report, changes, counted, percent_encoded};
use memgate_model::finding::Severity;
use memgate_primitives::plain_text::shown_name;

/// The numbers that decide what to do next, as tiles. Each leads to its part, if the page has it.
pub(super) fn tiles(report: &Report<'_>, page: &Page<'_>, has: impl Fn(&str) -> bool) -> Markup {
    let ending = page.exemptions.iter().filter(|it| it.state == ExemptionState::EndsSoon).count();
    let tiles = [
        ("denied", report.denied, ["object denied", "objects denied"], "deny", "denials"),
        ("warnings", report.count(Severity::Warn), ["warning", "warnings"], "warn", "warnings"),
        (
            "ending",
            ending,
            ["exemption that ends within 30 days", "exemptions that end within 30 days"],
            "warn",
            "timeline",
        ),
        ("not-judged", report.passed_over.len(), ["not judged"; 2], "", "not-judged"),
    ];
    html! {
        ul class="tiles" {
            @for (tile, count, [one, several], class, part) in tiles {
                @let words = if count == 1 { one } else { several };
                @let class = (count > 0 && !class.is_empty()).then_some(class);
                li data-tile=(tile) {
                    data value=(count) class=[class] { (count) } " "
                    @if count > 0 && has(part) { a href={ "#" (part) } { (words) } } @else { (words) }
                }
            }
        }
    }
}

/// The most namespaces of the matrix.
const MAX_COLUMNS: usize = 60;

/// The most cells of the matrix, so that it has its share of the page whatever the names are.
const MAX_CELLS: usize = 1_500;

/// The degrees of shading.
const SHADES: usize = 4;

/// The findings of each policy in each namespace as a matrix, whose cells lead to them; `None` without findings. Of many it
/// has those with the most findings.
pub(super) fn matrix(articles: &Articles<'_, '_>) -> Option<Markup> {
    let (mut policies, mut namespaces) = (BTreeMap::<_, usize>::new(), BTreeMap::<_, usize>::new());
    let all = by_policy(articles);
    for ((policy, namespace), shown) in &all {
        *policies.entry(*policy).or_default() += shown.count;
        *namespaces.entry(*namespace).or_default() += shown.count;
    }
    let (columns, more_columns) = most(namespaces, MAX_COLUMNS);
    let (rows, more_rows) = most(policies, MAX_CELLS / columns.len().max(1));
    let highest = all.values().map(|shown| shown.count).max()?;
    let shown = |namespace: &str| {
        if namespace.is_empty() { "no namespace".to_owned() } else { text(&shown_name(namespace)) }
    };
    let left_out = [(more_rows, "policies"), (more_columns, "namespaces")];
    let left_out =
        left_out.iter().filter(|(more, _)| *more > 0).map(|(more, of)| format!("{more} more {of}"));
    let left_out: Vec<_> = left_out.collect();
    Some(html! {
        div class="scroll" role="region" aria-label="Findings by policy and namespace" tabindex="0" {
            table {
                caption { "Findings by policy and namespace. A number shows its findings." }
                thead {
                    tr {
                        th scope="col" { "Policy" }
                        @for column in &columns {
                            th scope="col" class="number" data-namespace=(namespace_word(&shown_name(column))) { (shown(column)) }
                        }
                    }
                }
                tbody {
                    @for row in &rows {
                        @let policy = policy_word(*row);
                        tr data-policy=(policy) {
                            th scope="row" { (policy_name(*row)) }
                            @for column in &columns {
                                (cell(&policy, &namespace_word(&shown_name(column)), all.get(&(*row, *column)), highest))
                            }
                        }
                    }
                }
            }
        }
        @if !left_out.is_empty() {
            p {
                strong { (left_out.join(" and ")) " with fewer findings are not shown here" }
                "; -o json lists all of them."
            }
        }
    })
}

/// The keys with the highest numbers, as many as there may be, in their order; and how many others there are.
fn most<K: Ord + Copy>(all: BTreeMap<K, usize>, most: usize) -> (Vec<K>, usize) {
    let mut keys: Vec<_> = all.into_iter().collect();
    keys.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = keys.len().saturating_sub(most);
    keys.truncate(most);
    let mut keys: Vec<_> = keys.into_iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    (keys, more)
}

/// A policy in words; without one they are the rules of the platforms.
fn policy_name(policy: Option<&str>) -> String {
    policy.map_or_else(|| "rules of the platforms".to_owned(), text)
}

/// A namespace, as it is shown, as attributes and addresses have it.
pub(super) fn namespace_word(shown: &str) -> String {
    if shown.is_empty() { NONE.to_owned() } else { word(shown) }
}

/// A cell of the matrix, which leads to its findings. The darker it is, the more there are.
fn cell(policy: &str, namespace: &str, shown: Option<&Shown>, highest: usize) -> Markup {
    let count = shown.map_or(0, |shown| shown.count);
    let list = |of: fn(&Shown) -> &BTreeSet<&'static str>| shown.map(|it| words(of(it), usize::MAX).0);
    let (severities, platforms) = (list(|it| &it.severities), list(|it| &it.platforms));
    let shade = (count * SHADES).div_ceil(highest);
    html! {
        td class={ "number shade-" (shade) } data-policy=(policy) data-namespace=(namespace) data-count=(count)
            data-severity=(severities.unwrap_or_default()) data-platform=(platforms.unwrap_or_default()) {
            @if count > 0 {
                a href={ "#policy=" (percent_encoded(policy, "-._")) "&namespace=" (percent_encoded(namespace, "-._")) } {
                    (count)
                }
            }
        }
    }
}

/// The dates that are to come, in their order: from when on policies deny, and when exemptions end. `None` without any.
pub(super) fn timeline(page: &Page<'_>) -> Option<Markup> {
    let promotions = page.promotions.iter().map(|it| (&it.at, it.days, html! {
        "Policy " strong { (text(&it.policy)) } " becomes stricter: admission " strong { (to(it.to)) } " for "
        (text(&it.rules))
    }, "promotion", &it.policy, [].as_slice(), [].as_slice(), Some(severity(it.to))));
    let exemptions = page.exemptions.iter().map(|it| (&it.expires_at, it.days, html! {
        "Exemption " strong { (text(&it.name)) } " from policy " (text(&it.policy)) ": " (text(&it.rules)) " for "
        (text(&it.target))
        @if it.state == ExemptionState::Later { ", begins " (day(&it.from)) }
    }, "exemption", &it.policy, it.namespaces.as_slice(), it.platforms.as_slice(), None));
    let mut all: Vec<_> = promotions.chain(exemptions).collect();
    all.sort_by(|one, two| one.0.cmp(two.0));
    let shown = fitting(OTHERS, all, |(at, days, what, kind, policy, namespaces, platforms, severity)| {
        let (namespaces, is_cut) = words(namespaces.iter().map(|it| word(it)), MAX_NAMESPACES);
        let class = match days {
            ..=0 => "quiet",
            1..=30 => "warn",
            _ => "",
        };
        html! {
            li data-kind=(kind) data-until=(day(at)) data-days=(days) data-policy=(word(policy))
                data-namespace=[(kind == "exemption").then_some(namespaces)] data-cut=[is_cut.then_some("")]
                data-severity=[severity] data-platform=[all_of(platforms)] {
                time datetime=(at) { (day(at)) } " " strong class=[(!class.is_empty()).then_some(class)] { (left(kind, days)) }
                " " span { (what) }
            }
        }
    });
    (!shown.is_empty()).then(|| {
        html! {
            ol class="timeline" { (shown.all()) }
            (shown.rest("kubectl get memorypolicies,memorypolicyexemptions -A lists those of a cluster"))
        }
    })
}

/// The most bytes of the namespaces of an exemption.
const MAX_NAMESPACES: usize = 2_000;

/// The platforms of an exemption; `None` for all of them.
fn all_of(platforms: &[String]) -> Option<String> {
    (!platforms.is_empty()).then(|| words(platforms.iter().map(|it| word(it)), usize::MAX).0)
}

/// The severity of the findings of an action.
fn severity(action: &str) -> &'static str {
    match action {
        "deny" => Severity::Deny.name(),
        "warn" => Severity::Warn.name(),
        _ => Severity::Note.name(),
    }
}

/// What an action does, as a verb.
fn to(action: &str) -> &str {
    match action {
        "deny" => "denies",
        "warn" => "warns",
        _ => "reports",
    }
}

/// The day of a time in RFC 3339.
fn day(time: &str) -> &str {
    time.split_once('T').map_or(time, |(day, _)| day)
}

/// How many days are left, in words.
fn left(kind: &str, days: i64) -> String {
    let counted = |days: u64| if days == 1 { "1 day".to_owned() } else { format!("{days} days") };
    match (kind, days) {
        (_, 0) => "ended today".to_owned(),
        (_, ..0) => format!("ended {} ago", counted(days.unsigned_abs())),
        ("promotion", _) => format!("in {}", counted(days.unsigned_abs())),
        _ => format!("{} left", counted(days.unsigned_abs())),
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
            tr data-policy=(policy_word(*policy)) data-namespace=(namespace_word(&shown_name(namespace))) {
                th scope="row" { (policy_name(*policy)) }
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

/// What changes: objects whose verdict other policies change, or what a branch brings and takes away. `None` without a
/// change, and for a command that does not compare.
pub(super) fn changes(report: &Report<'_>, page: &Page<'_>) -> Option<Markup> {
    match (&report.changes, &page.gone) {
        (Some(changes), _) => Some(verdicts(changes)),
        (None, Some(gone)) => of_branch(report, gone),
        (None, None) => None,
    }
}

/// The objects whose verdict changes.
fn verdicts(changes: &[changes::Change<'_>]) -> Markup {
    const COLUMNS: [&str; 6] = ["Object", "Owner", "Change", "Before", "After", "Place"];
    let shown = fitting(OTHERS, changes::sorted(changes), |change| {
        let namespace = &change.object_ref.namespace;
        html! {
            tr data-change=(if change.to >= change.from { "new" } else { "gone" }) data-namespace=(namespace_word(&shown_name(namespace))) {
                th scope="row" { (text(&change.object_ref.title())) }
                td { (text(change.owner.unwrap_or_default())) }
                td { (change.words()) }
                td { (change.from.name()) }
                td { (change.to.name()) }
                td { code { (text(change.file)) ":" (change.line) } }
            }
        }
    });
    html! {
        @if shown.is_empty() {
            p { "The verdict of no object changes." }
        } @else {
            (table("Each object with its verdict before and after", [&COLUMNS, &[]], &shown))
            (shown.rest("-o json lists all of them"))
        }
    }
}

/// The findings that a branch brings, and those of its base that it does not have, each list closed: what is new is also
/// below.
fn of_branch(report: &Report<'_>, gone: &[Gone]) -> Option<Markup> {
    let is_new = |it: &&LocatedFinding<'_>| it.finding.severity != Severity::Note;
    let new: Vec<_> = report.denials_first().into_iter().filter(is_new).collect();
    let all = new.len() + gone.len();
    let shown_new = fitting(OTHERS / 2, new, |located| {
        let (namespaces, is_cut) = words(namespaces(located), MAX_NAMESPACES);
        let policy = located.finding.policy.as_ref().map_or(NONE, |policy| &policy.rule.policy);
        let place = located.location.line_place();
        let cells = [&located.finding.message(), &*place, &located.object_ref.title()];
        let platforms = located.object_ref.platforms(located.finding.code.name);
        let data = (namespaces, words(platforms, usize::MAX).0, policy);
        changed("new", located.finding.severity, located.finding.code_name(), data, cells, is_cut)
    });
    let shown_gone = fitting(OTHERS / 2, gone, |it| {
        let Gone { severity, place, object, namespace, platforms, code, message } = it;
        let policy = code.strip_prefix("policy/").and_then(|it| it.split('/').next()).unwrap_or(NONE);
        let data = (namespace_word(&shown_name(namespace)), words(platforms, usize::MAX).0, policy);
        changed("gone", *severity, code, data, [message, place, object], false)
    });
    (all > 0).then(|| {
        html! {
            @for (shown, words) in [(&shown_new, "New: "), (&shown_gone, "Gone: ")] {
                @if !shown.is_empty() {
                    details {
                        summary { (words) (counted(shown.count + shown.more, "finding")) }
                        ul { (shown.all()) }
                        (shown.rest("-o json lists all that are new"))
                    }
                }
            }
        }
    })
}

/// A finding that is new or gone, in one line.
fn changed(
    change: &str,
    severity: Severity,
    code: &str,
    (namespaces, platforms, policy): (String, String, &str),
    [message, place, object]: [&str; 3],
    is_cut: bool,
) -> Markup {
    html! {
        li data-change=(change) data-severity=(severity.name()) data-policy=(word(policy)) data-namespace=(namespaces)
            data-platform=(platforms) data-cut=[is_cut.then_some("")] {
            span class=(severity.name()) { (severity.name()) } " " (text(object)) ": " (text(message)) " "
            code { (text(place)) } " " code { (text(code)) }
        }
    }
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
    let (namespaces, is_cut) = words(it.namespaces.iter().map(|it| word(it)), MAX_NAMESPACES);
    html! {
        tr data-policy=(word(&it.policy)) data-namespace=(namespaces) data-cut=[is_cut.then_some("")]
            data-platform=[all_of(&it.platforms)] {
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

/// How many objects and documents were not judged, by reason; `None` without any.
pub(super) fn not_judged(report: &Report<'_>) -> Option<Markup> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for passed_over in &report.passed_over {
        *reasons.entry(passed_over.reason).or_default() += 1;
    }
    let shown = fitting(OTHERS, reasons, |(reason, count)| {
        html! { tr { th scope="row" { (reason) } td class="number" { (count) } } }
    });
    let caption = "Objects and documents, by the reason why they were not judged";
    (!shown.is_empty()).then(|| table(caption, [&["It …"], &["Number"]], &shown))
}
