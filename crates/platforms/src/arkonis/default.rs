//! The defaults of a memory resource.
//!
//! In a cluster the apiserver writes them from the CRD's schema before it calls a webhook. For files, these
//! edits replace it. An explicit 0 means "no expiry" and is kept.

use memgate_model::edit::{Edit, Origin, Value};
use memgate_model::family::{PolicyField, Subject};
use memgate_model::policy_field::FieldForm;
use memgate_model::state_reader::StateReader;
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
    let edit = |(section, field, value)| {
        object.at(&["spec", section]).filter(|it| it.is_object() && it.get(field).is_none())?;
        let pointer = Pointer::new("/spec").key(section).key(field);
        let origin =
            Origin { resource: "".into(), field: pointer.field().into(), rule: "default of the CRD" };
        Some(Edit::add(pointer, value, origin))
    };
    defaults.into_iter().filter_map(edit).collect()
}
