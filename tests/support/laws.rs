//! The exceptions of the two laws of decisions (`tests/laws.yaml`), each with the fact that allows it.

#![allow(dead_code, reason = "each test program reads the part of one law")]

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use anyhow::{Context, Result};
use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use serde_json::Value;

use super::cases;

/// The list of a law.
fn entries(law: &str) -> Result<Vec<Value>> {
    let path = cases::folder("tests/cases")?.with_file_name("laws.yaml");
    let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let documents = values(&Arc::new(Source::new("laws.yaml", &text)), &mut Vec::new());
    let document = documents.first().context("laws.yaml is empty")?;
    let entries = document.value().get(law).and_then(Value::as_array);
    let entries = entries.with_context(|| format!("laws.yaml has no list {law}"))?;
    for entry in entries {
        entry.get("fact").and_then(Value::as_str).with_context(|| format!("{law}: {entry} has no fact"))?;
    }
    Ok(entries.clone())
}

/// The cases that one law excepts, as `file: case`.
///
/// # Errors
/// When the file cannot be read, or an entry has no fact or no case.
pub(crate) fn exceptions(law: &str) -> Result<BTreeSet<String>> {
    let mut excepted = BTreeSet::new();
    for entry in entries(law)? {
        let cases = entry.get("cases").and_then(Value::as_array);
        let cases = cases.with_context(|| format!("{law}: {entry} has no cases"))?;
        excepted.extend(cases.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    Ok(excepted)
}

/// The names of what a law excepts, where the test of the law says which cases these are.
///
/// # Errors
/// When the file cannot be read, or an entry has no fact or no name.
pub(crate) fn facts(law: &str) -> Result<Vec<String>> {
    let name = |entry: Value| {
        let name = entry.get("which").and_then(Value::as_str).map(str::to_owned);
        name.with_context(|| format!("{law}: {entry} has no name"))
    };
    entries(law)?.into_iter().map(name).collect()
}
