//! `memgate review`: the state as a file, the review on standard input, the answer and the exit code out.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use memgate_model::request::{Occasion, Point};
use memgate_workbench::files::casefile::Case;
use memgate_workbench::files::casefile::compare::CaseOutcome;
use memgate_workbench::files::casefile::request;
use serde_json::{Value, json};

/// Whether the command has an answer: it refuses state with a policy that cannot be in force, which the other ways
/// have to live with.
pub(crate) fn takes(case: &Case) -> bool {
    let is_policy = |object: &&Value| object["kind"] == "MemoryPolicy";
    case.state
        .iter()
        .filter(is_policy)
        .all(|object| memgate_policy::read::policy(object, &memgate_platforms::ALL).1.is_empty())
}

pub(crate) fn answer(case: &Case) -> Result<CaseOutcome> {
    let folder = tempfile::tempdir()?;
    let state = folder.path().join("state.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": case.state});
    fs::write(&state, if case.state.is_empty() { String::new() } else { list.to_string() })?;
    let mut child = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(["review", "--with"])
        .arg(&state)
        .args(occasion(case))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let body = request::review(case).to_string();
    child.stdin.take().context("standard input is not piped")?.write_all(body.as_bytes())?;
    let output = child.wait_with_output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(stderr.is_empty(), "standard error is not empty: {stderr}");
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let outcome = CaseOutcome::from_review(&answer, case.object.as_ref()).map_err(anyhow::Error::msg)?;
    let code = i32::from(!outcome.allowed);
    ensure!(output.status.code() == Some(code), "expected exit code {code}, got {}", output.status);
    Ok(outcome)
}

/// The arguments for where and when the case is decided.
fn occasion(case: &Case) -> Vec<String> {
    let Occasion { point, now, .. } = case.occasion;
    let point = (point != Point::Admission).then(|| format!("--point={}", point.name()));
    let at = (now != Occasion::default().now).then(|| format!("--at={now}"));
    point.into_iter().chain(at).collect()
}
