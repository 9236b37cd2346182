//! The rules of the CRDs' schemas. In a cluster the apiserver enforces them before it calls a webhook; for
//! files these rules replace it.

use crate::family::suggest::{did_you_mean, nearest};
use crate::model::finding::{Finding, quoted};
use crate::model::kind::Kind;
use crate::model::pointer::Pointer;
use crate::model::schema::{Field, Schema};
use crate::model::tree::Tree;

use super::super::api::{MEMORY, QUERY};
use super::super::codes::{SCHEMA, UNKNOWN_FIELD};
use super::super::value::{ValueOrSource, ValueSource};
use super::denial;

/// The phases of a Memory.
const PHASES: [&str; 3] = ["running", "ready", "error"];

/// Violations of the schema of a kind, and likely misspellings.
pub(super) fn findings(kind: &Kind, object: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Of a Query only the fields about memory are validated, so the type of its spec is not.
    let checked_fields = kind.schema.fields().iter().filter(|field| match field.name {
        "metadata" => false,
        "status" => *kind == MEMORY,
        _ => *kind == MEMORY || object.get(field.name).is_some_and(Tree::is_object),
    });
    for field in checked_fields {
        if let Some(value) = object.get(field.name) {
            check_value(value, &field.schema, &Pointer::root().key(field.name), &mut findings);
        }
    }
    if *kind == MEMORY {
        findings.extend(memory(object));
    } else if *kind == QUERY {
        let ids = ["conversationId", "sessionId"];
        findings.extend(ids.into_iter().filter_map(|field| {
            let empty = object.at(&["spec", field]).and_then(Tree::text) == Some("");
            empty.then(|| schema_denial(Pointer::new("/spec").key(field), "must not be empty"))
        }));
    }
    findings
}

fn schema_denial(pointer: Pointer, message: &str) -> Finding {
    denial(&SCHEMA, pointer, message)
}

fn check_value(tree: &Tree, schema: &Schema, here: &Pointer, findings: &mut Vec<Finding>) {
    if let Some(expected) = schema.type_name().filter(|expected| *expected != tree.type_name()) {
        // The rules about ports have better messages.
        if !here.as_str().ends_with("/serviceRef/port") {
            findings.push(schema_denial(here.clone(), &format!("must be of type {expected}")));
        }
        return;
    }
    findings.extend(tree.unknown_fields().filter_map(|name| misspelled_field(name, schema, here)));
    for field in schema.fields() {
        if let Some(value) = tree.get(field.name) {
            check_value(value, &field.schema, &here.key(field.name), findings);
        }
    }
    if let Schema::List(element) = schema {
        for (index, value) in tree.elements().iter().enumerate() {
            check_value(value, element, &here.index(index), findings);
        }
    }
}

fn misspelled_field(name: &str, schema: &Schema, here: &Pointer) -> Option<Finding> {
    let guarded = schema.fields().iter().filter(|field: &&Field| field.guarded);
    let meant = nearest(name, guarded.map(|field| field.name))?;
    let pointer = here.key(name);
    let field = quoted(&pointer.field());
    let message = format!("{}: unknown field{}", field.trim_matches('"'), did_you_mean(Some(meant)));
    Some(Finding::warn(&UNKNOWN_FIELD, pointer, message).at_key())
}

fn memory(object: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(address) = object.at(&["spec", "address"]) {
        let here = Pointer::new("/spec/address/valueFrom");
        for source in ValueOrSource::read_address(address).sources {
            findings.extend(required(&source, &here.key(source.field)));
        }
    }
    let headers = object.at(&["spec", "headers"]).map(Tree::elements).unwrap_or_default();
    for (index, header) in headers.iter().enumerate() {
        let here = Pointer::new("/spec/headers").index(index).key("value").key("valueFrom");
        let sources =
            header.get("value").map(|value| ValueOrSource::read_header(value).sources).unwrap_or_default();
        for source in sources {
            findings.extend(required(&source, &here.key(source.field)));
        }
    }
    let phase = object.at(&["status", "phase"]).and_then(Tree::text);
    if phase.is_some_and(|phase| !PHASES.contains(&phase)) {
        let message = format!("must be one of {}", PHASES.join(", "));
        findings.push(schema_denial(Pointer::new("/status/phase"), &message));
    }
    findings
}

/// A field that the schema requires in a source, whether the platform uses the source or not.
fn required(source: &ValueSource<'_>, here: &Pointer) -> Option<Finding> {
    let field = match source.field {
        "secretKeyRef" | "configMapKeyRef" => "key",
        _ => "name",
    };
    if !source.lacks(field) {
        return None;
    }
    let missing = source.tree.get(field).is_none();
    match source.field {
        _ if missing => Some(schema_denial(here.key(field), "is required")),
        "queryParameterRef" => Some(schema_denial(here.key(field), "must not be empty")),
        _ => None,
    }
}
