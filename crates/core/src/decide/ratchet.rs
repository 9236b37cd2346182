//! Compares the denials of an update with those of the stored object.

use memgate_model::family::{Family, Subject};
use memgate_model::finding::{Finding, Severity};
use memgate_model::request::{Operation, Request};
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::OverLimit;
use memgate_primitives::members::Members;

/// Turns each denial that the stored object already deserves into a warning, so that a stored object can still be
/// labelled, annotated and freed of its finalizers. Returns the limit that the findings about the stored object
/// exceed.
/// Source: Kubernetes documentation, CRD validation ratcheting.
pub(super) fn apply(
    family: &Family,
    subject: &Subject<'_>,
    request: &Request<'_>,
    state: &mut StateReader<'_>,
    findings: &mut [Finding],
) -> Option<OverLimit> {
    let (old, budget) = (subject.old?, state.budget());
    if !budget.has_ended() {
        if family.validation.ratchets || !findings.iter().any(Finding::is_denial) {
            return None;
        }
        if old == subject.object {
            warn(findings, |_| true);
            return None;
        }
    }
    let stored = Subject { operation: Operation::Create, object: old, old: None, ..*subject };
    let (stored, over) = budget.apart(request.old_object.map_or(0, str::len), || {
        budget.only_denials(|| (family.faces.validate)(&stored, state))
    });
    let known: Members<_> =
        stored.iter().filter(|finding| finding.is_denial()).map(Finding::fingerprint).collect();
    warn(findings, |finding| known.contains(&finding.fingerprint()));
    over
}

/// Turns the denials that are stored already into warnings.
fn warn(findings: &mut [Finding], is_stored: impl Fn(&Finding) -> bool) {
    for finding in findings.iter_mut().filter(|finding| finding.is_denial()) {
        if is_stored(finding) {
            finding.severity = Severity::Warn;
        }
    }
}
