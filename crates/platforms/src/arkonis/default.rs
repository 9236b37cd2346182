//! The defaults of a memory resource.
//!
//! In a cluster the apiserver writes them from the CRD's schema before it calls a webhook. For files, these
//! edits replace it. An explicit 0 means "no expiry" and is kept.

use memgate_model::edit::Edit;
use memgate_model::family::{PolicyField, Subject};
use memgate_model::policy_field::FieldForm;
use memgate_model::state_reader::StateReader;

use super::api::ARKONIS;
use super::fields::{MAX_ENTRIES, VECTOR_TTL};
use super::validate::{Role, breaks_schema, role};

/// The fields that policies may fill.
pub(crate) static POLICY_FIELDS: [PolicyField; 2] = [count(MAX_ENTRIES.path), count(VECTOR_TTL.path)];

const fn count(pointer: &'static str) -> PolicyField {
    PolicyField { kind: &ARKONIS.memory, pointer, form: FieldForm::Count, fits: |_, _, _| true }
}

/// One `add` for each missing default; empty for an object that violates the schema.
pub(crate) fn default(subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Edit> {
    match role(subject.kind) {
        Some((dialect, Role::Memory)) if !breaks_schema(dialect, subject.object) => {
            dialect.fields.of(subject.object).defaults()
        }
        _ => Vec::new(),
    }
}
