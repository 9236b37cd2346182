//! Loads the objects to check, and the state for decisions about them.
//!
//! Every object of the inputs is also state for all others.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crate::offline::checked_object::UndecidedObject;
use crate::offline::classify::{Class, classify, has_required_annotation, object_ref};
use crate::offline::collect::{Reading, STDIN, Unread, collect};
use crate::offline::errors::{error_at, error_in};
use crate::offline::notices::{Notice, Notices};
use crate::offline::origin::{Origins, SourceOrigins};
use crate::offline::passed_over::{PassedOver, Why};
use crate::offline::places::Places;
use crate::offline::plan::InputPlan;
use crate::offline::policies::{self, PolicyFiles, PolicyOrigin};
use crate::offline::read::source;
use crate::offline::transient;
use memgate_core::state::cluster_snapshot::{self, ClusterSnapshot};
use memgate_core::state::{self, AddError, Added};
use memgate_manifest::document::{Document, each_value, fill_type_meta, parse_parts};
use memgate_manifest::source::Source;
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;
use serde_json::Value;
use thiserror::Error;

/// Why nothing was loaded at all.
#[derive(Debug, Error)]
pub enum Error {
    /// Two inputs are `-`.
    #[error("standard input (-) can be read only once")]
    StdinTwice,
    /// The snapshot of a cluster is `-`.
    #[error(
        "--snapshot reads a file, and standard input (-) is none; write the snapshot with memgate snapshot -o FILE"
    )]
    SnapshotFromStdin,
    /// The snapshot of a cluster cannot be used.
    #[error(transparent)]
    Snapshot(#[from] cluster_snapshot::Error),
    /// Nor can it be read.
    #[error(transparent)]
    Unreadable(#[from] memgate_manifest::error::Error),
    /// A number of an object is beyond all bounds.
    #[error("failed to read an object")]
    Object(#[source] serde_json::Error),
}

/// Everything that was read.
#[derive(Debug)]
pub struct Inputs {
    /// The texts that hold the objects, in the order of the paths.
    pub sources: Vec<Arc<Source>>,
    /// What is to be checked, in document order. Boxed, so that each goes when it was decided about.
    pub objects: Vec<Box<UndecidedObject>>,
    /// What decisions may look at.
    pub snapshot: Snapshot,
    /// What is not checked, in document order.
    pub passed_over: Vec<PassedOver>,
    /// What there is to say about the files themselves, in document order.
    pub notices: Vec<Notice>,
    /// What could not be read.
    pub errors: Vec<memgate_manifest::error::Error>,
    /// What was passed by in directories and globs.
    pub unread: Unread,
    /// Of what was rendered, the files that it comes from.
    pub origins: Origins,
    /// Where the objects stand that decisions look at.
    pub places: Places,
    /// Where policies and exemptions were read.
    pub policies: PolicyFiles,
}

impl Inputs {
    /// Nothing read yet, with a state that decisions may look at.
    #[must_use]
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            sources: Vec::new(),
            objects: Vec::new(),
            snapshot,
            passed_over: Vec::new(),
            notices: Vec::new(),
            errors: Vec::new(),
            unread: Unread::default(),
            origins: Origins::default(),
            places: Places::default(),
            policies: PolicyFiles::default(),
        }
    }
}

/// Reads what the plan names.
///
/// # Errors
/// When standard input is named twice, the snapshot cannot be used, or a number is out of bounds. Files that cannot
/// be read are part of the result.
pub fn load(plan: &InputPlan) -> Result<Inputs, Error> {
    let InputPlan { checked, state, policies, reading, .. } = plan;
    reads_stdin_once(checked.iter().chain(state).chain(policies))?;
    let stdin: &mut dyn Read = match &plan.stdin {
        Some(text) => &mut text.as_bytes(),
        None => &mut io::stdin(),
    };
    let mut inputs = Inputs::new(state::empty(plan.settings.clone()));
    if let Some(path) = &plan.snapshot {
        read_snapshot(path, plan, &mut inputs)?;
    }
    let mut notices = Notices::default();
    read_policies(policies, reading, &mut inputs, &mut notices, stdin)?;
    read_state(state, reading, &mut inputs, &mut notices, stdin)?;
    for source in read(checked, reading, &mut inputs, stdin) {
        let is_named = source.name() == STDIN || checked.iter().any(|path| path == source.name());
        let mut origins = SourceOrigins::new(&source);
        for parsed in parse_parts(&source) {
            inputs.errors.extend(parsed.errors);
            for other in parsed.non_objects {
                // Many files in a directory are not meant to be manifests.
                if is_named || other.is_likely_object {
                    notices.not_an_object(&source, &other);
                }
                inputs.passed_over.push(PassedOver::non_object(&source, &other));
            }
            for document in parsed.documents {
                origins.add(&document);
                let mut loading = Loading {
                    origin: PolicyOrigin::Checked,
                    reading,
                    inputs: &mut inputs,
                    notices: &mut notices,
                };
                loading.add(&document, &Pointer::root(), document.value())?;
                add_document(document, &mut inputs, &mut notices)?;
            }
        }
        inputs.origins.add(origins);
        inputs.sources.push(source);
    }
    inputs.unread.unused_excludes = reading.exclude.unused();
    inputs.notices = notices.finish();
    if plan.ignores_policies {
        inputs.snapshot.policies = Arc::default();
    }
    Ok(inputs)
}

