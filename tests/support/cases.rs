//! The project's own case files.

#![allow(dead_code, reason = "each test program uses the part of it that it needs")]

use std::{io, path::Path, sync::Arc};

use anyhow::{Context, Result, ensure};
use memgate::{
    casefile::{Case, read::read},
    manifest::document::values,
    offline::collect::collect,
};
use serde_json::Value;

/// Every document below `tests/cases`, with the file that it stands in, `family/face.yaml`.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn documents() -> Result<Vec<(String, Value)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let collected = collect(&[root.display().to_string()], &mut io::empty());
    ensure!(collected.errors.is_empty(), "{:?}", collected.errors);
    let mut all = Vec::new();
    for source in collected.sources.into_iter().map(Arc::new) {
        let file = Path::new(source.name()).strip_prefix(&root)?.display().to_string();
        let mut errors = Vec::new();
        let documents = values(&source, &mut errors);
        ensure!(errors.is_empty(), "{errors:?}");
        all.extend(documents.iter().map(|document| (file.clone(), document.value().clone())));
    }
    ensure!(!all.is_empty(), "there is no case in tests/cases");
    Ok(all)
}

/// Every case with the file that it stands in.
///
/// # Errors
/// When a file cannot be read or is no case file.
pub(crate) fn cases() -> Result<Vec<(String, Case)>> {
    let mut all = Vec::new();
    for (file, value) in documents()? {
        let cases = read(&value).map_err(|faults| anyhow::anyhow!("{faults:?}"));
        let cases = cases.with_context(|| format!("{file} is no case file"))?;
        all.extend(cases.into_iter().map(|case| (file.clone(), case)));
    }
    Ok(all)
}
