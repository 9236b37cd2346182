//! Wrong values in every field that memgate reads of any kind: none of them may lead to a panic, to a
//! patch that does not apply or does not end, or to a message that cannot be printed.
//!
//! Driven by the families' own tables of fields and by the case files: in the object and in the state
//! of a case, each field in turn gets each of [`wrong_values`].

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where something is wrong, and says where it stood"
)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use memgate_core::admission;
use memgate_model::request::{Operation, Request};
use memgate_model::schema::Schema;
use memgate_primitives::pointer::Pointer;
use memgate_workbench::files::casefile::{Case, request};
use serde_json::{Value, json};

use super::cases;

/// What people and templates leave where something else belongs.
pub(super) fn wrong_values() -> Vec<Value> {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    vec![
        Value::Null,
        json!(true),
        json!(1.5),
        json!(u64::MAX),
        json!(""),
        json!(" \u{7}a\n/b:c "),
        json!("é".repeat(300)),
        json!([null, -1, "x", {}]),
        json!({"a": {"b": [1]}}),
        deep,
    ]
}

/// The way to every field of a shape; into lists by their first element.
fn fields(shape: &Schema, here: &Pointer, found: &mut Vec<Pointer>) {
    for field in shape.fields() {
        let below = here.key(field.name);
        found.push(below.clone());
        fields(&field.schema, &below, found);
    }
    if let Schema::List(element) = shape {
        let below = here.index(0);
        found.push(below.clone());
        fields(element, &below, found);
    }
}

/// The fields of an object; none when memgate reads no objects of its kind.
pub(super) fn fields_of(object: &Value) -> Vec<Pointer> {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    let families = memgate_platforms::ALL;
    let validated = memgate_platforms::validated(&families, group, text("kind")).map(|(_, kind)| kind);
    let mut found = Vec::new();
    for kind in validated.into_iter().chain(memgate_platforms::state_kind(
        &memgate_platforms::ALL,
        group,
        text("kind"),
    )) {
        fields(&kind.schema, &Pointer::root(), &mut found);
    }
    found.sort();
    found.dedup();
    // These say which object it is: with others it is another one, or none.
    found.retain(|pointer| !["/apiVersion", "/kind", "/metadata/name"].contains(&pointer.as_str()));
    found
}

/// Sets a field, with the objects and lists on the way where there are none; `None` takes it away.
/// Whether there was a way.
pub(super) fn set(object: &mut Value, pointer: &Pointer, value: Option<&Value>) -> bool {
    let tokens: Vec<_> = pointer.tokens().collect();
    let Some((last, way)) = tokens.split_last() else { return false };
    let mut here = object;
    for token in way {
        let next = match here {
            Value::Object(map) => Some(map.entry(token.as_ref()).or_insert_with(|| json!({}))),
            Value::Array(elements) => token.parse::<usize>().ok().and_then(|index| elements.get_mut(index)),
            _ => None,
        };
        let Some(next) = next else { return false };
        here = next;
    }
    match (here, value) {
        (Value::Object(map), Some(value)) => {
            map.insert(last.as_ref().to_owned(), value.clone());
            true
        }
        (Value::Object(map), None) => map.remove(last.as_ref()).is_some(),
        (Value::Array(elements), Some(value)) => {
            let element = last.parse::<usize>().ok().and_then(|index| elements.get_mut(index));
            element.is_some_and(|element| {
                *element = value.clone();
                true
            })
        }
        _ => false,
    }
}

/// Some cases: each shows a finding, or kinds of objects in the state, that none before it shows.
fn cases() -> Vec<Case> {
    let mut seen = BTreeSet::new();
    let cases = cases::cases().expect("the case files");
    let mut cases: Vec<Case> = cases.into_iter().map(|(_, case)| case).collect();
    cases.retain(|case: &Case| {
        let object = case.object.as_ref().or(case.old_object.as_ref()).expect("an object");
        let kind = (object.get("apiVersion"), object.get("kind"), case.operation.name());
        let state = case.state.iter().filter_map(|object| object.get("kind")?.as_str());
        // All of them go in, so no lazy `any`.
        state.chain([""]).filter(|shown| seen.insert(format!("{kind:?} {shown}"))).count() > 0
    });
    cases
}

