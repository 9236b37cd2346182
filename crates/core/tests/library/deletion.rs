//! Objects that a finalizer keeps after their deletion, of every kind that is judged: a new spec, and new metadata that
//! means something, are judged as ever, and an update that leaves both alone is not judged at all. With the objects of
//! all case files.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use std::collections::BTreeSet;

use memgate_core::admission;
use memgate_model::decision::Decision;
use memgate_model::kind::POLICY_KINDS;
use memgate_model::request::{Occasion, Operation};
use memgate_workbench::files::casefile::{Case, request};
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

/// The metadata that means something to a platform: the group and kinds, and keys of labels and annotations. A key that
/// ends in `*` is a prefix.
type Meant = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

/// The rows.
const MEANT: [Meant; 4] = [
    ("orloj.dev/", &["Memory", "Agent", "ModelEndpoint"], &[], &["orloj.dev/target-namespace"]),
    (
        "sympozium.ai/",
        &["Agent", "AgentRun", "SympoziumInstance"],
        &[
            "sympozium.ai/ensemble", "sympozium.ai/persona-pack", "sympozium.ai/agent-config",
            "sympozium.ai/persona", "sympozium.ai/source",
        ],
        &["memgate.dev/memory-mode"],
    ),
    ("core.orka.ai/", &["Agent", "Task"], &[], &["memgate.dev/orka-*"]),
    ("v1", &["Namespace"], &["*"], &["*", "memgate.dev/orka-*"]),
];

