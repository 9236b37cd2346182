//! The state that all servers know: one agent, its memory, and as many other memories as wanted.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

/// Among how many namespaces the other memories are.
const NAMESPACES: usize = 100;

/// Writes a file with so many objects, as JSON texts between lines of `---`.
pub(crate) fn write(folder: &Path, objects: usize) -> Result<PathBuf> {
    let mut text = agent().to_string();
    let others = (2..objects)
        .map(|number| memory(&format!("notes-{number}"), &format!("team-{}", number % NAMESPACES)));
    for object in std::iter::once(memory("notes", "team-a")).chain(others) {
        write!(text, "\n---\n{object}")?;
    }
    let path = folder.join(format!("{objects}.yaml"));
    fs::write(&path, text)?;
    Ok(path)
}

/// The agent that claims the memory `notes`.
pub(crate) fn agent() -> Value {
    json!({
        "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkAgent",
        "metadata": {"name": "scout", "namespace": "team-a"},
        "spec": {"model": "m", "systemPrompt": "You scout.", "memoryRef": {"name": "notes"}},
    })
}

/// A memory from which a pod gets five variables.
pub(crate) fn memory(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory",
        "metadata": {"name": name, "namespace": namespace, "labels": {"team": namespace}},
        "spec": {
            "backend": "vector-store",
            "vectorStore": {
                "provider": "qdrant", "endpoint": "http://qdrant.vectors.svc:6333", "collection": name,
                "ttlSeconds": 86_400,
            },
        },
    })
}