/// Decides a case, holds what must be true of any decision, and says what was found.
fn codes(case: &Case) -> BTreeSet<&'static str> {
    let Ok(snapshot) = request::state(case) else { return BTreeSet::new() };
    let body = request::review(case).to_string();
    let review = admission::parse(&body).expect("a review");
    let Ok(admitted) = admission::admit(&review.request, &snapshot) else { return BTreeSet::new() };
    for finding in &admitted.decision.findings {
        let message = finding.message();
        assert!(!message.is_empty() && !message.contains(char::is_control), "{message:?}");
        assert!(message.chars().count() < 1200, "{message:?}");
    }
    if review.request.operation != Operation::Delete {
        let again = Request { object: admitted.object.as_deref(), ..review.request.clone() };
        let again = admission::admit(&again, &snapshot).expect("a good object");
        assert!(again.edits.is_empty(), "a second pass changes something: {:?}", again.edits);
    }
    admitted.decision.findings.iter().map(|finding| finding.code.name).collect()
}

/// One of the objects of a case.
#[derive(Debug, Clone, Copy)]
enum CaseObject {
    Object,
    Old,
    State(usize),
}

fn objects(case: &Case) -> Vec<(CaseObject, &Value)> {
    let object = case.object.iter().map(|object| (CaseObject::Object, object));
    let old = case.old_object.iter().map(|object| (CaseObject::Old, object));
    let state = case.state.iter().enumerate().map(|(index, object)| (CaseObject::State(index), object));
    object.chain(old).chain(state).collect()
}

/// The case with a field set or taken away; `None` when there is no way to the field.
fn damaged(case: &Case, which: CaseObject, pointer: &Pointer, value: Option<&Value>) -> Option<Case> {
    let mut case = case.clone();
    let object = match which {
        CaseObject::Object => case.object.as_mut(),
        CaseObject::Old => case.old_object.as_mut(),
        CaseObject::State(index) => case.state.get_mut(index),
    };
    object.is_some_and(|object| set(object, pointer, value)).then_some(case)
}

/// A part of the wrong values for each field, another one for the next.
#[test]
fn survives_wrong_values_in_every_field() {
    survives_one_wrong_value_of(8);
}

#[test]
#[ignore = "needs minutes"]
fn survives_every_wrong_value_in_every_field() {
    survives_one_wrong_value_of(1);
}

fn survives_one_wrong_value_of(every: usize) {
    let (mut tried, mut turn) = (0, 0);
    for case in cases() {
        for (which, object) in objects(&case) {
            for pointer in fields_of(object) {
                turn += 1;
                // For the other objects, half of them are enough.
                let step = if matches!(which, CaseObject::Object) { every } else { 2 * every };
                for value in wrong_values().into_iter().skip(turn % every).step_by(step) {
                    let Some(damaged) = damaged(&case, which, &pointer, Some(&value)) else { continue };
                    tried += 1;
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| codes(&damaged))) {
                        eprintln!("{}: {which:?} {pointer} {value}", case.name);
                        std::panic::resume_unwind(panic);
                    }
                }
            }
        }
    }
    assert!(tried > 10_000 / every, "only {tried} objects were tried");
}

/// As Go reads JSON, and as the apiserver prunes it.
#[test]
fn takes_null_for_absent_in_every_field() {
    for case in cases() {
        for (which, object) in objects(&case) {
            for pointer in fields_of(object) {
                let in_a_list = pointer.tokens().last().is_some_and(|token| token.parse::<usize>().is_ok());
                let Some(null) = damaged(&case, which, &pointer, Some(&Value::Null)) else { continue };
                let Some(absent) = damaged(&case, which, &pointer, None).filter(|_| !in_a_list) else {
                    continue;
                };
                assert_eq!(codes(&null), codes(&absent), "{}: {which:?} {pointer}", case.name);
            }
        }
    }
}

/// Pods as large as an apiserver lets them be, and labels longer than it does.
#[test]
fn survives_large_pods() {
    let variable = |number: usize| json!({"name": format!("V{number}"), "value": "x"});
    let many: Vec<Value> = (0..5_000).map(variable).collect();
    for mut case in cases().into_iter().filter(|case| case.operation == Operation::Create) {
        let pod = case.object.as_mut().filter(|object| object.get("kind") == Some(&json!("Pod")));
        let Some(pod) = pod else { continue };
        set(pod, &Pointer::new("/metadata/annotations/note"), Some(&json!("n\n".repeat(128 << 10))));
        for container in
            pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut).into_iter().flatten()
        {
            match container.get_mut("env").and_then(Value::as_array_mut) {
                Some(env) => env.extend(many.iter().cloned()),
                None => drop(set(container, &Pointer::new("/env"), Some(&json!(many)))),
            }
        }
        codes(&case);
        let pod = case.object.as_mut().expect("it is there");
        let labels = pod.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
        for label in labels.into_iter().flat_map(serde_json::Map::values_mut) {
            *label = json!(format!("{}{}", label.as_str().unwrap_or_default(), "x".repeat(300)));
        }
        codes(&case);
    }
}
