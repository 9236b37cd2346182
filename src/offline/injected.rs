//! What memgate added to pods, read from the annotation that the mutating call leaves.

use std::fmt::Write as _;
use std::io::Read;
use std::sync::Arc;

use serde_json::Value;

use crate::family::inject::{INJECTED_ANNOTATION, marker};
use crate::manifest::document::{Document, parse};
use crate::manifest::error::Error;
use crate::model::pointer::Pointer;
use crate::offline::classify::{Class, classify, object_ref};
use crate::offline::collect::collect;
use crate::report::plain;

/// What was added to each of the pods, and of the pod templates of workloads, at `paths`, in a few
/// lines; and what could not be read.
#[must_use]
pub fn describe_all(paths: &[String], stdin: &mut dyn Read) -> (Vec<String>, Vec<Error>) {
    let collected = collect(paths, stdin);
    let mut errors = collected.errors;
    let mut descriptions = Vec::new();
    for source in collected.sources {
        let parsed = parse(&Arc::new(source));
        errors.extend(parsed.errors);
        descriptions.extend(parsed.documents.iter().filter_map(describe));
    }
    (descriptions, errors)
}

/// What was added to the pod of a document; `None` when it holds no pod.
fn describe(document: &Document) -> Option<String> {
    let template = match classify(document.group(), document.kind()) {
        Class::Object if document.kind() == "Pod" => "",
        Class::Workload { template } => template,
        Class::Object | Class::PassedOver => return None,
    };
    let pod = document.value().pointer(template)?;
    let title = object_ref(document, document.namespace().unwrap_or_default()).title();
    let title = plain(&title);
    let annotation = Pointer::root().key("metadata").key("annotations").key(INJECTED_ANNOTATION);
    let annotation = pod.pointer(annotation.as_str()).and_then(Value::as_str);
    let mut text = String::new();
    match annotation.map(serde_json::from_str::<Value>) {
        None => text = format!("{title}: memgate added nothing\n"),
        Some(Ok(annotation)) => {
            for added in marker::objects(&annotation) {
                let _infallible = write!(text, "{title}: ");
                write_added(added, pod, &mut text);
            }
        }
        Some(Err(_)) => {
            let _infallible = writeln!(
                text,
                "{title}: the annotation {INJECTED_ANNOTATION} was not written by memgate: it is no JSON"
            );
        }
    }
    Some(text)
}

/// What one family added.
fn write_added(annotation: &Value, pod: &Value, text: &mut String) {
    let known = |key| plain(annotation.get(key).and_then(Value::as_str).unwrap_or("unknown"));
    let _infallible = writeln!(
        text,
        "memory of {}, added by memgate {} (family {})",
        memories(annotation),
        known("version"),
        known("family")
    );
    for (container, variables) in annotation.get("env").and_then(Value::as_object).into_iter().flatten() {
        let _infallible = writeln!(text, "  container {}:", plain(container));
        for variable in variables.as_array().into_iter().flatten().filter_map(Value::as_str) {
            let _infallible =
                writeln!(text, "    {}{}", plain(variable), current_value(pod, container, variable));
        }
    }
}

/// The memory resources: one, or a list of them.
fn memories(annotation: &Value) -> String {
    let names: Vec<&str> = match annotation.get("memory") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if names.is_empty() { "unknown".to_owned() } else { plain(&names.join(", ")).into_owned() }
}

/// What the container sees now: the last entry of the name counts.
fn current_value(pod: &Value, container: &str, variable: &str) -> String {
    let is_named = |value: &&Value, name: &str| value.get("name").and_then(Value::as_str) == Some(name);
    let lists = ["/spec/containers", "/spec/initContainers"];
    let mut containers = lists.iter().filter_map(|list| pod.pointer(list)?.as_array()).flatten();
    let container = containers.find(|value| is_named(value, container));
    let mut env = container.and_then(|container| container.get("env")?.as_array()).into_iter().flatten();
    let Some(entry) = env.rfind(|value| is_named(value, variable)) else {
        return " is no longer there".to_owned();
    };
    let text = |pointer| entry.pointer(pointer).and_then(Value::as_str);
    match (text("/valueFrom/secretKeyRef/name"), text("/valueFrom/secretKeyRef/key")) {
        (Some(name), Some(key)) => format!(" from key {} of Secret {}", plain(key), plain(name)),
        _ => format!("={}", plain(text("/value").unwrap_or_default())),
    }
}
