//! The defaults of a memory resource.
//!
//! In a cluster the apiserver writes them, from the CRD's schema, before it calls a webhook; for files
//! these edits replace it. An explicit 0 means "no expiry" and is kept.

use memgate_model::edit::{Edit, Op, Origin, Value};
use memgate_model::family::{PolicyField, Subject};
use memgate_model::policy_field::FieldForm;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

use super::api::{ARKONIS, COLLECTION_DEFAULT, EMBEDDING_PROVIDER_DEFAULT, REDIS_TTL_DEFAULT};
use super::validate::{Role, breaks_schema, role};

/// The fields that policies may fill.
pub(crate) static POLICY_FIELDS: [PolicyField; 2] = [
    PolicyField {
        kind: &ARKONIS.memory,
        pointer: "/spec/redis/maxEntries",
        form: FieldForm::Count,
        fits: |_, _, _| true,
    },
    PolicyField {
        kind: &ARKONIS.memory,
        pointer: "/spec/vectorStore/ttlSeconds",
        form: FieldForm::Count,
        fits: |_, _, _| true,
    },
];

/// One `add` for each missing default; empty for an object that violates the schema.
pub(crate) fn default(subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Edit> {
    let Some((dialect, Role::Memory)) = role(subject.kind) else { return Vec::new() };
    let object = subject.object;
    if breaks_schema(dialect, object) {
        return Vec::new();
    }
    let defaults = [
        ("redis", "ttlSeconds", Value::Integer(REDIS_TTL_DEFAULT)),
        ("vectorStore", "collection", Value::Text(COLLECTION_DEFAULT.to_owned())),
        ("embedding", "provider", Value::Text(EMBEDDING_PROVIDER_DEFAULT.to_owned())),
    ];
    let lacks = |section: &str, field: &str| {
        object
            .at(&["spec", section])
            .is_some_and(|section: &Tree| section.is_object() && section.get(field).is_none())
    };
    defaults
        .into_iter()
        .filter(|(section, field, _)| lacks(section, field))
        .map(|(section, field, value)| Edit {
            op: Op::Add,
            pointer: Pointer::new("/spec").key(section).key(field),
            value,
            origins: vec![origin(section, field)],
        })
        .collect()
}

fn origin(section: &str, field: &str) -> Origin {
    Origin {
        resource: "".into(),
        field: format!("spec.{section}.{field}").into(),
        rule: "default of the CRD",
    }
}
