//! `check --fix` over the failing example of each code: a fix is final, adds no finding, and changes nothing else.
//! `tests/ui/check` shows its output.

#![expect(clippy::expect_used, reason = "a test stops where something is wrong")]

#[path = "support/needs.rs"]
mod needs;

use std::fs;
use std::path::Path;
use std::process::Command;

use memgate_core::decide::codes;
use serde_json::Value;

/// What `check` found in a file: how much would be denied, and all that it wrote to standard error.
fn check(folder: &Path, flags: &[&str]) -> (u64, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(["check", "example.yaml", "-o", "json"])
        .args(flags)
        .current_dir(folder)
        .env_clear()
        .output()
        .expect("it runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let denied = report.pointer("/summary/denied").and_then(Value::as_u64).expect("a number");
    (denied, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Codes whose examples are fixed.
const FIXED: [&str; 3] = ["arkonis/backend-unknown", "arkonis/unknown-field", "sympozium/access-duplicate"];

/// A part of the codes.
#[test]
fn what_is_fixed_stays_fixed_and_nothing_is_worse() {
    fixes_one_code_of(6);
}

#[test]
#[ignore = "needs minutes"]
fn every_fix_is_final_and_nothing_is_worse() {
    fixes_one_code_of(1);
}

fn fixes_one_code_of(every: usize) {
    let mut fixed = Vec::new();
    let chosen = |(number, code): &(usize, &&str)| number % every == 0 || FIXED.contains(code);
    for (_, code) in codes::all(&memgate_platforms::ALL)
        .enumerate()
        .filter(|(number, code)| chosen(&(*number, &code.name)))
    {
        let Some((_, section)) = code.page.text().split_once("## Failing example\n\n```yaml\n") else {
            continue;
        };
        let (example, _) = section.split_once("```").expect("an end");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("example.yaml");
        fs::write(&file, example).expect("a file");
        let (before, _) = check(folder.path(), &[]);
        let (after, told) = check(folder.path(), &["--fix"]);
        let text = fs::read_to_string(&file).expect("a file");
        assert!(after <= before, "{}: {after} denied instead of {before}\n{text}", code.name);
        let is_told = ["nothing to fix", "nothing to check"].iter().any(|it| told.contains(it));
        assert_eq!(text == example, is_told, "{}: {told}", code.name);
        if text != example {
            fixed.push(code.name);
            let lines = |text: &str| text.lines().count();
            assert!(lines(&text) > lines(example) / 2, "{}:\n{text}", code.name);
        }
        let (_, told) = check(folder.path(), &["--fix"]);
        let is_told = ["nothing to fix", "nothing to check"].iter().any(|it| told.contains(it));
        assert!(is_told, "{}: {told}", code.name);
        assert_eq!(fs::read_to_string(&file).expect("a file"), text, "{}", code.name);
    }
    for code in FIXED {
        assert!(fixed.contains(&code), "{code} is not among {fixed:?}");
    }
}
