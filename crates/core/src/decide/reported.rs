//! Selects the findings that are reported.

use memgate_model::decision::NotShown;
use memgate_model::finding::{Finding, Severity};
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

/// How many findings about one object are reported. More would fill the answer and help no reader.
pub(super) const MAX_REPORTED: usize = 50;

/// Up to this many findings are sorted before they are selected. Of more, the rules find those in front first,
/// and sorting all would take longer than finding them.
const MAX_SORTED: usize = 400;

/// Drops the findings about the effects of a change that is refused.
pub(super) fn drop_when_refused(findings: &mut Vec<Finding>) {
    if findings.iter().any(Finding::is_denial) {
        findings.retain(|finding| !finding.when_allowed);
    }
}

/// Keeps the findings that are reported, in document order: denials before warnings, of each the first ones.
pub(super) fn select(findings: &mut Vec<Finding>, object: &Tree) -> NotShown {
    let sort = |findings: &mut Vec<Finding>| {
        findings.sort_by_cached_key(|finding| object.document_position(&finding.pointer));
    };
    if findings.len() <= MAX_SORTED {
        sort(findings);
        return keep_first(findings);
    }
    let not_shown = keep_first(findings);
    sort(findings);
    not_shown
}

/// Keeps the findings that are reported, in their order: denials before warnings, warnings before notes, of each
/// the first ones. Dropped notes are not counted.
pub(super) fn keep_first(findings: &mut Vec<Finding>) -> NotShown {
    let mut room = MAX_REPORTED;
    let [denials, warnings, _] = [Severity::Deny, Severity::Warn, Severity::Note].map(|severity| {
        let mut dropped = 0;
        let mut left = room;
        findings.retain(|finding| {
            let keep = finding.severity != severity || left > 0;
            if finding.severity == severity {
                left = left.saturating_sub(1);
                dropped += usize::from(!keep);
            }
            keep
        });
        room = left;
        dropped
    });
    NotShown { denials, warnings }
}

/// The sort key of a pointer into an object whose fields are sorted by name, as the apiserver sends them.
pub(super) fn position(pointer: &Pointer) -> Vec<(usize, String)> {
    pointer.tokens().map(|token| (token.parse().unwrap_or(0), token.into_owned())).collect()
}
