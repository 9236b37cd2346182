//! The objects of an installation under names of their own.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::installed::{documents, memgate};

/// What `memgate manifests` prints for a namespace; what is not in a namespace bears the
/// namespace's name in front of its own. Definitions of kinds are left out: there is one of each in a cluster, and other
/// tests use them.
pub(crate) fn manifests(namespace: &str, arguments: &[&str]) -> Result<Vec<Value>> {
    let text = memgate(&[&["manifests", "-n", namespace], arguments].concat())?;
    let is_definition = |object: &Value| object["kind"] == "CustomResourceDefinition";
    let objects = documents(&text).into_iter().filter(|object| !is_definition(object));
    objects.map(|object| renamed(object, namespace)).collect()
}

/// The same as text.
pub(crate) fn text(objects: &[Value]) -> String {
    let documents: Vec<_> = objects.iter().map(Value::to_string).collect();
    documents.join("\n---\n")
}

/// The name that the two webhook configurations bear.
pub(super) fn name(namespace: &str) -> String {
    format!("{namespace}-memgate")
}

/// The one object of a kind.
pub(super) fn of_kind<'o>(objects: &'o [Value], kind: &str) -> Result<&'o Value> {
    let found = objects.iter().find(|object| object["kind"] == kind);
    found.with_context(|| format!("there is no {kind}"))
}

fn renamed(mut object: Value, namespace: &str) -> Result<Value> {
    let kind = object["kind"].as_str().context("an object has no kind")?.to_owned();
    if kind == "Namespace" || object["metadata"]["namespace"].is_string() {
        return Ok(object);
    }
    for pointer in ["/metadata/name", "/spec/policyName"] {
        rename(object.pointer_mut(pointer), namespace);
    }
    if kind == "ClusterRoleBinding" {
        rename(object.pointer_mut("/roleRef/name"), namespace);
    }
    if kind == "ClusterRole" {
        for rule in object["rules"].as_array_mut().into_iter().flatten() {
            rename(rule.pointer_mut("/resourceNames/0"), namespace);
        }
    }
    Ok(object)
}

fn rename(name: Option<&mut Value>, namespace: &str) {
    if let Some(name) = name
        && let Some(text) = name.as_str()
    {
        *name = json!(format!("{namespace}-{text}"));
    }
}