/// Reads the snapshot of a cluster, below everything else.
fn read_snapshot(path: &Path, plan: &InputPlan, inputs: &mut Inputs) -> Result<(), Error> {
    let name = path.display().to_string();
    if name == "-" {
        return Err(Error::SnapshotFromStdin);
    }
    let text = match plan.reading.instead.get(&name) {
        Some(text) => Source::new(&name, text.as_str()),
        None => source(&name, File::open(path), plan.reading.max_bytes)?,
    };
    let assumed = ClusterSnapshot::parse(&name, text.text())?.put(&name, &mut inputs.snapshot)?;
    inputs.unread.assumed = Some(assumed);
    if plan.checks_snapshot {
        inputs.snapshot.crds = None;
        add_snapshot(&name, text.text(), inputs)?;
        let families = inputs.snapshot.settings.families.clone();
        transient::pass_over(&mut inputs.objects, &mut inputs.passed_over, &families, false);
    }
    Ok(())
}

/// Adds the objects of a cluster's state to those that are checked; their places are those in the file.
fn add_snapshot(name: &str, text: &str, inputs: &mut Inputs) -> Result<(), Error> {
    let source = Arc::new(Source::new(name, cluster_snapshot::as_list(text)));
    let mut notices = Notices::default();
    for document in parse_parts(&source).flat_map(|parsed| parsed.documents) {
        add_document(document, inputs, &mut notices)?;
    }
    inputs.sources.push(source);
    Ok(())
}

fn reads_stdin_once<'a>(paths: impl Iterator<Item = &'a String>) -> Result<(), Error> {
    if paths.filter(|path| *path == "-").count() > 1 { Err(Error::StdinTwice) } else { Ok(()) }
}

fn read(paths: &[String], reading: &Reading, inputs: &mut Inputs, stdin: &mut dyn Read) -> Vec<Arc<Source>> {
    let collected = collect(paths, reading, stdin);
    inputs.errors.extend(collected.errors);
    inputs.unread.empty.extend(collected.unread.empty);
    inputs.unread.files.extend(collected.unread.files);
    inputs.unread.unrendered.extend(collected.unread.unrendered);
    inputs.origins.rendered.extend(collected.rendered);
    collected.sources.into_iter().map(Arc::new).collect()
}

fn read_state(
    paths: &[String],
    reading: &Reading,
    inputs: &mut Inputs,
    notices: &mut Notices,
    stdin: &mut dyn Read,
) -> Result<(), Error> {
    for path in paths {
        let (mut is_used, errors) = (false, inputs.errors.len());
        let sources = read(std::slice::from_ref(path), reading, inputs, stdin);
        for source in &sources {
            for document in each_value(source) {
                match document {
                    Ok(document) if document.kind() == cluster_snapshot::KIND => {
                        let message = "this is a file of memgate snapshot; give it with --snapshot, \
                                       which check, mutate, view, review, explain-pod, what-if and audit have";
                        inputs.errors.push(error_at(document.place(), &Pointer::root(), message.to_owned()));
                    }
                    Ok(document) => {
                        let value = document.value();
                        let mut loading = Loading { origin: PolicyOrigin::State, reading, inputs, notices };
                        is_used |= loading.add(&document, &Pointer::root(), value)?;
                    }
                    Err(error) => inputs.errors.push(error),
                }
            }
        }
        // With errors, the content of the files is not known.
        if let Some(first) = sources.first().filter(|_| !is_used && inputs.errors.len() == errors) {
            notices.unused_state(path, first);
        }
    }
    Ok(())
}

