//! Findings as articles, one for each cause: who has it and where, and what the text report says of the first one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::{first, text};
use crate::report::text::plain_finding;
use crate::report::{LocatedFinding, ObjectRef, Report, counted};
use memgate_model::finding::Severity;
use memgate_model::kind::NAMESPACE;
use memgate_platforms::message::and_more;
use memgate_primitives::credential::{masked, masked_keys};
use memgate_primitives::plain_text::{plain_except, shown_name};

/// The most namespaces and files that an owner names.
const MAX_OWNERS: usize = 3;

/// The findings of one cause, at least one.
type FindingsOfCause<'f, 'r> = Vec<&'f LocatedFinding<'r>>;

/// The causes of one severity. Those that the platforms themselves would find wrong stand before those that break a policy,
/// and the ones of most objects before the others.
fn causes<'f, 'r>(report: &'f Report<'r>, severity: Severity) -> Vec<FindingsOfCause<'f, 'r>> {
    let (mut numbers, mut causes) = (BTreeMap::new(), Vec::<FindingsOfCause<'_, '_>>::new());
    for located in report.causes().filter(|it| it.finding.severity == severity) {
        let number = *numbers.entry((located.finding.code_name(), located.words())).or_insert(causes.len());
        match causes.get_mut(number) {
            Some(cause) => cause.push(located),
            None => causes.push(vec![located]),
        }
    }
    let is_of_policy = |cause: &FindingsOfCause<'_, '_>| cause.iter().any(|it| it.finding.policy.is_some());
    causes.sort_by_key(|cause| (is_of_policy(cause), Reverse(cause.len())));
    causes
}

/// The articles of one severity; `None` without any.
pub(super) fn of_severity(report: &Report<'_>, severity: Severity) -> Option<Markup> {
    let causes = causes(report, severity);
    let uncounted = report.count(severity).saturating_sub(causes.iter().map(Vec::len).sum());
    let [articles, rest] = first(&causes, "-o json", |cause| article(cause));
    (!causes.is_empty() || uncounted > 0).then(|| {
        html! {
            (articles)
            (rest)
            @if uncounted > 0 { p { (uncounted) " more of objects with very many findings are not listed." } }
        }
    })
}

fn article(cause: &[&LocatedFinding<'_>]) -> Markup {
    let Some(one) = cause.first() else { return html! {} };
    let all: Vec<_> = cause.iter().flat_map(|it| std::iter::once(*it).chain(&it.in_others)).collect();
    let name = one.finding.severity.name();
    let is_about_files = all.iter().all(|it| it.object_ref.kind.is_empty());
    let several = counted(all.len(), if is_about_files { "file" } else { "object" });
    let line =
        |it: &&LocatedFinding<'_>| html! { li data-object=(title(it)) { (title(it)) " " (place(it)) } };
    let [list, rest] = first(&all, "-o json", line);
    html! {
        article class={ "finding is-" (name) } data-severity=(name) data-objects=(all.len()) {
            h3 { span class=(name) { (name) } " " @if all.len() > 1 { (several) } @else { (title(one)) } }
            p class="quiet" {
                span data-part="owner" { (owner(&all)) } "; at " span data-part="place" { (place(one)) }
            }
            pre { (in_text(one)) }
            @if all.len() > 1 { details { summary { "All " (several) } ul { (list) } (rest) } }
        }
    }
}

/// A finding as the text report writes it, with no control character and no credential of an input, its path included.
fn in_text(located: &LocatedFinding<'_>) -> String {
    let text = plain_finding(located);
    plain_except(&masked_keys(&masked(text.trim_end())), |c| c == '\n').into_owned()
}

/// The name of what a finding is about.
fn title(located: &LocatedFinding<'_>) -> String {
    if located.object_ref.kind.is_empty() {
        text(located.location.file)
    } else {
        text(&located.object_ref.title())
    }
}

fn place(located: &LocatedFinding<'_>) -> Markup {
    html! { code { (text(located.location.file)) ":" (located.location.line) } }
}

/// The namespaces and the files of objects.
fn owner(all: &[&LocatedFinding<'_>]) -> Markup {
    let namespaces: BTreeSet<_> = all.iter().filter_map(|it| own_namespace(it)).collect();
    let namespaces: Vec<_> = namespaces.into_iter().map(|it| text(&shown_name(it))).collect();
    let files: BTreeSet<_> = all.iter().map(|it| it.location.file).collect();
    let files: Vec<_> = files.into_iter().map(text).collect();
    html! {
        @match namespaces.as_slice() {
            [] => {},
            [one] => { "namespace " strong { (one) } ", " },
            several => { "namespaces " strong { (and_more(several, MAX_OWNERS)) } ", " },
        }
        @if files.len() == 1 { "file " } @else { (files.len()) " files: " }
        code { (and_more(&files, MAX_OWNERS)) }
    }
}

/// The namespace of an object as policies match it: of a Namespace its own name.
fn own_namespace<'f>(located: &'f LocatedFinding<'_>) -> Option<&'f str> {
    let ObjectRef { kind, namespace, name, .. } = located.object_ref;
    let own: &str = if **kind == *NAMESPACE.kind { name } else { namespace };
    Some(own).filter(|it| !it.is_empty())
}
