//! Re-judgement: no sequence of single admitted writes ends in a state that one write would have been refused.
//!
//! Of each case whose object is denied because of the state, the object is written first and then each object of the
//! state; and each object of the state is changed from a value with which the object was admitted. Some write must be
//! denied. `tests/laws.yaml` has what is left out, by the fact that allows it.

#[path = "../../../tests/support/cases.rs"]
mod cases;
#[path = "../../../tests/support/laws.rs"]
mod laws;
#[path = "rejudgement/read_elsewhere.rs"]
mod read_elsewhere;
#[path = "rejudgement/updates.rs"]
mod updates;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use memgate_core::admission;
use memgate_core::state;
use memgate_model::request::{Occasion, Operation, Point};
use memgate_workbench::files::casefile::{Case, request};
use serde_json::{Value, json};

/// The exceptions by their names in `tests/laws.yaml`: whether a case is one.
type IsOpen = fn(&Case) -> bool;

const EXCEPTIONS: [(&str, IsOpen); 7] = [
    ("pods", |case| {
        let object = case.object.as_ref().unwrap_or(&Value::Null);
        object["kind"] == "Pod" || object.pointer("/spec/template").is_some()
    }),
    ("unseen", |case| case.state.iter().any(|object| !is_background(object) && !has_entry(object))),
    ("elsewhere", |case| {
        let own = case.object.as_ref().map(home).unwrap_or_default();
        case.state.iter().any(|object| has_entry(object) && !is_background(object) && home(object) != own)
    }),
    ("operations", |case| policies(case).any(|policy| policy.pointer("/spec/match/operations").is_some())),
    ("users", |case| {
        let rules = |policy: &Value| policy.pointer("/spec/rules").map(Value::to_string).unwrap_or_default();
        policies(case).any(|policy| rules(policy).contains("\"path\":\"users\""))
    }),
    ("tasks", |case| case.object.as_ref().is_some_and(|object| object["kind"] == "Task")),
    ("config", |case| case.state.iter().any(|object| object["kind"] == "ArkConfig")),
];

fn home(object: &Value) -> String {
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    namespace.unwrap_or("default").to_owned()
}

fn policies(case: &Case) -> impl Iterator<Item = &Value> {
    case.state.iter().filter(|object| object["kind"] == "MemoryPolicy")
}

/// Whether an object is there before all others: what administrators write.
fn is_background(object: &Value) -> bool {
    let is_policy =
        object["apiVersion"].as_str().is_some_and(|version| version.starts_with("policy.memgate.dev/"));
    is_policy || ["Namespace", "CustomResourceDefinition"].iter().any(|kind| object["kind"] == *kind)
}

/// Whether an apiserver sends objects of this kind.
fn has_entry(object: &Value) -> bool {
    let (group, kind) = state::group_and_kind(object);
    memgate_platforms::validated(&memgate_platforms::ALL, group, kind).is_some()
}

/// Whether a write is admitted, with the codes that refuse it.
fn admitted(
    case: &Case,
    written: &Value,
    old: Option<&Value>,
    state: &[Value],
) -> Result<(bool, Vec<String>)> {
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let case = Case {
        operation,
        object: Some(written.clone()),
        old_object: old.cloned(),
        state: state.to_vec(),
        namespace: None,
        ..case.clone()
    };
    let mut snapshot = request::state(&case)?;
    snapshot.crds = None;
    let body = request::review(&case).to_string();
    let mut review = admission::parse(&body)?;
    let user = review.request.occasion.user;
    review.request.occasion = Occasion { user, ..case.occasion };
    let admitted = admission::admit(&review.request, &snapshot)?;
    let denials = admitted.decision.findings.iter().filter(|finding| finding.is_denial());
    Ok((admitted.allowed(), denials.map(|finding| finding.code_name().to_owned()).collect()))
}

/// The cases whose object is denied because of objects of the state.
fn denied_by_state() -> Result<Vec<(String, Case)>> {
    let listed = laws::facts("rejudgement")?;
    let known: Vec<&str> = EXCEPTIONS.iter().map(|(name, _)| *name).collect();
    ensure!(listed == known, "tests/laws.yaml lists {listed:?}, and here are {known:?}");
    let mut found = Vec::new();
    for (file, case) in cases::cases()?.into_iter().chain(cases::library_cases()?) {
        let (Some(object), Operation::Create) = (case.object.clone(), case.operation) else { continue };
        if case.occasion.point != Point::Admission || !case.subresource.is_empty() || !has_entry(&object) {
            continue;
        }
        let background: Vec<Value> = case.state.iter().filter(|it| is_background(it)).cloned().collect();
        if background.len() == case.state.len() || EXCEPTIONS.iter().any(|(_, is_open)| is_open(&case)) {
            continue;
        }
        let is_denied = !admitted(&case, &object, None, &case.state)?.0;
        if is_denied && admitted(&case, &object, None, &background)?.0 {
            found.push((format!("{file}: {}", case.name), case));
        }
    }
    Ok(found)
}

