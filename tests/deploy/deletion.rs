//! Objects that a finalizer keeps after their deletion: every condition of webhook entries about them lets by only
//! updates that the decision passes over. An interpreter of CEL evaluates them over all combinations of two versions of
//! an object.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "a test may panic, and reads JSON by indexing")]

use std::collections::{BTreeMap, BTreeSet};

use kube_cel::cel::{self, Context, Program};
use memgate_model::change::{Keys, stays_what_it_is};
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use serde_json::{Value, json};

use crate::objects::printed;

/// The group and the plural name of a resource.
type Resource = (String, String);

/// The resources whose updates meet a condition, and its text.
type Condition = (BTreeSet<Resource>, String);

/// The conditions of all entries that see updates of resources.
fn conditions() -> Vec<Condition> {
    let mut conditions = Vec::new();
    for (name, object) in printed(&["--component=policy-strict"]) {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        for entry in list(&object["webhooks"]) {
            let (rules, all) = (list(&entry["rules"]), list(&entry["matchConditions"]));
            let updates = |rule: &&Value| {
                let operations = list(&rule["operations"]);
                operations.contains(&json!("UPDATE")) || operations.contains(&json!("*"))
            };
            let texts = |value: &Value| -> Vec<String> {
                list(value).iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
            };
            let pairs = |rule: &Value| {
                let groups = texts(&rule["apiGroups"]);
                let of_group =
                    |group| texts(&rule["resources"]).into_iter().map(move |it| (String::clone(group), it));
                groups.iter().flat_map(of_group).collect::<Vec<_>>()
            };
            let resources: BTreeSet<Resource> = rules.iter().filter(updates).flat_map(pairs).collect();
            if resources.is_empty() {
                continue;
            }
            let is_about_it =
                |it: &&Value| it["name"].as_str().is_some_and(|it| it.starts_with("not-deleting"));
            let found: Vec<_> = all.iter().filter(is_about_it).collect();
            let [condition] = found[..] else { panic!("{name}, {resources:?}: {found:?}") };
            conditions.push((resources, condition["expression"].as_str().expect("a text").to_owned()));
        }
    }
    conditions
}

/// The version of an object before or after a request.
fn versions() -> Vec<Value> {
    let specs = [None, Some(json!({})), Some(json!({"a": 1})), Some(json!({"a": {"b": []}}))];
    let maps = [None, Some(json!({})), Some(json!({"team": "a"}))];
    let mut all = Vec::new();
    for spec in &specs {
        for labels in &maps {
            for annotations in &maps {
                let mut object = json!({"metadata": {"name": "some"}});
                for (field, map) in [("labels", labels), ("annotations", annotations)] {
                    if let Some(map) = map {
                        object["metadata"][field] = map.clone();
                    }
                }
                if let Some(spec) = spec {
                    object["spec"] = spec.clone();
                }
                all.push(object);
            }
        }
    }
    let keys = memgate_platforms::ALL.into_iter().flat_map(|family| family.meanings);
    let keys: BTreeSet<String> =
        keys.flat_map(|meaning| [meaning.labels, meaning.annotations]).flat_map(samples).collect();
    for key in &keys {
        for (map, value) in [("labels", "a"), ("labels", ""), ("annotations", "a"), ("annotations", "")] {
            let mut object = json!({"metadata": {"name": "some"}, "spec": {"a": 1}});
            object["metadata"][map] = json!({"team": "a", key: value});
            all.push(object);
        }
    }
    all
}

/// Some of the keys.
fn samples(keys: Keys) -> Vec<String> {
    match keys {
        Keys::None | Keys::All => Vec::new(),
        Keys::These(keys) => keys.iter().map(|key| (*key).to_owned()).collect(),
        Keys::StartingWith(start) => ["one", "two"].map(|end| format!("{start}{end}")).into(),
    }
}

fn stamped(object: &Value, goes: bool) -> Value {
    let mut object = object.clone();
    if goes {
        object["metadata"]["deletionTimestamp"] = json!("2026-03-15T10:00:00Z");
        object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    }
    object
}

/// The kind of a resource, and its family; `None` for a kind of none.
fn kind_of((group, plural): &Resource) -> (Option<&'static Family>, String) {
    let validated = |family: &'static Family| family.kinds.validated.iter().map(move |kind| (family, *kind));
    let is_it = |(_, kind): &(&Family, &Kind)| kind.group == group && kind.plural == plural;
    match memgate_platforms::ALL.into_iter().flat_map(validated).find(is_it) {
        Some((family, kind)) => (Some(family), kind.kind.to_owned()),
        None => (None, "Other".to_owned()),
    }
}

#[test]
fn only_updates_that_leave_all_alone_are_let_by() {
    let conditions = conditions();
    assert!(conditions.iter().any(|(resources, _)| resources.len() > 1), "none is about several kinds");
    assert!(conditions.len() > 10, "{} conditions", conditions.len());
    // Of the kinds of a platform that have no metadata of their own one is enough.
    let mut each = BTreeMap::new();
    for (resources, text) in &conditions {
        for resource in resources {
            let (family, kind) = kind_of(resource);
            let meanings = family.map_or(&[][..], |family| family.meanings);
            let has_meaning = meanings.iter().flat_map(|meaning| meaning.kinds).any(|it| it.kind == kind);
            let class = if has_meaning { kind.as_str() } else { "" }.to_owned();
            each.insert((family.map(|family| family.name), class, text.as_str()), resource);
        }
    }
    let versions = versions();
    for ((_, _, expression), resource) in each {
        let (family, kind) = kind_of(resource);
        let kind = kind.as_str();
        let meanings = family.map_or(&[][..], |family| family.meanings);
        let program = Program::compile(expression).expect("it is CEL");
        let is_let_by = |object: Option<&Value>, old: Option<&Value>| {
            let mut context = Context::default();
            let request = json!({"kind": {"group": resource.0, "kind": kind}});
            let values = [("object", object), ("oldObject", old), ("request", Some(&request))];
            for (name, value) in values {
                let value = value.map_or(cel::Value::Null, |value| cel::to_value(value).expect("a value"));
                context.add_variable_from_value(name, value);
            }
            match program.execute(&context) {
                Ok(cel::Value::Bool(is_asked)) => !is_asked,
                other => panic!("{expression}: {other:?} for {object:?} of {old:?}"),
            }
        };
        for old in &versions {
            for goes in [false, true] {
                let old = stamped(old, goes);
                assert!(!is_let_by(Some(&old), None), "{kind}: create {old}: {expression}");
                assert!(!is_let_by(None, Some(&old)), "{kind}: delete {old}: {expression}");
                for object in &versions {
                    // A client can leave the time out, or write one.
                    let is_same = stays_what_it_is(kind, meanings, &object.to_string(), &old.to_string());
                    for says in [false, true] {
                        let object = stamped(object, says);
                        let expected = goes && is_same;
                        let let_by = is_let_by(Some(&object), Some(&old));
                        assert_eq!(let_by, expected, "{kind}: {object} of {old}: {expression}");
                    }
                }
            }
        }
    }
}
