//! What a decision says of what is larger than what memgate reads, and how many of its findings it tells.

use crate::family::common::OVER_LIMIT;
use crate::model::decision::{Decision, Untold};
use crate::model::finding::{Finding, Phase, Severity};
use crate::model::pointer::Pointer;
use crate::model::reason::Reason;
use crate::model::request::{Operation, Request};
use crate::model::tree::Tree;
use crate::model::work::{Limit, MAX_WORDED, OverLimit, Stop, Work};

/// How many findings are told about one object. Nobody reads more, and each costs bytes in every answer.
pub(super) const MAX_FINDINGS_TOLD: usize = 50;

/// The decision about a resource that ended before its time; `None` if it did not. What the stored
/// object has too much of as well, as those in `old` say who read it, only warns, so that it can still be mended,
/// labelled and deleted; and so does all that is `unchanged`.
pub(super) fn ended_resource<const N: usize>(
    request: &Request<'_>,
    work: &Work<'_>,
    old: [&Work<'_>; N],
    unchanged: bool,
) -> Option<Decision> {
    let over = match work.stopped()? {
        Stop::Cancelled => return Some(Decision::pass(Reason::Cancelled)),
        Stop::OverLimit(over) => over,
    };
    let findings = match request.operation {
        Operation::Delete | Operation::Connect => Vec::new(),
        Operation::Create | Operation::Update => {
            let finding = too_much(&over);
            let is_same = |stop: Option<Stop>| matches!(stop, Some(Stop::OverLimit(stored)) if stored.limit == over.limit);
            let stored = unchanged || old.into_iter().any(|work| is_same(work.stopped()));
            vec![if stored { Finding { severity: Severity::Warn, ..finding } } else { finding }]
        }
    };
    Some(Decision { findings, phase: Phase::Validate, ..Decision::pass(Reason::OverLimit) })
}

fn too_much(over: &OverLimit) -> Finding {
    let message = format!("{}: memgate reads {} at most", place(over), over.limit.at_most());
    Finding::deny(&OVER_LIMIT, over.pointer.clone(), message).help("make it smaller")
}

/// What is said where there is too much to compare an object with its schema to the end. Only the files that an
/// apiserver has not seen are compared, and what it would say of the rest is not known: so this only warns, and the
/// object is judged as in a cluster.
pub(super) fn of_schema(work: &Work<'_>) -> Option<Finding> {
    match work.stopped()? {
        Stop::Cancelled => None,
        Stop::OverLimit(over) => Some(Finding { severity: Severity::Warn, ..too_much(&over) }),
    }
}

/// What is said of an object whose defaults would make too large a patch.
pub(super) fn no_defaults() -> Finding {
    let message = format!("the object: its defaults need more than {}; it gets none", Limit::Patch.at_most());
    Finding::warn(&OVER_LIMIT, Pointer::root(), message).on_rewrite()
}

/// The decision about a pod that ended before its time; `None` if it did not, or the pod is nobody's. `known`
/// says whether a family knows the pod, `required` whether it asked to be refused rather than started without
/// its memory.
pub(super) fn ended_pod(work: &Work<'_>, known: bool, required: bool) -> Option<Decision> {
    let over = match work.stopped()? {
        Stop::Cancelled => return Some(Decision::pass(Reason::Cancelled)),
        Stop::OverLimit(over) => over,
    };
    if !known && !required {
        return None;
    }
    let (place, most) = (place(&over), over.limit.at_most());
    let message = match over.limit {
        Limit::Patch => format!("{place}: its memory needs more than {most}; it gets nothing"),
        _ => format!("{place}: memgate reads {most} at most; the pod gets no memory"),
    };
    let finding = Finding::warn(&OVER_LIMIT, over.pointer, message);
    let severity = if required { Severity::Deny } else { Severity::Warn };
    let findings = vec![Finding { severity, ..finding }];
    Some(Decision { findings, required, ..Decision::pass(Reason::OverLimit) })
}

fn place(over: &OverLimit) -> String {
    let field = over.pointer.field();
    if field.is_empty() { "the object".to_owned() } else { field }
}

/// Whether one of these findings refuses the request.
pub(super) fn denies(findings: &[Finding]) -> bool {
    findings.iter().any(is_denial)
}

fn is_denial(finding: &Finding) -> bool {
    finding.severity == Severity::Deny
}

/// Leaves the findings that are told, in document order: denials before warnings, and of each those in front.
pub(super) fn keep_told(findings: &mut Vec<Finding>, object: &Tree) -> Untold {
    let sort = |findings: &mut Vec<Finding>| {
        findings.sort_by_cached_key(|finding| object.document_position(&finding.pointer));
    };
    // Of very many, those in front are the ones that the rules find first: sorting all would cost more than
    // finding them.
    if findings.len() <= 2 * MAX_WORDED as usize {
        sort(findings);
        return keep_first(findings);
    }
    let untold = keep_first(findings);
    sort(findings);
    untold
}

/// Leaves the findings that are told, in their order: denials before warnings, warnings before notes, and of each
/// those in front. Notes that are left out are not counted.
pub(super) fn keep_first(findings: &mut Vec<Finding>) -> Untold {
    if findings.len() <= MAX_FINDINGS_TOLD {
        return Untold::default();
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (denials, warnings) = (count(Severity::Deny), count(Severity::Warn));
    let told_denials = denials.min(MAX_FINDINGS_TOLD);
    let told_warnings = warnings.min(MAX_FINDINGS_TOLD - told_denials);
    let told_notes = MAX_FINDINGS_TOLD - told_denials - told_warnings;
    let (mut denials_left, mut warnings_left, mut notes_left) = (told_denials, told_warnings, told_notes);
    findings.retain(|finding| {
        let left = match finding.severity {
            Severity::Deny => &mut denials_left,
            Severity::Warn => &mut warnings_left,
            Severity::Note => &mut notes_left,
        };
        let told = *left > 0;
        *left = left.saturating_sub(1);
        told
    });
    Untold { denials: denials - told_denials, warnings: warnings - told_warnings }
}

/// Where a pointer stands, in an object whose fields are sorted by name, as the apiserver sends them.
pub(super) fn position(pointer: &Pointer) -> Vec<(usize, String)> {
    pointer.tokens().map(|token| (token.parse().unwrap_or(0), token.into_owned())).collect()
}
