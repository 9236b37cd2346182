//! Validates the objects of kagent.
//!
//! Denied is what never works and can be mended in the object itself. A rule that depends on another object only warns.

mod block;
mod chat;
mod compaction;
mod lines;
mod model_config;
mod reference;
mod releases;
mod settings;
mod usage;
mod users;

use crate::schema_check::{self, Codes, drop_below_wrong_types};
use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::request::Operation;
use memgate_model::state_reader::StateReader;

use super::codes::{FIELD_TYPE, UNKNOWN_FIELD};

const SCHEMA_CODES: Codes = Codes { field_type: &FIELD_TYPE, unknown_field: &UNKNOWN_FIELD };

/// All findings about the subject, in any order.
pub(crate) fn validate(subject: &Subject<'_>, state: &mut StateReader<'_>) -> Vec<Finding> {
    if subject.operation == Operation::Delete {
        return usage::deleted(subject, state);
    }
    let of_form = schema_check::check(subject.object, &subject.kind.schema, SCHEMA_CODES, state.budget());
    let mut findings = lines::advise(subject, of_form);
    findings.extend(lines::findings(subject, state));
    findings.extend(releases::findings(subject, state));
    findings.extend(block::findings(subject, state));
    findings.extend(chat::findings(subject, state));
    findings.extend(settings::findings(subject, state));
    findings.extend(compaction::findings(subject, state));
    findings.extend(model_config::findings(subject, state));
    drop_below_wrong_types(findings, SCHEMA_CODES)
}