/// Reads policies and exemptions. Other objects in their files are ignored.
fn read_policies(
    paths: &[String],
    reading: &Reading,
    inputs: &mut Inputs,
    notices: &mut Notices,
    stdin: &mut dyn Read,
) -> Result<(), Error> {
    for path in paths {
        let (known, errors) = (inputs.policies.len(), inputs.errors.len());
        let sources = read(std::slice::from_ref(path), reading, inputs, stdin);
        for document in sources.iter().flat_map(each_value) {
            match document {
                Ok(document) => {
                    let mut loading = Loading { origin: PolicyOrigin::Policies, reading, inputs, notices };
                    loading.add(&document, &Pointer::root(), document.value())?;
                }
                Err(error) => inputs.errors.push(error),
            }
        }
        let found = inputs.policies.len() > known || inputs.errors.len() > errors;
        if let Some(first) = sources.first().filter(|_| !found && !inputs.policies.read_from(&sources)) {
            let message = format!("{path} holds no MemoryPolicy and no MemoryPolicyExemption");
            inputs.errors.push(error_in(first, message));
        }
    }
    Ok(())
}

/// Adds objects to the inputs, as state.
struct Loading<'l> {
    origin: PolicyOrigin,
    reading: &'l Reading,
    inputs: &'l mut Inputs,
    notices: &'l mut Notices,
}

impl Loading<'_> {
    /// Adds the object at `within` in a document, or each object of a List or of a plain list. Returns whether decisions
    /// look at any of them.
    fn add(&mut self, document: &Document, within: &Pointer, value: &Value) -> Result<bool, Error> {
        let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let items = match value {
            Value::Array(items) => Some((items, within.clone())),
            _ => {
                let items = value.get("items").filter(|_| kind.ends_with("List")).and_then(Value::as_array);
                items.map(|items| (items, within.key("items")))
            }
        };
        let Some((items, list)) = items else { return self.add_object(document, within, value) };
        let mut is_used = false;
        for (index, mut item) in items.iter().cloned().enumerate() {
            fill_type_meta(&mut item, api_version, kind);
            is_used |= self.add(document, &list.index(index), &item)?;
        }
        Ok(is_used)
    }

    fn add_object(&mut self, document: &Document, within: &Pointer, value: &Value) -> Result<bool, Error> {
        let Self { origin, reading, inputs, notices } = self;
        let settings = &inputs.snapshot.settings;
        let is_policy = policies::is_policy(value);
        if *origin == PolicyOrigin::Policies && !is_policy {
            return Ok(false);
        }
        let errors = &mut inputs.errors;
        if is_policy && inputs.policies.is_repeated(document, within, value, *origin, settings, errors) {
            return Ok(true);
        }
        if is_policy && *origin != PolicyOrigin::Checked {
            notices.policy(document, within, value, &inputs.snapshot.settings);
        }
        if reading.keeps_places {
            inputs.places.add(document, within, value, &inputs.snapshot.settings);
        }
        let is_definition = notices.definition(value);
        match state::add(&mut inputs.snapshot, value) {
            Ok(Added { is_used, faults }) => {
                // A policy that is checked is denied instead.
                if *origin != PolicyOrigin::Checked {
                    inputs.errors.extend(policies::errors(document, within, faults));
                }
                Ok(is_used || is_definition)
            }
            Err(AddError::Number(error)) => Err(Error::Object(error)),
            Err(error @ AddError::Definition(_)) => {
                inputs.errors.push(error_at(document.place(), &Pointer::root(), error.to_string()));
                Ok(true)
            }
        }
    }
}

/// Adds a document to the objects to check, or to those that are passed over.
fn add_document(document: Document, inputs: &mut Inputs, notices: &mut Notices) -> Result<(), Error> {
    let (group, kind) = (document.group().to_owned(), document.kind().to_owned());
    let chosen = inputs.snapshot.settings.namespace.as_deref();
    let object_ref = object_ref(&document, chosen.unwrap_or(DEFAULT_NAMESPACE));
    notices.object(&document, &object_ref);
    let why = match classify(&group, &kind) {
        Class::PassedOver => Some(Why::OtherKind),
        _ if !has_required_annotation(&group, &kind, document.value()) => Some(Why::NotAnnotated),
        Class::Object | Class::Workload { .. } => None,
    };
    if let Some(why) = why {
        inputs.passed_over.push(PassedOver::object(document.place(), object_ref, why));
        return Ok(());
    }
    let namespace = document.namespace().or(chosen).unwrap_or_default().to_owned();
    let object = UndecidedObject::of(document, object_ref, &namespace).map_err(Error::Object)?;
    inputs.objects.push(Box::new(object));
    Ok(())
}
