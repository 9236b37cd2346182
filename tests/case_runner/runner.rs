//! `memgate test` over all case files.

use std::process::Command;

use anyhow::{Result, ensure};

use super::cases::cases;

/// Every case passes there, too, and none is left out.
pub(crate) fn passes() -> Result<()> {
    let output = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(["test", "tests/cases"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_clear()
        .output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    let summary = format!("{} passed, 0 failed", cases()?.len());
    ensure!(output.status.code() == Some(0) && told.contains(&summary), "expected {summary}: {told}");
    Ok(())
}