/// The labels and annotations of an object that mean something, by the map.
fn meant(object: &Value) -> [(&'static str, &'static [&'static str]); 2] {
    let of = |field: &str| object[field].as_str().unwrap_or_default();
    let it = MEANT
        .iter()
        .find(|(group, kinds, ..)| of("apiVersion").starts_with(group) && kinds.contains(&of("kind")));
    let (labels, annotations) =
        it.map_or_else(Default::default, |(.., labels, annotations)| (*labels, *annotations));
    [("labels", labels), ("annotations", annotations)]
}

/// Those entries of one map.
fn entries(object: &Value, (map, keys): (&str, &[&str])) -> Value {
    let fits = |key: &str| {
        keys.iter().any(|it| it.strip_suffix('*').map_or(*it == key, |start| key.starts_with(start)))
    };
    let all = object["metadata"][map].as_object().into_iter().flatten();
    all.filter(|(key, _)| fits(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// What an object means: the parts of which a change is judged. A field that is null is not there.
fn meaning(object: &Value) -> [Value; 3] {
    let [labels, annotations] = meant(object).map(|keys| entries(object, keys));
    let spec = if object["kind"] == "Namespace" { Value::Null } else { without_nulls(&object["spec"]) };
    [spec, labels, annotations]
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

/// The same object with the metadata that means something, and no other.
fn relabelled(object: &Value) -> Value {
    let mut relabelled = object.clone();
    for (keys, other) in
        meant(object).into_iter().zip([json!({"team": "other"}), json!({"example.com/note": "any"})])
    {
        if !keys.1.contains(&"*") {
            let mut left = entries(object, keys);
            left.as_object_mut().expect("a map").extend(other.as_object().cloned().unwrap_or_default());
            relabelled["metadata"][keys.0] = left;
        }
    }
    relabelled
}

/// The object with another value, and without one, for each key that means something.
fn otherwise_labelled(object: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    for (map, keys) in meant(object) {
        for key in keys {
            let key = key.replace("orka-*", "orka-memory-context").replace('*', "team");
            let mut changed = object.clone();
            changed["metadata"][map][&key] = json!("other");
            all.push(changed.clone());
            if let Some(map) = changed["metadata"][map].as_object_mut() {
                map.remove(&key);
            }
            all.push(changed);
        }
    }
    all
}

#[test]
fn only_updates_that_leave_the_meaning_alone_are_passed_over() {
    let [mut judged, mut by_metadata, mut left_alone] = [const { BTreeSet::new() }; 3];
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
        // A new spec, or new metadata that means something, is judged as if nothing went.
        for old in otherwise_labelled(&object).into_iter().chain([old]) {
            if meaning(&object) == meaning(&old) {
                continue;
            }
            let (mut object, mut old) = (object.clone(), old.clone());
            for each in [&mut object, &mut old] {
                each["metadata"]["deletionTimestamp"].take();
                each["metadata"]["finalizers"] = held.clone();
            }
            let usual = decided(&case, &object, Some(&old));
            let of_going = decided(&case, &going, Some(&stamped(&old, &held)));
            assert_eq!(of_going, usual, "{case_name}: changed from {old}");
            if !usual.0.is_empty() {
                judged.insert(kind.clone());
                if object["spec"] == old["spec"] {
                    by_metadata.insert(kind.clone());
                }
            }
        }
        // The same one is not, whatever is wrong with it.
        let relabelled = stamped(&relabelled(&object), &json!([]));
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
    let of_metadata =
        MEANT.iter().flat_map(|(group, kinds, ..)| kinds.iter().map(move |kind| (*group, *kind)));
    let unseen: Vec<_> = of_metadata
        .filter(|(_, kind)| !WITHOUT.contains(kind))
        .filter(|(group, kind)| {
            let is_it = |seen: &String| {
                seen.starts_with(&format!("\"{group}")) && seen.ends_with(&format!(" \"{kind}\""))
            };
            !by_metadata.iter().any(is_it)
        })
        .collect();
    assert_eq!(unseen, [], "no change of their metadata is judged");
}

/// What is decided of the case with a state in which an object is being deleted, by code.
fn codes_with(case: &Case, state: Vec<Value>) -> Vec<String> {
    let case = Case { state, ..(*case).clone() };
    let (snapshot, body) = (request::state(&case).expect("a state"), request::review(&case).to_string());
    let review = admission::parse(&body).expect("a review");
    let Ok(admitted) = admission::admit(&review.request, &snapshot) else { return Vec::new() };
    admitted.decision.findings.iter().map(|finding| finding.code_name().to_string()).collect()
}

#[test]
fn whatever_refers_to_memory_that_goes_is_warned_about_once() {
    const CODE: &str = "memgate/reference-terminating";
    let families = memgate_platforms::ALL.into_iter();
    let edges: Vec<_> = families.flat_map(|family| family.edges).filter(|edge| edge.serves_memory).collect();
    let is_named = |object: &Value| {
        let group = object["apiVersion"].as_str().and_then(|it| it.split_once('/')).map_or("", |it| it.0);
        let kind = object["kind"].as_str().unwrap_or_default();
        edges.iter().flat_map(|edge| edge.to).any(|known| known.is(group, kind))
    };
    let held = json!(["example.com/hold"]);
    let mut warned = BTreeSet::new();
    for (file, case) in cases().expect("cases") {
        let Some(object) = &case.object else { continue };
        let what = if object["kind"] == "Pod" {
            format!("{} Pod", file.split('/').next().unwrap_or_default())
        } else {
            format!("{} {}", object["apiVersion"], object["kind"])
        };
        for index in 0..case.state.len() {
            if !is_named(&case.state[index]) {
                continue;
            }
            let mut state = case.state.clone();
            let mut others = state.clone();
            if let Some(metadata) = others[index]["metadata"].as_object_mut() {
                metadata.remove("deletionTimestamp");
            }
            state[index] = stamped(&state[index], &held);
            let count = |state| codes_with(&case, state).into_iter().filter(|code| code == CODE).count();
            // Others of the state may go already.
            let said = count(state).saturating_sub(count(others));
            assert!(said <= 1, "{file}: {}: {said} times for {}", case.name, case.state[index]);
            if said == 1 {
                warned.insert(what.clone());
            }
        }
    }
    let referrers = edges.iter().filter(|edge| edge.missing.is_some()).flat_map(|edge| edge.from);
    let referrers: BTreeSet<_> = referrers
        .filter(|kind| !WITHOUT.contains(&kind.kind))
        .map(|kind| format!("{} {}", json!(kind.api_version()), json!(kind.kind)))
        .chain(["arkonis", "ark", "orloj", "sympozium"].map(|family| format!("{family} Pod")))
        .collect();
    let silent: Vec<_> = referrers.difference(&warned).collect();
    assert_eq!(silent, Vec::<&String>::new(), "no case of these is warned about");
}
