//! What is suggested and shown.

use std::path::Path;

use serde_json::Value;

use crate::client::Client;
use crate::page::block;
use crate::workspace::Workspace;

/// An object up to the place of the cursor, `|`.
fn cursor(text: &str) -> (String, (usize, usize)) {
    let (before, after) = text.split_once('|').expect("a cursor");
    let line = before.matches('\n').count();
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1);
    (format!("{before}{after}"), (line, column))
}

fn suggestions(editor: &mut Client, file: &Path, text: &str) -> Vec<Value> {
    let (text, place) = cursor(text);
    editor.open(file, &text);
    editor.complete(file, place)
}

fn labels(suggested: &[Value]) -> Vec<&str> {
    suggested.iter().filter_map(|item| item["label"].as_str()).collect()
}

#[test]
#[ignore = "needs node and npm"]
fn fields_are_suggested_with_their_defaults_and_meaning() {
    let workspace = Workspace::new();
    let mut editor = workspace.with_settings();
    let suggested = suggestions(
        &mut editor,
        &workspace.file("deploy/memory.yaml"),
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: a}\nspec:\n  backend: redis\n  redis:\n    secretRef: {name: a}\n    |\n",
    );
    assert_eq!(labels(&suggested), ["ttlSeconds", "maxEntries"]);
    assert_eq!(suggested[0]["insertText"], "ttlSeconds: ${1:3600}", "the default of the definition");
    assert_eq!(suggested[1]["insertText"], "maxEntries: ${1:0}", "what counts without it");
    let meaning = suggested[0]["documentation"].as_str().unwrap_or_default();
    assert!(meaning.starts_with("How long entries are kept"), "{meaning}");
}

#[test]
#[ignore = "needs node and npm"]
fn values_are_suggested() {
    let workspace = Workspace::new();
    let mut editor = workspace.with_settings();
    for (number, (text, expected)) in [
        (
            "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: a}\nspec:\n  backend: |\n",
            &["in-context", "vector-store", "redis"][..],
        ),
        (
            "apiVersion: v1\nkind: Secret\n---\napiVersion: orloj.dev/v1\nkind: Agent\nmetadata: {name: a}\nspec:\n  prompt: a\n  memory:\n    ref: b\n    allow:\n      - |\n",
            &["read", "write", "search", "list", "ingest"],
        ),
        (
            "apiVersion: sympozium.ai/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  agents: {default: {model: a}}\n  skills:\n    - skillPackRef: |\n",
            &["memory"],
        ),
        ("apiVersion: core.orka.ai/v1alpha1\nkind: |\n", &["Agent", "Task", "MemoryPolicy"]),
        (
            "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: a}\nspec:\n  rules:\n    - id: a\n      fields:\n        - path: |\n",
            &["collection", "endpoint.host", "secrets[].name"],
        ),
        (
            "apiVersion: policy.memgate.dev/v1alpha1\nkind: MemoryPolicy\nmetadata: {name: a}\nspec:\n  rules:\n    - id: a\n      anyOf:\n        - fields:\n            - path: |\n",
            &["endpoint.tls"],
        ),
        ("failOn: |\n", &["deny", "warn"]),
        ("rules:\n  - codes:\n      - ark/schema\n    severity: |\n", &["deny", "warn", "note", "\"off\""]),
        ("rules:\n  - codes:\n      - |\n", &["arkonis/redis-required", "memgate/object-repeated"]),
        ("rules:\n  - |\n", &["codes", "paths", "severity"]),
    ]
    .into_iter()
    .enumerate()
    {
        let is_project = text.starts_with("failOn") || text.starts_with("rules");
        let file = if is_project { format!("{number}/.memgate.yaml") } else { format!("agents/{number}.yaml") };
        let suggested = suggestions(&mut editor, &workspace.file(&file), text);
        for value in expected {
            assert!(labels(&suggested).contains(value), "{text}: {:?}", labels(&suggested));
        }
    }
}

#[test]
#[ignore = "needs node and npm"]
fn a_field_is_explained() {
    let workspace = Workspace::new();
    let mut editor = workspace.without_settings();
    let modeline = block("The schemas", "yaml");
    let file = workspace.file("deploy/redis.yaml");
    let (text, place) = cursor(
        "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: a}\nspec:\n  back|end: redis\n  redis: {secretRef: {name: a}}\n",
    );
    editor.open(&file, &format!("{modeline}{text}"));
    let shown = editor.hover(&file, (place.0 + 1, place.1));
    assert!(shown.contains("Where the memory lives"), "{shown}");
    for value in ["in-context", "vector-store", "redis"] {
        assert!(shown.contains(value), "{shown}");
    }
    let shown = editor.hover(&file, (place.0 + 2, place.1));
    assert!(shown.contains("Required when backend is redis"), "{shown}");
}
