//! The fields that policies fill where they are absent, before an object is judged.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use memgate_model::edit::{Edit, NAMESPACE_DEFAULT, Op, Origin, Value};
use memgate_model::family;
use memgate_model::finding::{Cause, Finding, Severity, excerpt};
use memgate_model::plain_value;
use memgate_model::policy::{PolicyDefault, Question};
use memgate_model::request::Operation;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

use super::codes::DEFAULT_MISSING;
use super::reader::{Reader, one_of, with_field};
use super::selection::{Subject, select};
use super::text::plain_name;

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

/// The start of the origin of a policy's edit.
const BY_POLICY: &str = "MemoryPolicy ";

/// The note about a stored object that lacks the field of an edit; `None` for an edit that no policy makes.
pub fn missing(edit: &Edit) -> Option<Finding> {
    let policy = edit.origins.first()?.resource.strip_prefix(BY_POLICY)?;
    let Value::Tree(value) = &edit.value else { return None };
    let value = excerpt(&value.to_string());
    let message = format!("not set; policy {} sets {value} on new objects only", plain_name(policy));
    let finding =
        Finding::warn(&DEFAULT_MISSING, edit.pointer.parent()?, with_field(&edit.pointer, &message));
    let help = "set the field in the object if it is to have that value; no update writes it";
    Some(Finding { severity: Severity::Note, ..finding }.help(help))
}

/// Adds the defaults of policies to the edits of a platform. Where both fill a field, the edit of the platform stays,
/// unless it writes the default memory of a namespace. On UPDATE, a field that the stored object has and the update drops
/// keeps its stored value; memory that was stored without a limit stays without one.
pub fn add<'p>(
    edits: &mut Vec<Edit>,
    object: &family::Subject<'_>,
    subject: &Subject<'_>,
    snapshot: &'p Snapshot,
    state: &mut StateReader<'p>,
) {
    let Some(selection) = select(subject, snapshot, state, Question::Defaults) else { return };
    // Then policies are among them that do not match.
    if state.budget().has_ended() {
        return;
    }
    let (family, kind) = (subject.family, subject.kind);
    let mut defaults = BTreeMap::new();
    for policy in selection.certain() {
        let of_kind = policy.defaults.iter().filter(|it| it.family == family.name && it.kind == kind);
        for (default, index) in of_kind.zip(0..) {
            let origin = Origin {
                resource: format!("{BY_POLICY}{}", policy.name).into(),
                field: format!("spec.defaults[{index}]").into(),
                rule: "",
            };
            defaults.entry(default.field.clone()).or_insert((default, origin));
        }
    }
    let creates = subject.operation == Operation::Create;
    if defaults.is_empty() || !creates && !keeps_its_store(family, object, state) {
        return;
    }
    // An object with very many values gets no defaults.
    let read = |text| plain_value::read(text, &Budget::default()).ok();
    let Some(json) = read(subject.object.text) else { return };
    let stored = subject.old.and_then(|old| read(old.text));
    for (pointer, (default, origin)) in defaults {
        let mut fields = family.views.policy_fields.iter();
        let field = fields.find(|it| it.kind == object.kind && it.pointer == pointer.as_str());
        let stored = stored.as_ref().and_then(|stored| stored.pointer(pointer.as_str()));
        let value = if creates { Some(&default.value) } else { stored.filter(|value| !value.is_null()) };
        let Some(value) = value.filter(|_| is_open(&json, &pointer)) else { continue };
        if !field.is_some_and(|field| (field.fits)(value, object, state)) {
            continue;
        }
        let others = edits.iter().position(|edit| edit.pointer == pointer);
        let edit = Edit { op: Op::Add, pointer, value: Value::Tree(value.clone()), origins: vec![origin] };
        match others.and_then(|at| edits.get_mut(at)) {
            None => edits.push(edit),
            Some(other) if other.origins.iter().any(|origin| origin.rule == NAMESPACE_DEFAULT) => {
                *other = edit;
            }
            Some(_) => {}
        }
    }
}

/// Whether an update leaves backend and provider as they are stored. The limits of another store are not known.
fn keeps_its_store(
    family: &family::Family,
    object: &family::Subject<'_>,
    state: &mut StateReader<'_>,
) -> bool {
    let Some(old) = object.old else { return false };
    let old = family::Subject { object: old, old: None, ..*object };
    let mut store = |subject| {
        let view = (family.views.of_object)(subject, state)?;
        Some(["backend", "provider"].map(|path| view.text(path).map(str::to_owned)))
    };
    store(object) == store(&old)
}

/// Whether a field is absent or null in an object that has its parent.
fn is_open(object: &Json, pointer: &Pointer) -> bool {
    let parent = pointer.parent().and_then(|parent| object.pointer(parent.as_str()));
    parent.is_some_and(Json::is_object) && object.pointer(pointer.as_str()).is_none_or(Json::is_null)
}
