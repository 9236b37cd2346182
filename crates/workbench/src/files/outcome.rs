//! The outcome of a run beside its findings: notes about what was read and judged, the data of a page, and whether the
//! run fails.

use std::collections::BTreeSet;

use crate::build::judged_by::Changes;
use crate::build::unit::NotBuilt;
use crate::files::inputs::Inputs;
use crate::files::judge::Checked;
use crate::files::map_verdicts::judge;
use crate::files::passed_over::Why;
use crate::files::place::table;
use crate::paths::PROJECT_FILE;
use crate::report::{ObjectRef, Page, PassedOver, Report, counted, plain};
use memgate_core::state::cluster_snapshot::Assumed;
use memgate_model::finding::{Cause, Code, Severity};
use memgate_platforms::common;
use memgate_platforms::message::and_more;

/// What the commands read, in the notes about it.
pub const MANIFEST: &str = "manifest";

/// The most units that were not built with a note of their own.
const MAX_NOT_BUILT_IN_NOTES: usize = 10;

/// The most files named in the note about those that were not read.
const MAX_UNREAD_IN_NOTE: usize = 5;

/// The most names in the notes about what a branch changes in what it is judged by.
const MAX_CHANGES_IN_NOTE: usize = 50;

/// The most objects named in the note about what the inputs do not hold.
const MAX_NAMES_IN_NOTE: usize = 3;

/// The most lines about what was passed over.
const MAX_PASSED_OVER_IN_NOTES: usize = 20;

/// The warnings about what was not judged, or was judged on an assumption. Of an unknown field nothing was judged either.
const NOT_JUDGED: [&Code; 4] =
    [&common::KIND_MISSPELT, &common::NOT_AN_OBJECT, &common::STATE_UNREADABLE, &common::VERSION_UNKNOWN];

/// The notes of that kind.
const NOTES: [&Code; 2] = [&common::VALUE_UNKNOWN, &common::POD_TEMPLATE_UNREAD];

/// What makes a run fail besides denials.
#[derive(Debug, Clone, Copy)]
pub struct FailOn {
    /// Warnings do.
    pub warnings: bool,
    /// So does what was passed over or assumed.
    pub strict: bool,
    /// Inputs without an object to check do not.
    pub allows_empty: bool,
}

impl FailOn {
    /// Whether a report holds what makes the run fail.
    pub fn is_in(self, report: &Report<'_>) -> bool {
        let unknown_fields = memgate_platforms::ALL.map(|family| family.definitions.stand_in.unknown_field);
        let mut not_judged = NOT_JUDGED.into_iter().chain(unknown_fields);
        let missed = missed(&report.passed_over).next().is_some()
            || report.unreached > 0
            || not_judged.any(|code| report.has(code));
        // These are notes: the manifests cannot say the value, memgate does not judge what is inside of an object, nothing
        // used a file, or a rule of the definition cannot be evaluated.
        let is_unknown = report
            .findings
            .iter()
            .any(|it| NOTES.contains(&it.finding.code) || it.finding.cause == Cause::Unavailable);
        let is_blind = self.strict && (missed || is_unknown || report.assumed > 0);
        let has_warned = self.warnings && report.count(Severity::Warn) > 0;
        report.denied > 0 || report.count(Severity::Deny) > 0 || has_warned || is_blind
    }
}

/// The notes of a run.
pub fn notes(checked: &Checked, report: &Report<'_>, fail_on: FailOn) -> Vec<String> {
    let mut notes = unread_notes(&checked.inputs, MANIFEST);
    notes.extend(report.not_shown_lines());
    notes.extend(unknown_note(report));
    if fail_on.strict {
        notes.extend(missed_notes(&report.passed_over));
    }
    if report.assumed > 0 {
        let count = counted(report.assumed, "finding");
        notes.push(format!(
            "{count} assumed: labels of Namespaces are not known (give their manifests, --namespace-labels, or \
             namespaces in {PROJECT_FILE})"
        ));
    }
    notes
}

/// The same report with the data of a page, if the map for one was made. A report without a table of its own gets one in
/// the page.
pub fn with_page<'r>(report: Report<'r>, command: &'static str, checked: &'r Checked) -> Report<'r> {
    let page = checked.map.as_ref().map(|map| {
        let mut map = map.clone();
        judge(&mut map, checked);
        let table = report.table.is_none().then(|| table(checked));
        Page { command, map, table, base: &checked.inputs.changes.reference }
    });
    Report { page, ..report }
}

/// The line about inputs without an object to check: where it looked.
pub fn nothing_found(checked: &Checked) -> String {
    let Inputs { sources, not_built, empty, .. } = &checked.inputs;
    let read = match sources.len() {
        0 if !not_built.is_empty() => ": nothing was built".to_owned(),
        0 if empty.is_empty() => String::new(),
        0 => format!(": {}", no_file(MANIFEST, &and_more(empty, MAX_UNREAD_IN_NOTE))),
        files => format!(" in {}", counted(files, "file")),
    };
    plain(&format!("nothing to check was found{read}")).into_owned()
}

