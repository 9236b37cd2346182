//! The fields that policies fill where they are absent, before an object is judged.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::family;
use crate::family::common::NAMESPACE_DEFAULT;
use crate::model::edit::{Edit, Op, Origin, Value};
use crate::model::finding::Cause;
use crate::model::kind::Kind;
use crate::model::object::Lookup;
use crate::model::pointer::Pointer;
use crate::model::policy::{PolicyDefault, Question};
use crate::model::request::Operation;
use crate::model::snapshot::Snapshot;
use crate::model::state_reader::StateReader;

use super::reader::{Reader, one_of};
use super::selection::{Subject, select};

/// A field that a policy may fill.
struct Field {
    family: &'static str,
    kind: &'static str,
    pointer: &'static str,
    /// The form of the value, and how a message names it.
    form: fn(&Json) -> bool,
    expected: &'static str,
}

/// All of them. None has a default in its definition: it could never be absent in a cluster.
const FIELDS: [Field; 5] = [
    Field {
        family: "arkonis",
        kind: "ArkMemory",
        pointer: "/spec/redis/maxEntries",
        form: is_count,
        expected: "an integer that is not negative",
    },
    Field {
        family: "arkonis",
        kind: "ArkMemory",
        pointer: "/spec/vectorStore/ttlSeconds",
        form: is_count,
        expected: "an integer that is not negative",
    },
    Field {
        family: "ark",
        kind: "Query",
        pointer: QUERY_MEMORY,
        form: |value| has_only(value, "name"),
        expected: "{name: NAME} alone",
    },
    Field {
        family: "orloj",
        kind: "Memory",
        pointer: "/spec/embedding_model",
        form: |value| value.as_str().is_some_and(|text| !text.trim().is_empty()),
        expected: "a string that is not empty",
    },
    Field {
        family: "orloj",
        kind: "Memory",
        pointer: ORLOJ_AUTH,
        form: |value| has_only(value, "secretRef"),
        expected: "{secretRef: NAME} alone",
    },
];

const QUERY_MEMORY: &str = "/spec/memory";
const ORLOJ_AUTH: &str = "/spec/auth";

fn is_count(value: &Json) -> bool {
    value.as_i64().is_some_and(|number| number >= 0)
}

/// Whether this is an object with one text of this name and nothing else.
fn has_only(value: &Json, field: &str) -> bool {
    let Json::Object(fields) = value else { return false };
    let text = fields.get(field).and_then(Json::as_str);
    fields.len() == 1 && text.is_some_and(|text| !text.trim().is_empty())
}

/// Whether policies may fill fields of a kind.
#[must_use]
pub fn may_fill(family: &str, kind: &str) -> bool {
    FIELDS.iter().any(|field| (field.family, field.kind) == (family, kind))
}

/// Reads one default of a policy.
pub(super) fn read(reader: &Reader<'_>) -> Option<PolicyDefault> {
    let fields = reader.fields(&["family", "kind", "field", "value"])?;
    let text = |field| fields.required(field).and_then(|it| it.text(253));
    let (family, kind, pointer) = (text("family"), text("kind"), text("field"));
    let value = fields.required("value");
    let (family, kind, pointer, value) = (family?, kind?, pointer?, value?);
    let found =
        FIELDS.iter().find(|field| (field.family, field.kind, field.pointer) == (family, kind, pointer));
    let Some(found) = found else {
        let of_kind: Vec<_> =
            FIELDS.iter().filter(|field| (field.family, field.kind) == (family, kind)).collect();
        let message = if of_kind.is_empty() {
            let kinds = FIELDS.map(|field| format!("{}/{}", field.family, field.kind));
            let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            format!("no field of {family} {kind} can be defaulted; use {}", one_of(&dedup(kinds)))
        } else {
            let pointers: Vec<&str> = of_kind.iter().map(|field| field.pointer).collect();
            format!("this field of {family} {kind} cannot be defaulted; use {}", one_of(&pointers))
        };
        fields.fault("field", Cause::NotSupported, &message);
        return None;
    };
    if !(found.form)(value.value()) {
        value.fault(Cause::TypeInvalid, &format!("must be {}", found.expected));
        return None;
    }
    let (family, kind) = (family.to_owned(), kind.to_owned());
    Some(PolicyDefault { family, kind, field: Pointer::new(pointer), value: value.value().clone() })
}

fn dedup(mut names: Vec<&str>) -> Vec<&str> {
    names.dedup();
    names
}

/// Adds what policies fill to the edits that a family makes. Where both would fill a field the family's edit stays,
/// but for the default of a namespace, which comes after policies.
pub fn add<'p>(
    edits: &mut Vec<Edit>,
    kind: &Kind,
    subject: &Subject<'_>,
    snapshot: &'p Snapshot,
    state: &mut StateReader<'p>,
) {
    let Some(selection) = select(subject, snapshot, state, Question::Defaults) else { return };
    let Ok(object) = serde_json::from_str::<Json>(subject.object) else { return };
    let mut wanted = BTreeMap::new();
    for policy in selection.certain() {
        let of_kind = policy.defaults.iter().filter(|it| it.family == subject.family && it.kind == kind.kind);
        for (default, index) in of_kind.zip(0..) {
            let origin = Origin {
                resource: format!("MemoryPolicy {}", policy.name).into(),
                field: format!("spec.defaults[{index}]").into(),
                rule: "",
            };
            wanted.entry(default.field.clone()).or_insert((default, origin));
        }
    }
    for (pointer, (default, origin)) in wanted {
        if !is_open(&object, &pointer) || !is_possible(default, &object, subject, state) {
            continue;
        }
        let others = edits.iter().position(|edit| edit.pointer == pointer);
        let edit =
            Edit { op: Op::Add, pointer, value: Value::Tree(default.value.clone()), origins: vec![origin] };
        match others.and_then(|at| edits.get_mut(at)) {
            None => edits.push(edit),
            Some(other) if other.origins.iter().any(|origin| origin.rule == NAMESPACE_DEFAULT) => {
                *other = edit;
            }
            Some(_) => {}
        }
    }
}

/// Whether a field is absent or null, and its parent is there.
fn is_open(object: &Json, pointer: &Pointer) -> bool {
    let parent = pointer.parent().and_then(|parent| object.pointer(parent.as_str()));
    parent.is_some_and(Json::is_object) && object.pointer(pointer.as_str()).is_none_or(Json::is_null)
}

/// Whether a default fits this object.
fn is_possible(
    default: &PolicyDefault,
    object: &Json,
    subject: &Subject<'_>,
    state: &mut StateReader<'_>,
) -> bool {
    match default.field.as_str() {
        QUERY_MEMORY => {
            let name = default.value.get("name").and_then(Json::as_str).unwrap_or_default();
            let kind = family::find(&default.family).and_then(|family| family.memories.first());
            let found = kind.map(|kind| state.get_if_known(kind, subject.namespace, name));
            subject.operation == Operation::Create
                && matches!(found, Some(Lookup::Found(memory)) if !memory.deleting())
        }
        ORLOJ_AUTH => {
            let provider = object.pointer("/spec/provider").and_then(Json::as_str).unwrap_or_default();
            !["", "memory", "in-memory"].contains(&provider.trim().to_lowercase().as_str())
        }
        _ => true,
    }
}
