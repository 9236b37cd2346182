//! Every case of `tests/cases` through the door of `memgate review`: the state as a file, the review
//! on standard input, the answer and the exit code out.

#![expect(clippy::expect_used, reason = "a test stops where something is wrong")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use memgate::casefile::judge::{Outcome, judge};
use memgate::casefile::read::read;
use memgate::casefile::{Case, request};
use memgate::manifest::collect::collect;
use memgate::manifest::document::values;
use serde_json::{Value, json};

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let collected = collect(&[root.display().to_string()], &mut std::io::empty());
    assert!(collected.errors.is_empty(), "{:?}", collected.errors);
    let mut trials = Vec::new();
    for source in collected.sources.into_iter().map(Arc::new) {
        let file =
            Path::new(source.name()).strip_prefix(&root).expect("is below the root").display().to_string();
        let mut errors = Vec::new();
        for document in values(&source, &mut errors) {
            for case in read(document.value()).expect("is a case file") {
                let name = format!("{file}: {}", case.name);
                trials.push(Trial::test(name, move || run(&case)));
            }
        }
        assert!(errors.is_empty(), "{errors:?}");
    }
    assert!(!trials.is_empty(), "no case in {}", root.display());
    libtest_mimic::run(&arguments, trials).exit();
}

fn run(case: &Case) -> Result<(), Failed> {
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
    child.stdin.take().expect("is piped").write_all(body.as_bytes())?;
    let output = child.wait_with_output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !stderr.is_empty() {
        return Err(format!("standard error is not empty: {stderr}").into());
    }
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let outcome = Outcome::from_review(&answer, case.object.as_ref())?;
    let mut failures = judge(&case.expect, &outcome);
    let code = i32::from(!outcome.allowed);
    if output.status.code() != Some(code) {
        failures.push(format!("expected exit code {code}, got {:?}", output.status.code()));
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}
