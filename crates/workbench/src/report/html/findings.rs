//! Findings with their source lines, and the errors of inputs.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::budget::{Fitting, OTHERS, PAGES, fitting};
use super::{excerpt, text};
use crate::report::page::{self, url};
use crate::report::{InputError, LocatedFinding, Report, counted};
use memgate_model::finding::{Finding, Severity};

/// The most other places that are shown with a finding.
const MAX_RELATED: usize = 3;

/// Where the findings are that the page leaves out.
const ELSEWHERE: &str = "-o json lists all of them";

/// The findings of one severity, as far as they fit into this share; `None` without any. Those that are equal but for their
/// objects stand together.
pub(super) fn of_severity(report: &Report<'_>, severity: Severity, share: usize) -> Option<Markup> {
    let groups = groups(report.causes().filter(|it| it.finding.severity == severity));
    let shown = fitting(share, &groups, |group| finding(group));
    let listed: usize = groups.iter().map(Vec::len).sum();
    let more = listed - groups.iter().take(shown.count).map(Vec::len).sum::<usize>();
    let shown = Fitting { more, ..shown };
    let uncounted = report.count(severity).saturating_sub(listed);
    if shown.is_empty() && uncounted == 0 {
        return None;
    }
    Some(html! {
        (shown.all())
        (shown.rest(ELSEWHERE))
        @if uncounted > 0 { p { (uncounted) " more of objects with very many findings are not listed." } }
    })
}

/// Puts findings together that are equal but for their objects, at most so many that a group is a small part of a page.
fn groups<'f, 'r>(
    findings: impl Iterator<Item = &'f LocatedFinding<'r>>,
) -> Vec<Vec<&'f LocatedFinding<'r>>> {
    const MOST: usize = 200;
    let (mut numbers, mut groups) = (BTreeMap::new(), Vec::<Vec<_>>::new());
    for located in findings {
        let number = numbers.entry((located.finding.code_name(), located.words())).or_insert(groups.len());
        match groups.get_mut(*number).filter(|group| group.len() < MOST) {
            Some(group) => group.push(located),
            None => {
                *number = groups.len();
                groups.push(vec![located]);
            }
        }
    }
    groups
}

/// A finding with its source, and the places of others that are equal.
fn finding(group: &[&LocatedFinding<'_>]) -> Markup {
    let Some((located, others)) = group.split_first() else { return html! {} };
    let LocatedFinding { finding, object_ref, location, sets, namespaces, related, fingerprint, .. } =
        located;
    let name = finding.severity.name();
    // One that holds a credential is left out.
    let is_shown = |it: &String| {
        let is_page = it.starts_with("https://") || it.starts_with("http://");
        is_page && text(it) == *it
    };
    let address = url(finding).filter(is_shown);
    let place = format!("{}:{}:{}", text(location.file), location.line, location.column);
    let at_admission = finding.policy.as_ref().and_then(|policy| policy.at_admission);
    html! {
        article class={ "finding is-" (name) } id={ "finding-" (fingerprint) } {
            h3 {
                span class=(name) { (name) } " "
                a href={ "#" (page_id(finding)) } { code { (text(finding.code_name())) } }
                @if !object_ref.kind.is_empty() { " " (text(&object_ref.title())) }
            }
            p { (text(&finding.message())) }
            p class="quiet" {
                code { (place) }
                @if let Some(file) = located.source_file { ", rendered from " code { (text(file)) } }
                @if !namespaces.is_empty() { ", in the namespaces " (text(&namespaces.join(", "))) }
                @if !sets.is_empty() { ", in the sets " (text(&sets.join(", "))) }
            }
            (excerpt::line(location))
            @for other in related.iter().take(MAX_RELATED) {
                p class="quiet" {
                    code { (text(other.location.file)) ":" (other.location.line) } " " (text(&other.label))
                }
                (excerpt::line(&other.location))
            }
            @if let Some(words) = at_admission { p { "At admission: " (words.words()) } }
            @if let Some(help) = finding.help_text() { p { "Help: " (text(&help)) } }
            @if let Some(address) = &address { p { a href=(address) rel="noreferrer" { (address) } } }
            @if !others.is_empty() {
                p { "The same in " (counted(others.len(), "other place")) ":" }
                ul class="quiet" { @for other in others { (place_of_equal(other)) } }
            }
        }
    }
}

/// The place of a finding that is equal to one with its source.
fn place_of_equal(located: &LocatedFinding<'_>) -> Markup {
    html! {
        li id={ "finding-" (located.fingerprint) } {
            code { (text(located.location.file)) ":" (located.location.line) }
            @if !located.object_ref.kind.is_empty() { " " (text(&located.object_ref.title())) }
        }
    }
}

/// The id of the page of a finding's code, or of the type of its rule.
fn page_id(finding: &Finding) -> String {
    let rule = finding.policy.as_ref().map(|policy| policy.rule.type_name);
    rule.map_or_else(|| format!("code-{}", finding.code.name), |name| format!("rule-{name}"))
}

/// The pages of all codes in the report, each closed until it is looked at; `None` without findings.
pub(super) fn pages(report: &Report<'_>) -> Option<Markup> {
    let findings = report.causes().map(|located| located.finding);
    let pages: BTreeMap<String, &Finding> = findings.map(|finding| (page_id(finding), finding)).collect();
    let shown = fitting(PAGES, pages, page);
    (!shown.is_empty()).then(|| html! { (shown.all()) (shown.rest("memgate explain prints all of them")) })
}

fn page((id, finding): (String, &Finding)) -> Markup {
    let name = finding.policy.as_ref().map_or(finding.code.name, |policy| policy.rule.type_name);
    html! {
        details id=(id) {
            summary { code { (name) } }
            pre { (page::text(finding).trim_end()) }
        }
    }
}

/// The errors of inputs; `None` without any.
pub(super) fn errors(report: &Report<'_>) -> Option<Markup> {
    let shown = fitting(OTHERS, &report.errors, error);
    (!shown.is_empty()).then(|| html! { (shown.all()) (shown.rest(ELSEWHERE)) })
}

fn error(error: &InputError<'_>) -> Markup {
    html! {
        article class="finding is-deny" {
            h3 {
                span class="deny" { "error" }
                @if let Some(file) = error.file { " " (text(file)) }
                @if let Some((line, column)) = error.position { ":" (line) ":" (column) }
            }
            p { (text(&error.advice())) }
            @if let Some(location) = &error.location { (excerpt::line(location)) }
        }
    }
}
