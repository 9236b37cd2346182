//! The door of the library, which also holds what must be true of every decision.

use anyhow::{Context, Result, ensure};
use memgate::admission;
use memgate::casefile::Case;
use memgate::casefile::compare::CaseOutcome;
use memgate::casefile::request;
use memgate::model::finding::Severity;
use memgate::model::request::{Operation, Request};
use memgate::model::snapshot::Snapshot;
use memgate::patch::Patch;
use serde_json::Value;

pub(crate) fn answer(case: &Case) -> Result<CaseOutcome> {
    let snapshot = request::state(case)?;
    let body = request::review(case).to_string();
    let review = admission::parse(&body)?;
    let admitted = admission::admit(&review.request, &snapshot)?;
    ensure!(
        admission::review(&review, &snapshot)? == admission::review(&review, &snapshot)?,
        "the same question has two answers"
    );
    oracle_agrees(case, &admitted)?;
    second_pass_changes_nothing(&review.request, &admitted, &snapshot)?;
    let findings = &admitted.decision.findings;
    let of = |severity| findings.iter().filter(move |finding| finding.severity == severity);
    Ok(CaseOutcome {
        allowed: admitted.allowed(),
        message: of(Severity::Deny).map(|finding| finding.message.as_str()).collect::<Vec<_>>().join(", "),
        warnings: of(Severity::Warn).map(|finding| finding.message.clone()).collect(),
        codes: Some(findings.iter().map(|finding| finding.code.name.to_owned()).collect()),
        changed: Some(!admitted.edits.is_empty() && admitted.allowed()),
        after: admitted.object.as_deref().map(serde_json::from_str).transpose()?,
    })
}

/// The object after the edits is what another implementation of RFC 6902 makes of it.
fn oracle_agrees(case: &Case, admitted: &admission::Admitted) -> Result<()> {
    if admitted.edits.is_empty() {
        return Ok(());
    }
    let mut object = case.object.clone().context("edits, and no object")?;
    let patch: json_patch::Patch = serde_json::from_value(serde_json::to_value(Patch(&admitted.edits))?)?;
    json_patch::patch(&mut object, &patch)?;
    let ours: Value = serde_json::from_str(admitted.object.as_deref().unwrap_or_default())?;
    ensure!(ours == object, "json_patch makes {object}, memgate {ours}");
    Ok(())
}

fn second_pass_changes_nothing(
    request: &Request<'_>,
    admitted: &admission::Admitted,
    snapshot: &Snapshot,
) -> Result<()> {
    if request.operation == Operation::Delete {
        return Ok(());
    }
    let again = Request { object: admitted.object.as_deref(), ..request.clone() };
    let again = admission::admit(&again, snapshot)?;
    ensure!(again.edits.is_empty(), "a second pass still changes something: {:?}", again.edits);
    Ok(())
}
