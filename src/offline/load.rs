//! Paths to the objects that are checked, and to the state that they are checked against.
//!
//! Every object of the inputs is also state for all others. A workload stands for the pod that its
//! controller would create, that of a StatefulSet with its claims.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::manifest;
use crate::manifest::document::{Document, fill_type_meta, parse, values};
use crate::manifest::source::Source;
use crate::model::claim_volumes::{ClaimVolumes, add_to_pod};
use crate::model::edit::Edit;
use crate::model::object::DEFAULT_NAMESPACE;
use crate::model::pointer::Pointer;
use crate::model::request::{Operation, Request};
use crate::model::settings::Settings;
use crate::model::snapshot::Snapshot;
use crate::model::workload::{self, Workload};
use crate::offline::classify::{Class, classify, has_required_annotation, object_ref};
use crate::offline::collect::{Unread, collect};
use crate::offline::errors::error_at;
use crate::report::ObjectRef;
use crate::state::{self, AddError};

/// Why nothing was loaded at all.
#[derive(Debug, Error)]
pub enum Error {
    /// Two inputs are `-`.
    #[error("standard input (-) can be read only once")]
    StdinTwice,
    /// A number of an object is beyond all bounds.
    #[error("failed to read an object")]
    Object(#[source] serde_json::Error),
}

/// Everything that was read.
#[derive(Debug, Default)]
pub struct Inputs {
    /// The texts that hold the objects, in the order of the paths.
    pub sources: Vec<Arc<Source>>,
    /// What is to be checked, in document order.
    pub objects: Vec<CheckedObject>,
    /// What decisions may look at.
    pub snapshot: Snapshot,
    /// What is not checked, and how often it occurs: kinds, and why a document is not an object.
    pub passed_over: BTreeMap<String, usize>,
    /// What could not be read.
    pub errors: Vec<manifest::error::Error>,
    /// What was passed by in directories and globs.
    pub unread: Unread,
}

/// One object to decide about.
#[derive(Debug)]
pub struct CheckedObject {
    /// Where it was read.
    pub document: Document,
    /// Where in the document it stands: empty, or the pod template of a workload.
    pub template: Pointer,
    /// The volumes that a pod of a StatefulSet has for its claims.
    claims: ClaimVolumes,
    /// How reports name it.
    pub object_ref: ObjectRef,
    group: String,
    version: String,
    kind: String,
    /// The namespace that the manifest or the settings name; empty when neither does.
    namespace: String,
    json: String,
}

impl CheckedObject {
    /// Where a place of the object that is decided about stands in the document.
    #[must_use]
    pub fn in_document(&self, place: &Pointer) -> Pointer {
        self.claims.in_workload(&self.template, place)
    }

    /// Edits of the object that is decided about as edits of the document.
    #[must_use]
    pub fn edits_in_document(&self, edits: &[Edit]) -> Vec<Edit> {
        self.claims.edits_in_workload(&self.template, edits)
    }

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
            object: Some(&self.json),
            old_object: None,
            cancelled: None,
        }
    }
}

/// Reads the objects at `paths` to check them, and those at `state_paths` as state only.
///
/// # Errors
/// When standard input is named twice or an object is out of bounds. Files that cannot be read are
/// part of the result.
pub fn load(
    paths: &[String],
    state_paths: &[String],
    settings: Settings,
    stdin: &mut dyn Read,
) -> Result<Inputs, Error> {
    reads_stdin_once(paths.iter().chain(state_paths))?;
    let mut inputs = Inputs { snapshot: state::empty(settings), ..Inputs::default() };
    read_state(state_paths, &mut inputs, stdin)?;
    for source in read(paths, &mut inputs, stdin) {
        let parsed = parse(&source);
        inputs.errors.extend(parsed.errors);
        for other in parsed.non_objects {
            *inputs.passed_over.entry(format!("a document that {}", other.reason)).or_default() += 1;
        }
        for document in parsed.documents {
            add_to_state(&document, document.value(), &mut inputs)?;
            add_document(document, &mut inputs)?;
        }
        inputs.sources.push(source);
    }
    Ok(inputs)
}

