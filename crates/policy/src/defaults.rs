//! The fields that policies fill where they are absent, before an object is judged.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use memgate_model::edit::{Edit, NAMESPACE_DEFAULT, Op, Origin, Value};
use memgate_model::family;
use memgate_model::finding::Cause;
use memgate_model::policy::{PolicyDefault, Question};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_primitives::pointer::Pointer;

use super::reader::{Reader, one_of};
use super::selection::{Subject, select};

/// Reads one default of a policy.
pub(super) fn read(reader: &Reader<'_>) -> Option<PolicyDefault> {
    let fields = reader.fields(&["family", "kind", "field", "value"])?;
    let text = |field| fields.required(field).and_then(|it| it.text(253));
    let (family, kind, pointer) = (text("family"), text("kind"), text("field"));
    let value = fields.required("value");
    let (family, kind, pointer, value) = (family?, kind?, pointer?, value?);
    let all = || {
        let of_family = |family: &&'static family::Family| {
            let name = family.name;
            family.views.policy_fields.iter().map(move |field| (name, field))
        };
        reader.families().iter().flat_map(of_family)
    };
    let of_kind: Vec<_> = all().filter(|(name, field)| (*name, field.kind.kind) == (family, kind)).collect();
    let Some((_, field)) = of_kind.iter().find(|(_, field)| field.pointer == pointer) else {
        let message = if of_kind.is_empty() {
            let mut kinds: Vec<String> =
                all().map(|(family, field)| format!("{family}/{}", field.kind.kind)).collect();
            kinds.dedup();
            let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            format!("no field of {family} {kind} can be defaulted; use {}", one_of(&kinds))
        } else {
            let pointers: Vec<&str> = of_kind.iter().map(|(_, field)| field.pointer).collect();
            format!("this field of {family} {kind} cannot be defaulted; use {}", one_of(&pointers))
        };
        fields.fault("field", Cause::NotSupported, &message);
        return None;
    };
    if !field.form.accepts(value.value()) {
        value.fault(Cause::TypeInvalid, &format!("must be {}", field.form));
        return None;
    }
    let (family, kind) = (family.to_owned(), kind.to_owned());
    Some(PolicyDefault { family, kind, field: Pointer::new(pointer), value: value.value().clone() })
}

/// Adds the defaults of policies to the edits of a platform. Where both fill a field, the edit of the platform stays,
/// unless it writes the default memory of a namespace.
pub fn add<'p>(
    edits: &mut Vec<Edit>,
    object: &family::Subject<'_>,
    subject: &Subject<'_>,
    snapshot: &'p Snapshot,
    state: &mut StateReader<'p>,
) {
    let Some(selection) = select(subject, snapshot, state, Question::Defaults) else { return };
    let Ok(json) = serde_json::from_str::<Json>(subject.object) else { return };
    let (family, kind) = (subject.family, subject.kind);
    let mut defaults = BTreeMap::new();
    for policy in selection.certain() {
        let of_kind = policy.defaults.iter().filter(|it| it.family == family.name && it.kind == kind);
        for (default, index) in of_kind.zip(0..) {
            let origin = Origin {
                resource: format!("MemoryPolicy {}", policy.name).into(),
                field: format!("spec.defaults[{index}]").into(),
                rule: "",
            };
            defaults.entry(default.field.clone()).or_insert((default, origin));
        }
    }
    let object = family::Subject { operation: subject.operation, ..*object };
    for (pointer, (default, origin)) in defaults {
        let field = family.views.policy_fields.iter().find(|field| field.pointer == pointer.as_str());
        let fits = field.is_some_and(|field| (field.fits)(&default.value, &object, state));
        if !fits || !is_open(&json, &pointer) {
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

/// Whether a field is absent or null in an object that has its parent.
fn is_open(object: &Json, pointer: &Pointer) -> bool {
    let parent = pointer.parent().and_then(|parent| object.pointer(parent.as_str()));
    parent.is_some_and(Json::is_object) && object.pointer(pointer.as_str()).is_none_or(Json::is_null)
}