/// The notes about directories and globs without a file to read, and about files in them that were passed by.
pub fn unread_notes(inputs: &Inputs, what: &str) -> Vec<String> {
    let mut notes = change_notes(&inputs.changes);
    // Where nothing at all was read, the error says so.
    let is_told = inputs.sources.is_empty() && what == MANIFEST;
    for path in inputs.empty.iter().filter(|_| !is_told) {
        notes.push(no_file(what, path));
    }
    if !inputs.skipped.is_empty() {
        let (count, shown) =
            (counted(inputs.skipped.len(), "file"), and_more(&inputs.skipped, MAX_UNREAD_IN_NOTE));
        notes.push(format!("{count} not read: {}", plain(&shown)));
    }
    for NotBuilt { name, is_chart, why, .. } in inputs.not_built.iter().take(MAX_NOT_BUILT_IN_NOTES) {
        let what = if *is_chart { "chart" } else { "kustomization" };
        notes.push(format!("not checked: {what} {}: {}", plain(name), plain(why)));
    }
    let more = inputs.not_built.len().saturating_sub(MAX_NOT_BUILT_IN_NOTES);
    if more > 0 {
        notes.push(format!("not checked: {more} more kustomizations and charts"));
    }
    if !inputs.unreached.is_empty() {
        let (count, shown) =
            (counted(inputs.unreached.len(), "file"), and_more(&inputs.unreached, MAX_UNREAD_IN_NOTE));
        notes.push(format!(
            "not checked: {count} that no kustomization and no chart here builds: {}",
            plain(&shown)
        ));
    }
    let mut off = inputs.switched_off.clone();
    if !inputs.lowered.is_empty() {
        let codes: Vec<String> =
            inputs.lowered.iter().map(|(code, count)| format!("{code} ({count})")).collect();
        off.push(format!("findings of {} (rules)", and_more(&codes, MAX_UNREAD_IN_NOTE)));
    }
    if !off.is_empty() {
        let off = off.join("; ");
        notes.push(format!("switched off by the choices of the repository: {}", plain(&off)));
    }
    notes.extend(inputs.assumed.iter().flat_map(assumed_notes));
    notes
}

/// The notes about what a branch changes in what it is judged by, and about what it removes.
fn change_notes(Changes { reference, later, new, removed }: &Changes) -> Vec<String> {
    let note = |(names, words): (&BTreeSet<String>, String)| {
        let names: Vec<String> = names.iter().cloned().collect();
        (!names.is_empty()).then(|| format!("{words}: {}", plain(&and_more(&names, MAX_CHANGES_IN_NOTE))))
    };
    let later_words =
        format!("changed by this branch and counted as in {reference}; takes effect after the merge");
    let new_words = "new in this branch, and counted".to_owned();
    let all = [(later, later_words), (new, new_words), (removed, "removed by this branch".to_owned())];
    all.into_iter().filter_map(note).collect()
}

/// The words about paths without a file to read.
fn no_file(what: &str, paths: &str) -> String {
    format!("no {what} (*.yaml, *.yml, *.json) in {}", plain(paths))
}

/// What looked as if it was to be checked: all but what memgate never judges, and documents that are not objects. Those
/// that are likely objects have a warning of their own.
fn missed<'r>(passed_over: &'r [PassedOver<'_>]) -> impl Iterator<Item = &'r PassedOver<'r>> {
    let on_purpose = [Why::OtherKind, Why::NotAnObject("")].into_iter().chain(Why::DECIDED);
    let on_purpose: Vec<&str> = on_purpose.map(|why| why.words().0).collect();
    passed_over.iter().filter(move |it| !on_purpose.contains(&it.why))
}

/// Where each object stands that looked as if it was to be checked, and why it was not; the first ones of a long list.
fn missed_notes(passed_over: &[PassedOver<'_>]) -> Vec<String> {
    let note = |PassedOver { file, line, object_ref, reason: words, .. }: &PassedOver<'_>| {
        let title = object_ref.map_or_else(|| "a document".to_owned(), ObjectRef::title);
        format!("{}:{line}: not checked: {} {words}", plain(file), plain(&title))
    };
    // Units have notes of their own.
    let told = || missed(passed_over).filter(|it| !["chart", "kustomization"].contains(&it.why));
    let mut notes: Vec<String> = told().take(MAX_PASSED_OVER_IN_NOTES).map(note).collect();
    let more = told().count().saturating_sub(MAX_PASSED_OVER_IN_NOTES);
    if more > 0 {
        notes.push(format!("{more} more not checked"));
    }
    notes
}

/// The missing objects in one line; the first few of a long list.
fn unknown_note(report: &Report<'_>) -> Option<String> {
    let names: Vec<String> = report.unknown_objects().cloned().collect();
    let shown = and_more(&names, MAX_NAMES_IN_NOTE);
    let shown = plain(&shown);
    let note =
        format!("not among the inputs, so whether it is there is not known: {shown} (add it with --with)");
    (!names.is_empty()).then_some(note)
}

/// The notes about the cluster that was read, and about the kinds that were not.
fn assumed_notes(assumed: &Assumed) -> Vec<String> {
    let Assumed { taken, objects, namespaces, unknown } = assumed;
    let of_what = namespaces.as_ref().map_or_else(
        || "all namespaces".to_owned(),
        |names| format!("{} only", and_more(names, MAX_UNREAD_IN_NOTE)),
    );
    let objects = counted(*objects, "object");
    let mut notes = vec![format!("{objects} of {of_what} read from the cluster at {taken}")];
    for kind in unknown {
        notes.push(format!("not read, so references to it count as right: {kind}"));
    }
    notes.iter().map(|note| plain(note).into_owned()).collect()
}