/// Reads state only. An empty file is a state of which nothing is known.
///
/// # Errors
/// When standard input is named twice or an object is out of bounds. Files that cannot be read are
/// part of the result.
pub fn load_state(paths: &[String], settings: Settings, stdin: &mut dyn Read) -> Result<Inputs, Error> {
    load(&[], paths, settings, stdin)
}

fn reads_stdin_once<'a>(paths: impl Iterator<Item = &'a String>) -> Result<(), Error> {
    if paths.filter(|path| *path == "-").count() > 1 { Err(Error::StdinTwice) } else { Ok(()) }
}

fn read(paths: &[String], inputs: &mut Inputs, stdin: &mut dyn Read) -> Vec<Arc<Source>> {
    let collected = collect(paths, stdin);
    inputs.errors.extend(collected.errors);
    inputs.unread.empty.extend(collected.unread.empty);
    inputs.unread.files.extend(collected.unread.files);
    collected.sources.into_iter().map(Arc::new).collect()
}

fn read_state(paths: &[String], inputs: &mut Inputs, stdin: &mut dyn Read) -> Result<(), Error> {
    for source in read(paths, inputs, stdin) {
        for document in values(&source, &mut inputs.errors) {
            add_to_state(&document, document.value(), inputs)?;
        }
    }
    Ok(())
}

/// Adds an object of a document, or each of a List or of a plain list of objects.
fn add_to_state(document: &Document, value: &Value, inputs: &mut Inputs) -> Result<(), Error> {
    let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let items = match value {
        Value::Array(items) => Some(items),
        _ => value.get("items").filter(|_| kind.ends_with("List")).and_then(Value::as_array),
    };
    let Some(items) = items else {
        return match state::add(&mut inputs.snapshot, value) {
            Ok(()) => Ok(()),
            Err(AddError::Number(error)) => Err(Error::Object(error)),
            Err(error @ AddError::Definition(_)) => {
                inputs.errors.push(error_at(document, &Pointer::root(), error.to_string()));
                Ok(())
            }
        };
    };
    items.iter().cloned().try_for_each(|mut item| {
        fill_type_meta(&mut item, api_version, kind);
        add_to_state(document, &item, inputs)
    })
}

/// Adds a document to what is checked, or counts it as passed over.
fn add_document(document: Document, inputs: &mut Inputs) -> Result<(), Error> {
    let (group, kind) = (document.group().to_owned(), document.kind().to_owned());
    let template = match classify(&group, &kind) {
        Class::Object => Some(Pointer::root()),
        Class::Workload { template } => Some(Pointer::new(template)),
        Class::PassedOver => None,
    };
    let object = template.as_ref().and_then(|pointer| document.value().pointer(pointer.as_str()));
    let object = object.filter(|value| value.is_object() && has_required_annotation(&group, &kind, value));
    let (Some(template), Some(object)) = (template, object) else {
        *inputs.passed_over.entry(kind).or_default() += 1;
        return Ok(());
    };
    let chosen = inputs.snapshot.settings.namespace.as_deref();
    let object_ref = object_ref(&document, chosen.unwrap_or(DEFAULT_NAMESPACE));
    let namespace = document.namespace().or(chosen).unwrap_or_default().to_owned();
    let mut claims = ClaimVolumes::default();
    let (group, version, kind, json) = if template.as_str().is_empty() {
        (group, document.version().to_owned(), kind, serde_json::to_string(object))
    } else {
        let mut pod = pod(object);
        if workload::find(&group, &kind).is_some_and(Workload::has_claims) {
            let claim_templates = document.value().pointer("/spec/volumeClaimTemplates");
            claims = add_to_pod(&mut pod, document.name(), claim_templates.unwrap_or(&Value::Null));
        }
        (String::new(), "v1".to_owned(), "Pod".to_owned(), serde_json::to_string(&pod))
    };
    let json = json.map_err(Error::Object)?;
    inputs.objects.push(CheckedObject {
        document,
        template,
        claims,
        object_ref,
        group,
        version,
        kind,
        namespace,
        json,
    });
    Ok(())
}

/// The pod that a controller would create from a template.
fn pod(template: &Value) -> Value {
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
