//! `memgate explain-pod`: what memgate added to a pod, and from where.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use serde_json::Value;

use crate::cli::ExitStatus;
use crate::cli::findings::fault;
use crate::cli::input::subject;
use crate::cli::role::{Role, role};
use crate::cli::terminal::Terminal;
use crate::manifest::document::{Document, parse};
use crate::model::pointer::Pointer;
use crate::offline::collect::collect;
use crate::report::plain;

/// Where the mutating call writes down what it added.
const ANNOTATION: &str = "memgate.dev/injected";

/// Tell what memgate added to a pod, and from where
///
/// Reads the annotation memgate.dev/injected of pods, or of the pod templates of workloads.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl get pod scout-0 -o yaml | memgate explain-pod
  memgate explain-pod pod.yaml

Exit codes: 0 told, 2 an input cannot be read or parsed, 3 no pod was found.")]
pub struct Args {
    /// Files, directories, globs, or - for standard input
    #[arg(value_name = "PATH", default_value = "-")]
    paths: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// When the text cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let collected = collect(&args.paths, &mut io::stdin().lock());
    let mut errors = collected.errors;
    let mut text = String::new();
    for source in collected.sources {
        let parsed = parse(&Arc::new(source));
        errors.extend(parsed.errors);
        parsed.documents.iter().filter_map(tell).for_each(|told| text.push_str(&told));
    }
    terminal.out(text.as_bytes())?;
    for error in &errors {
        terminal.fault(&fault(error));
    }
    if !errors.is_empty() {
        return Ok(ExitStatus::Failed);
    }
    if text.is_empty() {
        terminal.note("error: no pod was found\n  what counts: pods, and workloads with a pod template");
        return Ok(ExitStatus::Nothing);
    }
    Ok(ExitStatus::Clean)
}

/// What was added to the pod of a document; `None` when it holds none.
fn tell(document: &Document) -> Option<String> {
    let template = match role(document.group(), document.kind()) {
        Role::Whole if document.kind() == "Pod" => "",
        Role::Template(pointer) => pointer,
        Role::Whole | Role::None => return None,
    };
    let pod = document.value().pointer(template)?;
    let title = subject(document, document.namespace().unwrap_or_default()).title();
    let mut text = format!("{}: ", plain(&title));
    let annotation = Pointer::root().key("metadata").key("annotations").key(ANNOTATION);
    match pod.pointer(annotation.as_str()).and_then(Value::as_str) {
        None => text.push_str("memgate added nothing\n"),
        Some(annotation) => match serde_json::from_str(annotation) {
            Ok(injected) => added(&injected, pod, &mut text),
            Err(_) => {
                let _ =
                    writeln!(text, "the annotation {ANNOTATION} was not written by memgate: it is no JSON");
            }
        },
    }
    Some(text)
}

/// The memory resources: one, or a list of them.
fn memories(injected: &Value) -> String {
    let names: Vec<&str> = match injected.get("memory") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if names.is_empty() { "unknown".to_owned() } else { plain(&names.join(", ")).into_owned() }
}

fn added(injected: &Value, pod: &Value, text: &mut String) {
    let word = |key| plain(injected.get(key).and_then(Value::as_str).unwrap_or("unknown"));
    let _ = writeln!(
        text,
        "memory of {}, added by memgate {} (family {})",
        memories(injected),
        word("version"),
        word("family")
    );
    for (container, variables) in injected.get("env").and_then(Value::as_object).into_iter().flatten() {
        let _ = writeln!(text, "  container {}:", plain(container));
        for variable in variables.as_array().into_iter().flatten().filter_map(Value::as_str) {
            let _ = writeln!(text, "    {}{}", plain(variable), value(pod, container, variable));
        }
    }
}

/// What the container sees now: the last entry of the name.
fn value(pod: &Value, container: &str, variable: &str) -> String {
    let named = |value: &&Value, name: &str| value.get("name").and_then(Value::as_str) == Some(name);
    let lists = ["/spec/containers", "/spec/initContainers"];
    let mut containers = lists.iter().filter_map(|list| pod.pointer(list)?.as_array()).flatten();
    let container = containers.find(|value| named(value, container));
    let mut env = container.and_then(|container| container.get("env")?.as_array()).into_iter().flatten();
    let Some(entry) = env.rfind(|value| named(value, variable)) else {
        return " is no longer there".to_owned();
    };
    let text = |pointer| entry.pointer(pointer).and_then(Value::as_str);
    match (text("/valueFrom/secretKeyRef/name"), text("/valueFrom/secretKeyRef/key")) {
        (Some(name), Some(key)) => format!(" from key {} of Secret {}", plain(key), plain(name)),
        _ => format!("={}", plain(text("/value").unwrap_or_default())),
    }
}
