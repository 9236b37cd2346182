//! The schemas of the CRDs, which an apiserver enforces before it calls a webhook. Finds fields that
//! are probably misspelled.

use crate::schema_check::{self, Codes};
use memgate_model::finding::Finding;
use memgate_model::kind::Kind;
use memgate_model::tree::Tree;
use memgate_primitives::budget::Budget;
use memgate_schema::violation::{Rule, SchemaViolation};

use super::super::api::QUERY;
use super::super::codes::{SCHEMA, UNKNOWN_FIELD};

const CODES: Codes = Codes { field_type: &SCHEMA, unknown_field: &UNKNOWN_FIELD };

/// Whether a violation is not reported. The rules about ports have better messages, and of a Query the platform itself
/// accepts what its schema refuses: the older type, no spec, an input that is null, and the older form of a target, which
/// has a warning.
pub(crate) fn tolerates(kind: &Kind, written: &Tree, violation: &SchemaViolation<'_>) -> bool {
    let place = violation.pointer.as_str();
    let is_type = matches!(violation.rule, Rule::Type { .. });
    let is_in_query = || match place {
        "/spec" => is_type && written.get("spec").is_none(),
        "/spec/target" => is_type && matches!(written.at(&["spec", "target"]), Some(Tree::List(_))),
        "/spec/input" => {
            written.get("spec").is_some_and(|spec| spec.unknown_fields().any(|it| it == "input"))
        }
        "/spec/type" => written.text_at(&["spec", "type"]) == Some("messages"),
        _ => false,
    };
    is_type && place.ends_with("/serviceRef/port") && *kind != QUERY || *kind == QUERY && is_in_query()
}

/// Values of the wrong type in fields that the definitions lack, since only a later version has them.
pub(super) fn wrong_types(kind: &'static Kind, object: &Tree, work: &Budget<'_>) -> Vec<Finding> {
    let findings = schema_check::check(object, &kind.schema, CODES, work);
    findings.into_iter().filter(|finding| *finding.code == SCHEMA).collect()
}

/// Fields that are probably misspelled. The definitions report wrong types.
pub(super) fn misspellings(kind: &'static Kind, object: &Tree, work: &Budget<'_>) -> Vec<Finding> {
    schema_check::unknown_fields(object, &kind.schema, CODES, work)
}
