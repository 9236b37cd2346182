//! The fields that policies may fill. memgate itself writes no defaults for the platform: a written `ttlDays` would
//! freeze a number that is the server's.

use super::prelude::*;
use memgate_model::family::PolicyField;
use memgate_model::kind::Kind;
use memgate_model::policy_field::FieldForm;

use super::block::{Block, MAX_TTL_DAYS};

/// The fields that policies may fill, of objects with memory.
pub(crate) static POLICY_FIELDS: [PolicyField; 3] = [
    ttl_days(&AGENT, "/spec/declarative/memory/ttlDays"),
    ttl_days(&SANDBOX_AGENT, "/spec/declarative/memory/ttlDays"),
    ttl_days(&HARNESS, "/spec/kagent/memory/ttlDays"),
];

const fn ttl_days(kind: &'static Kind, pointer: &'static str) -> PolicyField {
    PolicyField {
        kind,
        pointer,
        form: FieldForm::Between(1, MAX_TTL_DAYS),
        fits: |_, subject, _| Block::of(subject.kind, subject.object).is_some_and(|block| !block.is_ignored),
    }
}
