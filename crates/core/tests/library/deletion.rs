//! Objects that a finalizer keeps after their deletion, of every kind that is judged: a new spec is judged as ever, and
//! an update that leaves the spec alone is not judged at all. Both with the objects of all case files.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use std::collections::BTreeSet;

use memgate_core::admission;
use memgate_model::decision::Decision;
use memgate_model::kind::POLICY_KINDS;
use memgate_model::request::{Occasion, Operation};
use memgate_workbench::casefile::{Case, request};
use serde_json::{Value, json};

use super::cases::cases;

/// The newer names of these kinds have cases.
const WITHOUT: [&str; 2] = ["AgentConfig", "SympoziumInstance"];

/// What is decided about an update, by codes and severities, with the edits.
fn decided(case: &Case, object: &Value, old: Option<&Value>) -> (Vec<String>, Vec<String>) {
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let case = Case { operation, object: Some(object.clone()), old_object: old.cloned(), ..(*case).clone() };
    let state = request::state(&case).expect("a state");
    let body = request::review(&case).to_string();
    let mut review = admission::parse(&body).expect("a review");
    review.request.occasion = Occasion { user: review.request.occasion.user, ..case.occasion };
    let Ok(admitted) = admission::admit(&review.request, &state) else { return Default::default() };
    let Decision { findings, .. } = admitted.decision;
    let said = findings
        .iter()
        .map(|finding| format!("{:?} {} {}", finding.severity, finding.code_name(), finding.message()));
    (said.collect(), admitted.edits.iter().map(|edit| format!("{edit:?}")).collect())
}

fn stamped(object: &Value, finalizers: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["deletionTimestamp"] = json!("2026-03-15T10:00:00Z");
    object["metadata"]["finalizers"] = finalizers.clone();
    object
}

/// What an object means: the parts of which a change is judged. A field that is null is not there.
fn meaning(object: &Value) -> [Value; 2] {
    if object["kind"] == "Namespace" {
        ["labels", "annotations"].map(|field| without_nulls(&object["metadata"][field]))
    } else {
        [without_nulls(&object["spec"]), Value::Null]
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, field)| !field.is_null());
            fields.map(|(key, field)| (key.clone(), without_nulls(field))).collect()
        }
        Value::Array(elements) => elements.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

fn blank(object: &Value) -> Value {
    let mut blank = object.clone();
    if object["kind"] == "Namespace" {
        blank["metadata"] = json!({"name": object["metadata"]["name"], "labels": {"any": "thing"}});
    } else if let Some(fields) = blank.as_object_mut() {
        fields.remove("spec");
    }
    blank
}

#[test]
fn only_updates_that_leave_the_spec_alone_are_passed_over() {
    let (mut judged, mut left_alone) = (BTreeSet::new(), BTreeSet::new());
    let held = json!(["example.com/hold", "example.com/more"]);
    for (file, case) in cases().expect("cases") {
        let Some(object) = &case.object else { continue };
        let is_written = matches!(case.operation, Operation::Create | Operation::Update);
        if !object["metadata"].is_object() || object["kind"] == "Pod" || !is_written {
            continue;
        }
        if !case.subresource.is_empty() {
            continue;
        }
        let case_name = format!("{file}: {}", case.name);
        let kind = format!("{} {}", object["apiVersion"], object["kind"]);
        let mut object = object.clone();
        object["metadata"]["deletionTimestamp"].take();
        let old = case.old_object.clone().filter(Value::is_object).unwrap_or_else(|| blank(&object));
        let going = stamped(&object, &held);

        // On CREATE the timestamp means nothing.
        assert_eq!(decided(&case, &going, None), decided(&case, &object, None), "{case_name}: create");
        // A new spec is judged as if nothing went.
        if meaning(&object) != meaning(&old) {
            let (mut object, mut old) = (object.clone(), old.clone());
            for each in [&mut object, &mut old] {
                each["metadata"]["deletionTimestamp"].take();
                each["metadata"]["finalizers"] = held.clone();
            }
            let usual = decided(&case, &object, Some(&old));
            let of_going = decided(&case, &going, Some(&stamped(&old, &held)));
            assert_eq!(of_going, usual, "{case_name}: a new spec");
            if !usual.0.is_empty() {
                judged.insert(kind.clone());
            }
        }
        // The same one is not, whatever is wrong with it.
        let mut relabelled = stamped(&object, &json!([]));
        if object["kind"] != "Namespace" {
            relabelled["metadata"]["labels"] = json!({"team": "other"});
            relabelled["metadata"]["annotations"] = json!({"example.com/note": "any"});
        }
        let let_go = decided(&case, &relabelled, Some(&stamped(&object, &held)));
        assert_eq!(let_go, Default::default(), "{case_name}: only the finalizers");
        left_alone.insert(kind);
    }
    let known =
        memgate_platforms::ALL.into_iter().flat_map(|family| family.kinds.validated).chain(&POLICY_KINDS);
    let with_cases = known.filter(|kind| !WITHOUT.contains(&kind.kind));
    let names: BTreeSet<_> =
        with_cases.map(|kind| format!("{} {}", json!(kind.api_version()), json!(kind.kind))).collect();
    let unseen = |seen: &BTreeSet<String>| names.difference(seen).cloned().collect::<Vec<_>>();
    assert_eq!(unseen(&left_alone), Vec::<String>::new(), "no case is about these");
    assert_eq!(unseen(&judged), Vec::<String>::new(), "no case says anything of these");
}
