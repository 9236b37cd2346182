//! The schemas of the CRDs, which an apiserver enforces before it calls a webhook: the messages for files, and the
//! fields that are likely misspelled.

use memgate_model::finding::Finding;
use memgate_model::kind::Kind;
use memgate_model::schema::{Field, Schema};
use memgate_model::tree::Tree;
use memgate_primitives::budget::Budget;
use memgate_primitives::fix::Fix;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::{Path, Pointer};
use memgate_primitives::suggest::{did_you_mean, nearest, only_nearest};
use memgate_schema::violation::{Broken, BrokenKind, BrokenRule, SchemaViolation};

use super::super::api::QUERY;
use super::super::codes::UNKNOWN_FIELD;

/// The fields of a Query that concern memory.
const QUERY_FIELDS: [&str; 3] = ["/spec/memory", "/spec/conversationId", "/spec/sessionId"];

/// The message about a violation of a schema.
pub(crate) fn schema_message(violation: &SchemaViolation) -> String {
    let text = match &violation.rule {
        BrokenRule::Type { expected, .. } => format!("must be of type {expected}"),
        BrokenRule::Required("") => "is required".to_owned(),
        BrokenRule::TooShort { min: 1, .. } => "must not be empty".to_owned(),
        BrokenRule::Unsupported { supported, .. } => format!("must be one of {}", supported.join(", ")),
        _ => return violation.message(),
    };
    format!("{}: {text}", violation.pointer.field())
}

/// Whether a violation is not reported: of a Query only the fields about memory are checked, and the rules about
/// ports have better messages.
pub(crate) fn tolerates(kind: &Kind, _written: &Tree, broken: Broken<'_>) -> bool {
    let holds = |field: &&str| {
        broken.pointer.strip_prefix(*field).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_checked = || QUERY_FIELDS.iter().any(holds);
    let is_port = || broken.pointer.ends_with("/serviceRef/port");
    *kind == QUERY && !is_checked() || matches!(broken.kind, BrokenKind::Type { .. }) && is_port()
}

/// Adds likely misspellings.
pub(super) fn misspellings(kind: &Kind, object: &Tree, work: &Budget<'_>, findings: &mut Vec<Finding>) {
    for field in kind.schema.fields().iter().filter(|field| !["metadata", "status"].contains(&field.name)) {
        if let Some(value) = object.get(field.name) {
            check_names(value, &field.schema, Path::Key(&Path::Root, field.name), work, findings);
        }
    }
}

fn check_names(tree: &Tree, schema: &Schema, here: Path<'_>, work: &Budget<'_>, findings: &mut Vec<Finding>) {
    findings.extend(tree.unknown_fields().filter_map(|name| misspelled_field(name, schema, here, work)));
    for field in schema.fields() {
        if let Some(value) = tree.get(field.name) {
            check_names(value, &field.schema, Path::Key(&here, field.name), work, findings);
        }
    }
    if let Schema::List(element) = schema {
        for (index, value) in tree.elements().iter().enumerate() {
            check_names(value, element, Path::Index(&here, index), work, findings);
        }
    }
}

fn misspelled_field(name: &str, schema: &Schema, here: Path<'_>, work: &Budget<'_>) -> Option<Finding> {
    let guarded = || schema.fields().iter().filter(|field: &&Field| field.guarded).map(|field| field.name);
    let meant = nearest(name, guarded())?;
    let fix = only_nearest(name, guarded()).map(|meant| Fix::Rename(meant.to_owned()));
    let message = move |at: &Pointer| {
        let field = quoted(&at.field());
        format!("{}: unknown field{}", field.trim_matches('"'), did_you_mean(Some(meant)))
    };
    let finding = Finding::warn_within(work, &UNKNOWN_FIELD, here.pointer().key(name), message).at_key();
    Some(finding.fix(fix))
}
