//! Paths to what is checked and what is known.
//!
//! ```text
//! paths ──collect, parse──▶ documents ──role──▶ Task (a request to decide) + Snapshot (the state)
//! ```
//!
//! All documents are state for one another. A workload stands for the pod that it would create.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Map, Value};

use crate::cli::role::{Role, role};
use crate::cli::settings::SettingsArgs;
use crate::family;
use crate::manifest;
use crate::manifest::document::{Document, fill_type_meta, parse, values};
use crate::manifest::source::Source;
use crate::model::pointer::Pointer;
use crate::model::request::{Operation, Request};
use crate::model::settings::Settings;
use crate::model::snapshot::{DEFAULT_NAMESPACE, Snapshot};
use crate::offline::collect::collect;
use crate::report::Subject;
use crate::state;

/// What is read, checked and changed.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// Files, directories, globs, or - for standard input
    ///
    /// YAML with any number of documents, JSON, and Lists. In directories: *.yaml, *.yml and
    /// *.json at any depth. All of them are state for one another.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,

    #[command(flatten)]
    state: StateArgs,
}

/// What is known besides.
#[derive(Debug, clap::Args)]
pub struct StateArgs {
    /// More objects of the cluster, that are not checked themselves; can be repeated
    #[arg(long = "with", value_name = "PATH", help_heading = "Input")]
    pub with: Vec<String>,

    /// The namespace of objects that name none [default: default]
    #[arg(short, long, value_name = "NAME", help_heading = "Input")]
    pub namespace: Option<String>,

    /// What decisions depend on besides objects.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

impl StateArgs {
    /// The settings, with the namespace of what names none.
    ///
    /// # Errors
    /// When the settings file is no good.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings { namespace: self.namespace.clone(), ..self.settings.settings()? })
    }
}

/// Everything that was read.
#[derive(Debug, Default)]
pub struct Input {
    /// The texts to check, in the order of the arguments.
    pub sources: Vec<Arc<Source>>,
    /// The requests that stand for what is checked, in document order.
    pub tasks: Vec<Task>,
    /// What decisions may look at.
    pub snapshot: Snapshot,
    /// What was passed over, and how often: kinds, and why something is no object.
    pub passed_over: BTreeMap<String, usize>,
    /// What could not be read.
    pub errors: Vec<manifest::error::Error>,
    /// Directories and globs without a manifest.
    pub empty: Vec<String>,
}

/// One object to decide about.
#[derive(Debug)]
pub struct Task {
    /// Where it stands.
    pub document: Document,
    /// Where in the document the object stands: empty, or the pod template of a workload.
    pub template: Pointer,
    /// What reports call it.
    pub subject: Subject,
    group: String,
    version: String,
    kind: String,
    /// The namespace that somebody named; empty when nobody did.
    namespace: String,
    /// The object as JSON text.
    object: String,
}

impl Task {
    /// The request to create the object.
    #[must_use]
    pub fn request(&self) -> Request<'_> {
        let name = if self.template.as_str().is_empty() { self.document.name() } else { "" };
        Request {
            operation: Operation::Create,
            group: self.group.as_str().into(),
            version: self.version.as_str().into(),
            kind: self.kind.as_str().into(),
            subresource: "".into(),
            namespace: self.namespace.as_str().into(),
            name: name.into(),
            object: Some(&self.object),
            old_object: None,
        }
    }
}

/// Reads everything that the arguments name.
///
/// # Errors
/// When standard input is named twice, or the settings are no good. What cannot be read is part of
/// the result.
pub fn load(args: &InputArgs) -> anyhow::Result<Input> {
    stdin_once(args.paths.iter().chain(&args.state.with))?;
    let namespace = args.state.namespace.as_deref();
    let mut input = Input { snapshot: state::empty(args.state.settings()?), ..Input::default() };
    read_state(&args.state.with, &mut input)?;
    for source in read(&args.paths, &mut input) {
        let parsed = parse(&source);
        input.errors.extend(parsed.errors);
        for other in parsed.non_objects {
            *input.passed_over.entry(format!("a document that {}", other.reason)).or_default() += 1;
        }
        for document in parsed.documents {
            add_state(document.value(), &mut input.snapshot)?;
            take(document, namespace, &mut input)?;
        }
        input.sources.push(source);
    }
    Ok(input)
}

