//! `memgate review`: the state as a file, the review on standard input, the answer and the exit code out.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use memgate::casefile::Case;
use memgate::casefile::compare::CaseOutcome;
use memgate::casefile::request;
use serde_json::{Value, json};

pub(crate) fn answer(case: &Case) -> Result<CaseOutcome> {
    let folder = tempfile::tempdir()?;
    let state = folder.path().join("state.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": case.state});
    fs::write(&state, if case.state.is_empty() { String::new() } else { list.to_string() })?;
    let mut child = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(["review", "--with"])
        .arg(&state)
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