/// The same case with all policies of this kind.
fn with_existing(case: &Case, existing: &str) -> Case {
    let mut case = case.clone();
    for policy in case.state.iter_mut().filter(|object| object["kind"] == "MemoryPolicy") {
        if let Some(spec) = policy.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("existing".to_owned(), json!(existing));
        }
    }
    case
}

#[test]
fn objects_that_come_one_after_the_other_are_denied_at_the_latest_with_the_last() -> Result<()> {
    let (mut asked, mut open) = (0, Vec::new());
    for (name, case) in denied_by_state()? {
        for existing in ["ratchet", "enforce"] {
            let case = with_existing(&case, existing);
            let object = case.object.clone().unwrap_or_default();
            let (mut state, others): (Vec<Value>, Vec<Value>) =
                case.state.iter().cloned().partition(is_background);
            state.push(object);
            let mut is_denied = false;
            for other in others {
                is_denied |= !admitted(&case, &other, None, &state)?.0;
                state.push(other);
            }
            asked += 1;
            if !is_denied {
                open.push(format!("{existing}: {name}"));
            }
        }
    }
    ensure!(open.is_empty(), "of {asked}, {} end in a denied state: {open:#?}", open.len());
    ensure!(asked > 20, "only {asked} were asked");
    Ok(())
}

/// Values of an object with which another may be admitted: without its spec, and without each part of it.
fn harmless(object: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let mut without = |pointer: &str| {
        let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
        let mut changed = object.clone();
        if let Some(fields) = changed.pointer_mut(parent).and_then(Value::as_object_mut) {
            fields.remove(key);
            all.push(changed);
        }
    };
    let mut pointers = vec!["/spec".to_owned()];
    while let Some(pointer) = pointers.pop() {
        if let Some(fields) = object.pointer(&pointer).and_then(Value::as_object) {
            pointers.extend(fields.keys().map(|key| format!("{pointer}/{key}")));
        }
        without(&pointer);
    }
    all
}

#[test]
fn a_change_of_what_an_object_refers_to_is_denied_like_the_object() -> Result<()> {
    let (mut asked, mut open) = (BTreeMap::<_, usize>::new(), Vec::new());
    for (name, case) in denied_by_state()? {
        let object = case.object.clone().unwrap_or_default();
        for (index, changed) in case.state.iter().enumerate().filter(|(_, it)| !is_background(it)) {
            for (existing, is_terminating) in
                [("ratchet", false), ("enforce", false), ("ratchet", true), ("enforce", true)]
            {
                let case = with_existing(&case, existing);
                let with = |value: &Value| {
                    let mut state = case.state.clone();
                    state.splice(index..=index, [value.clone()]);
                    state
                };
                for mut before in harmless(changed) {
                    // A harmless value is one with which the object, and the value itself, are admitted.
                    let is_harmless = admitted(&case, &object, None, &with(&before))?.0
                        && admitted(&case, &before, None, &with(&before))?.0;
                    let mut after = changed.clone();
                    if !is_harmless || !admitted(&case, &after, None, &with(&before))?.0 {
                        continue;
                    }
                    if is_terminating {
                        let at = ("deletionTimestamp".to_owned(), json!("2027-01-01T00:00:00Z"));
                        for value in [&mut before, &mut after] {
                            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                                metadata.extend([at.clone()]);
                            }
                        }
                    }
                    let mut state = with(&before);
                    state.push(object.clone());
                    *asked.entry(after["kind"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
                    if admitted(&case, &after, Some(&before), &state)?.0 {
                        let terminating = if is_terminating { ", terminating" } else { "" };
                        open.push(format!(
                            "{existing}{terminating}: {name}: {} before: {before}",
                            after["kind"]
                        ));
                    }
                }
            }
        }
    }
    ensure!(open.is_empty(), "of {asked:?}, {} are admitted: {open:#?}", open.len());
    ensure!(asked.values().sum::<usize>() > 20, "only {asked:?} were asked");
    Ok(())
}
