//! The readers that a fuzzer with coverage runs too: `stress/guided` has these files in its library.

use std::sync::Arc;

use memgate_core::decide::decide;
use memgate_core::patch::Patch;
use memgate_core::state;
use memgate_manifest::document::{Document, parse, values};
use memgate_manifest::rewrite::rewrite;
use memgate_manifest::source::Source;
use memgate_model::kind::MEMORY_POLICY;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::pointer::Pointer;
use serde_json::json;

use crate::{invariants::check_invariants, pointers::all_pointers};

/// The most documents of a file that are judged: each is, by all of them.
const MAX_DOCUMENTS: usize = 8;

/// A review without a state.
pub(crate) fn review(input: &[u8]) -> Result<(), String> {
    let Ok(text) = str::from_utf8(input) else { return Ok(()) };
    check_invariants(text, &state::empty(memgate_platforms::default_settings()))
}

/// Manifests as people write them: their places, and what is left of a text that is written anew.
pub(crate) fn yaml(input: &[u8]) -> Result<(), String> {
    let Ok(text) = str::from_utf8(input) else { return Ok(()) };
    let source = Arc::new(Source::new("input.yaml", text));
    let parsed = parse(&source);
    let (mut patches, mut is_changed) = (Vec::new(), false);
    let snapshot = state::empty(memgate_platforms::default_settings());
    for document in &parsed.documents {
        let object = document.value().to_string();
        for pointer in all_pointers(document.value()).iter().take(50) {
            let location = document.locate(&Pointer::new(pointer.as_str()));
            // A span that is none would panic.
            let _text = source.slice(location.caret);
        }
        let request = request(document, &object);
        let edits = decide(&request, &snapshot).edits;
        is_changed |= !edits.is_empty();
        let patch = serde_json::to_value(Patch(&edits)).map_err(|error| error.to_string())?;
        patches.push((document.place(), patch));
    }
    let rewritten = match rewrite(&source, &patches) {
        // No command writes a file with a document that it cannot read.
        Err(_) if !parsed.errors.is_empty() => return Ok(()),
        rewritten => rewritten.map_err(|error| error.to_string())?,
    };
    if !is_changed && rewritten.text != text {
        return Err("a text without edits was changed".to_owned());
    }
    Ok(())
}

/// A file of policies, exemptions and objects, each judged with all of them in the state. A policy that memgate accepts
/// must be in force.
pub(crate) fn policy(input: &[u8]) -> Result<(), String> {
    let (documents, snapshot) = file(input);
    for document in &documents {
        check_document(document, &snapshot)?;
        let kind = memgate_policy::resource::kind(document.group(), document.kind());
        if kind.is_none_or(|kind| kind.kind != MEMORY_POLICY.kind) {
            continue;
        }
        let object = document.value().to_string();
        let accepted = decide(&request(document, &object), &snapshot).allowed();
        let (read, faults) = memgate_policy::read::policy(document.value(), &memgate_platforms::ALL);
        if accepted && read.invalid.is_some() {
            return Err(format!("a policy is accepted and not in force: {faults:?}"));
        }
    }
    Ok(())
}

/// A file of definitions and objects, each judged with all of them in the state.
pub(crate) fn crd(input: &[u8]) -> Result<(), String> {
    let (documents, snapshot) = file(input);
    documents.iter().try_for_each(|document| {
        // Also a definition of a kind that memgate does not check.
        let _unusable = memgate_schema::read(document.value());
        check_document(document, &snapshot)
    })
}

/// The documents of a file, and the state that they make.
fn file(input: &[u8]) -> (Vec<Document>, Snapshot) {
    let text = String::from_utf8_lossy(input);
    let mut documents = values(&Arc::new(Source::new("input.yaml", text)), &mut Vec::new());
    documents.truncate(MAX_DOCUMENTS);
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    for document in &documents {
        // An object that cannot be read does not become part of the state.
        let _unreadable = state::add(&mut snapshot, document.value());
    }
    (documents, snapshot)
}

fn check_document(document: &Document, snapshot: &Snapshot) -> Result<(), String> {
    let kind = json!({"group": document.group(), "version": document.version(), "kind": document.kind()});
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "CREATE", "kind": kind, "name": document.name(),
            "namespace": document.namespace().unwrap_or("default"), "object": document.value(),
        },
    });
    check_invariants(&review.to_string(), snapshot)
}

fn request<'d>(document: &'d Document, object: &'d str) -> Request<'d> {
    Request {
        group: document.group().into(),
        version: document.version().into(),
        kind: document.kind().into(),
        ..Request::to_create_pod(document.namespace().unwrap_or("default"), document.name(), object)
    }
}