/// Reads only what is known. An empty file is good: nothing is known.
///
/// # Errors
/// When standard input is named twice. What cannot be read is part of the result.
pub fn load_state(paths: &[String], settings: Settings) -> anyhow::Result<Input> {
    stdin_once(paths.iter())?;
    let mut input = Input { snapshot: state::empty(settings), ..Input::default() };
    read_state(paths, &mut input)?;
    Ok(input)
}

fn stdin_once<'a>(paths: impl Iterator<Item = &'a String>) -> anyhow::Result<()> {
    anyhow::ensure!(
        paths.filter(|path| *path == "-").count() <= 1,
        "standard input (-) can be read only once"
    );
    Ok(())
}

fn read(paths: &[String], input: &mut Input) -> Vec<Arc<Source>> {
    let collected = collect(paths, &mut io::stdin().lock());
    input.errors.extend(collected.errors);
    input.empty.extend(collected.empty);
    collected.sources.into_iter().map(Arc::new).collect()
}

fn read_state(paths: &[String], input: &mut Input) -> anyhow::Result<()> {
    for source in read(paths, input) {
        for document in values(&source, &mut input.errors) {
            add_state(document.value(), &mut input.snapshot)?;
        }
    }
    Ok(())
}

/// Adds an object, or each of a List or of a plain list of objects.
fn add_state(value: &Value, snapshot: &mut Snapshot) -> anyhow::Result<()> {
    let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let items = match value {
        Value::Array(items) => Some(items),
        _ => value.get("items").filter(|_| kind.ends_with("List")).and_then(Value::as_array),
    };
    let Some(items) = items else {
        return state::add(snapshot, value).context("failed to read an object");
    };
    items.iter().cloned().try_for_each(|mut item| {
        fill_type_meta(&mut item, api_version, kind);
        add_state(&item, snapshot)
    })
}

fn take(document: Document, namespace: Option<&str>, input: &mut Input) -> anyhow::Result<()> {
    let (group, kind) = (document.group().to_owned(), document.kind().to_owned());
    let template = match role(&group, &kind) {
        Role::Whole => Some(Pointer::root()),
        Role::Template(pointer) => Some(Pointer::new(pointer)),
        Role::None => None,
    };
    let pod = template.as_ref().and_then(|pointer| document.value().pointer(pointer.as_str()));
    let pod = pod.filter(|pod| pod.is_object() && concerns(&group, &kind, pod));
    let (Some(template), Some(pod)) = (&template, pod) else {
        *input.passed_over.entry(kind).or_default() += 1;
        return Ok(());
    };
    let subject = subject(&document, namespace.unwrap_or(DEFAULT_NAMESPACE));
    let namespace = document.namespace().or(namespace).unwrap_or_default().to_owned();
    let task = if template.as_str().is_empty() {
        let object = serde_json::to_string(pod)?;
        let version = document.version().to_owned();
        Task { template: Pointer::root(), subject, group, version, kind, namespace, object, document }
    } else {
        let object = serde_json::to_string(&pod_from(pod))?;
        let (template, version, kind) = (template.clone(), "v1".to_owned(), "Pod".to_owned());
        Task { template, subject, group: String::new(), version, kind, namespace, object, document }
    };
    input.tasks.push(task);
    Ok(())
}

/// Whether an object is any business of memgate's, beyond its kind.
fn concerns(group: &str, kind: &str, object: &Value) -> bool {
    let annotations = || object.pointer("/metadata/annotations").and_then(Value::as_object);
    family::needed_annotation(&family::ALL, group, kind).is_none_or(|start| {
        annotations().is_some_and(|annotations| annotations.keys().any(|key| key.starts_with(start)))
    })
}

/// What reports call an object.
#[must_use]
pub fn subject(document: &Document, namespace: &str) -> Subject {
    let text = |pointer| document.value().pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = match document.name() {
        "" => text("/metadata/generateName"),
        name => name,
    };
    let judging = family::validated(&family::ALL, document.group(), document.kind());
    let cluster_wide = judging.is_some_and(|(_, kind)| !kind.namespaced);
    let namespace = if cluster_wide { "" } else { document.namespace().unwrap_or(namespace) };
    Subject {
        api_version: document.api_version().to_owned(),
        kind: document.kind().to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// The pod that a controller would make from a template.
fn pod_from(template: &Value) -> Value {
    let mut pod = Map::new();
    pod.insert("apiVersion".to_owned(), "v1".into());
    pod.insert("kind".to_owned(), "Pod".into());
    for key in ["metadata", "spec"] {
        if let Some(value) = template.get(key) {
            pod.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(pod)
}
