//! The defaults of a memory resource.
//!
//! In a cluster the apiserver writes them from the CRD's schema before it calls a webhook. For files, these
//! edits replace it. An explicit 0 means "no expiry" and is kept.

use super::prelude::*;
use memgate_model::edit::Value;
use memgate_model::family::PolicyField;
use memgate_model::policy_field::FieldForm;

use super::validate::{Role, breaks_schema, role};

/// The fields that policies may fill.
pub(crate) static POLICY_FIELDS: [PolicyField; 2] =
    [count("/spec/redis/maxEntries"), count("/spec/vectorStore/ttlSeconds")];

const fn count(pointer: &'static str) -> PolicyField {
    PolicyField { kind: &ARKONIS.memory, pointer, form: FieldForm::Count, fits: |_, _, _| true }
}

/// One `add` for each missing default; empty for an object that violates the schema.
pub(crate) fn default(subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Edit> {
    match role(subject.kind) {
        Some((dialect, Role::Memory)) if !breaks_schema(dialect, subject.object) => {
            missing(dialect, Memory::read(dialect, subject.object))
        }
        _ => Vec::new(),
    }
}

fn missing(dialect: &Dialect, memory: Memory<'_>) -> Vec<Edit> {
    let text = |text: &str| Value::Text(text.to_owned());
    let mut defaults: Vec<(Field, Field, Value)> = vec![
        (REDIS, REDIS_TTL.0, Value::Integer(REDIS_TTL.1)),
        (VECTOR_STORE, COLLECTION, text(COLLECTION_DEFAULT)),
    ];
    if dialect.successor {
        defaults.push((EMBEDDING, EMBEDDING_PROVIDER, text(OF_MODEL)));
    }
    let lacks =
        |(section, field, _): &(Field, Field, Value)| memory.has(section) && memory.at(field).is_none();
    let edit = |(_, field, value): (Field, Field, Value)| {
        let origin =
            Origin { resource: "".into(), field: field.join(".").into(), rule: "default of the CRD" };
        Edit::add(field.into(), value, origin)
    };
    defaults.into_iter().filter(lacks).map(edit).collect()
}
