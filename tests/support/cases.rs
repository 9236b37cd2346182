//! The project's own case files.

#![allow(dead_code, reason = "each test program uses the part of it that it needs")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use memgate_core::casefile::Case;
use memgate_core::casefile::read::read;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use serde_json::Value;

/// The folder of case files, found from every crate of the workspace.
fn folder() -> Result<PathBuf> {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("tests/cases"));
    folders.into_iter().find(|folder| folder.is_dir()).context("there is no tests/cases")
}

/// Every document below `tests/cases`, with its file as `family/face.yaml`.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn documents() -> Result<Vec<(String, Value)>> {
    let root = folder()?;
    let mut all = Vec::new();
    for path in files_below(&root)? {
        let file = path.strip_prefix(&root)?.display().to_string();
        let text = fs::read_to_string(&path).with_context(|| format!("{file} cannot be read"))?;
        let mut errors = Vec::new();
        let documents = values(&Arc::new(Source::new(&file, &text)), &mut errors);
        ensure!(errors.is_empty(), "{errors:?}");
        all.extend(documents.iter().map(|document| (file.clone(), document.value().clone())));
    }
    ensure!(!all.is_empty(), "there is no case in tests/cases");
    Ok(all)
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// Every case with its file.
///
/// # Errors
/// When a file cannot be read or is not a case file.
pub(crate) fn cases() -> Result<Vec<(String, Case)>> {
    let mut all = Vec::new();
    for (file, value) in documents()? {
        let cases = read(&value).map_err(|faults| anyhow::anyhow!("{faults:?}"));
        let cases = cases.with_context(|| format!("{file} is not a case file"))?;
        all.extend(cases.into_iter().map(|case| (file.clone(), case)));
    }
    Ok(all)
}
