//! The fields that policies may fill. memgate itself writes no defaults: without `ttlDays`, kagent's own number counts.

use memgate_model::family::PolicyField;
use memgate_model::kind::Kind;
use memgate_model::policy_field::FieldForm;

use super::api::{AGENT, HARNESS, SANDBOX_AGENT};
use super::block::{Block, MAX_TTL_DAYS};

/// The fields that policies may fill.
pub(crate) static POLICY_FIELDS: [PolicyField; 3] = [
    ttl_days(&AGENT, "/spec/declarative/memory/ttlDays"),
    ttl_days(&SANDBOX_AGENT, "/spec/declarative/memory/ttlDays"),
    ttl_days(&HARNESS, "/spec/kagent/memory/ttlDays"),
];

/// `ttlDays`, where the memory section is read.
const fn ttl_days(kind: &'static Kind, pointer: &'static str) -> PolicyField {
    PolicyField {
        kind,
        pointer,
        form: FieldForm::Between(1, MAX_TTL_DAYS),
        fits: |_, subject, _| Block::of(subject.kind, subject.object).is_some_and(|block| !block.is_ignored),
    }
}
