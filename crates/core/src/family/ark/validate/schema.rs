//! The schemas of the CRDs, which an apiserver enforces before it calls a webhook: the messages for files, and the
//! fields that are likely misspelled.

use crate::family::schema_check::{self, Codes, expected_type_message};
use memgate_model::finding::Finding;
use memgate_model::kind::Kind;
use memgate_model::tree::Tree;
use memgate_primitives::budget::Budget;
use memgate_primitives::suggest::did_you_mean;
use memgate_schema::violation::{Broken, BrokenKind, BrokenRule, SchemaViolation};

use super::super::api::QUERY;
use super::super::codes::{SCHEMA, UNKNOWN_FIELD};

const CODES: Codes = Codes {
    field_type: &SCHEMA,
    unknown_field: &UNKNOWN_FIELD,
    unknown_message: |field, meant| format!("{field}: unknown field{}", did_you_mean(meant)),
    type_message: expected_type_message,
};

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

/// Likely misspellings of fields. Wrong types are left to the definitions.
pub(super) fn misspellings(kind: &'static Kind, object: &Tree, work: &Budget<'_>) -> Vec<Finding> {
    let mut findings = schema_check::check(object, &kind.schema, CODES, work);
    findings.retain(|finding| *finding.code == UNKNOWN_FIELD);
    findings
}
