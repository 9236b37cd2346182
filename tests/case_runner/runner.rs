//! `memgate test` over these cases.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};
use memgate_workbench::files::casefile::Case;
use serde_json::Value;

use super::cases::documents;

/// Every case passes there, too, and none is left out.
pub(crate) fn passes(cases: &[(String, Case)]) -> Result<()> {
    let chosen: BTreeSet<(&str, &str)> =
        cases.iter().map(|(file, case)| (file.as_str(), case.name.as_str())).collect();
    let folder = tempfile::tempdir()?;
    for (number, (file, document)) in documents()?.into_iter().enumerate() {
        let is_chosen = |case: &&Value| {
            let name = case.get("name").and_then(Value::as_str).unwrap_or_default();
            chosen.contains(&(file.as_str(), name))
        };
        let list: Vec<&Value> = document.as_array().into_iter().flatten().filter(is_chosen).collect();
        if !list.is_empty() {
            fs::write(folder.path().join(format!("{number}.json")), serde_json::to_vec(&list)?)?;
        }
    }
    let output = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(["test", "."])
        .current_dir(folder.path())
        .env_clear()
        .output()?;
    let summary = String::from_utf8_lossy(&output.stderr);
    let expected = format!("{} passed, 0 failed", cases.len());
    ensure!(output.status.code() == Some(0) && summary.contains(&expected), "expected {expected}: {summary}");
    Ok(())
}
