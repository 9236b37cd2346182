//! Every case of `tests/cases` through the library, with what must be true of every decision.
//!
//! A trial is named `library: file: case`.

#[path = "../../../tests/support/case_trials.rs"]
mod case_trials;
#[path = "../../../tests/support/cases.rs"]
mod cases;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use case_trials::Way;
use libtest_mimic::Arguments;
use memgate_core::admission;
use memgate_core::casefile::Case;
use memgate_core::casefile::compare::CaseOutcome;
use memgate_core::casefile::request;
use memgate_core::model::finding::Severity;
use memgate_core::model::request::{Occasion, Operation, Request};
use memgate_core::model::snapshot::Snapshot;
use memgate_core::patch::Patch;
use serde_json::Value;

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let trials = case_trials::trials(&[Way { name: "library", answer, takes: |_| true }])?;
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn answer(case: &Case) -> Result<CaseOutcome> {
    let snapshot = request::state(case)?;
    let body = request::review(case).to_string();
    let mut review = admission::parse(&body)?;
    let user = review.request.occasion.user;
    review.request.occasion = Occasion { user, ..case.occasion };
    let admitted = admission::admit(&review.request, &snapshot)?;
    let answer = admission::review(&review, &snapshot)?;
    ensure!(answer == admission::review(&review, &snapshot)?, "the same question has two answers");
    let told = CaseOutcome::from_review(&serde_json::from_slice(&answer)?, case.object.as_ref());
    another_implementation_agrees(case, &admitted)?;
    second_pass_changes_nothing(&review.request, &admitted, &snapshot)?;
    let findings = &admitted.decision.findings;
    let of = |severity| findings.iter().filter(move |finding| finding.severity == severity);
    Ok(CaseOutcome {
        allowed: admitted.allowed(),
        message: told.map_err(anyhow::Error::msg)?.message,
        warnings: of(Severity::Warn).map(|finding| finding.message.clone()).collect(),
        codes: Some(findings.iter().map(|finding| finding.code_name().to_owned()).collect()),
        changed: Some(!admitted.edits.is_empty() && admitted.allowed()),
        after: admitted.object.as_deref().map(serde_json::from_str).transpose()?,
    })
}

/// The object after the edits is what another implementation of RFC 6902 makes of it.
fn another_implementation_agrees(case: &Case, admitted: &admission::Admitted) -> Result<()> {
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
