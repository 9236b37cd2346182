//! The objects of an installation in a namespace of its own.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::installed::{MANIFESTS, documents, memgate};

/// What `memgate manifests` prints for a namespace; what is not in a namespace bears the
/// namespace's name at the end of its own. Definitions of kinds are left out: all installations of a cluster share them, and other tests
/// use them.
pub(crate) fn manifests(namespace: &str, arguments: &[&str]) -> Result<Vec<Value>> {
    let text = memgate(&[&MANIFESTS[..], &["-n", namespace], arguments].concat())?;
    let is_shared = |object: &Value| object["kind"] == "CustomResourceDefinition";
    Ok(documents(&text).into_iter().filter(|object| !is_shared(object)).collect())
}

/// The same as text.
pub(crate) fn text(objects: &[Value]) -> String {
    let documents: Vec<_> = objects.iter().map(Value::to_string).collect();
    documents.join("\n---\n")
}

/// The name that the two webhook configurations bear.
pub(super) fn name(namespace: &str) -> String {
    format!("memgate-{namespace}")
}

/// The one object of a kind.
pub(super) fn of_kind<'o>(objects: &'o [Value], kind: &str) -> Result<&'o Value> {
    let found = objects.iter().find(|object| object["kind"] == kind);
    found.with_context(|| format!("there is no {kind}"))
}
