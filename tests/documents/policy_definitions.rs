//! That the definitions of memgate's own kinds name what memgate knows.

#![allow(clippy::indexing_slicing, clippy::expect_used, reason = "a test stops where something is wrong")]

use memgate_manifest::{document::values, source::Source};
use memgate_model::kind::POLICY_KINDS;
use memgate_model::memory_view::ViewPath;
use memgate_policy::{read, rules};
use serde_json::{Value, json};
use std::sync::Arc;

const GOOD: &str = include_str!("../apiserver/policies/good.yaml");
const BAD_RULES: &str = include_str!("../apiserver/policies/rules.yaml");
const BAD_POLICIES: &str = include_str!("../apiserver/policies/policies.yaml");

/// The schemas of a policy and of an exemption, at their specification.
fn specs() -> Vec<Value> {
    let mut faults = Vec::new();
    let documents =
        values(&Arc::new(Source::new("policy.yaml", memgate_platforms::policy_crds())), &mut faults);
    assert!(faults.is_empty(), "{faults:?}");
    let spec = |kind: &str| {
        let mut specs = documents.iter().map(|document| &document.value()["spec"]);
        let spec = specs.find(|spec| spec["names"]["kind"] == kind).expect("it is defined");
        spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].clone()
    };
    POLICY_KINDS.map(|kind| spec(kind.kind)).to_vec()
}

#[test]
fn know_all_families() {
    let specs = specs();
    let families = json!(memgate_platforms::ALL.map(|family| family.name));
    for (spec, pointer) in [
        (&specs[0], "/match/properties/families/items"),
        (&specs[0], "/defaults/items/properties/family"),
        (&specs[1], "/target/properties/families/items"),
    ] {
        assert_eq!(spec.pointer(pointer).expect("it is there")["enum"], families, "{pointer}");
    }
}

#[test]
fn know_all_paths_of_a_view() {
    let pointer = "/rules/items/properties/immutable/items/enum";
    let of_families = memgate_platforms::ALL.into_iter().filter_map(|family| family.views.own_namespace_path);
    let mut paths: Vec<&str> = ViewPath::all(of_families).into_iter().map(|row| row.path).collect();
    paths.retain(|path| !path.contains('['));
    paths.sort_unstable();
    assert_eq!(specs()[0].pointer(pointer), Some(&json!(paths)));
}

#[test]
fn know_all_types_of_rules() {
    let specs = specs();
    let fields = specs[0].pointer("/rules/items/properties").and_then(Value::as_object).expect("fields");
    let types: Vec<&str> = rules::TYPES.iter().map(|rule| rule.name).collect();
    for name in &types {
        assert!(fields.contains_key(*name), "there is no {name}");
    }
    let described = specs[0].pointer("/rules/items/x-kubernetes-validations/0/message").expect("words");
    assert_eq!(*described, json!(format!("has no rule; use one of {}", types.join(", "))));
}

/// What an apiserver refuses, `memgate check` refuses too, and what it accepts, that does.
#[test]
fn say_what_memgate_says() {
    let parsed = |text: &str| values(&Arc::new(Source::new("policies", text)), &mut Vec::new());
    for document in parsed(GOOD) {
        let manifest = document.value();
        let faults = match manifest["kind"].as_str() {
            Some("MemoryPolicy") => read::policy(manifest, &memgate_platforms::ALL).1,
            _ => read::exemption(manifest, &memgate_platforms::ALL).1,
        };
        assert!(faults.is_empty(), "{manifest}: {faults:?}");
    }
    let mut accepted = Vec::new();
    let mut refuse = |spec: Value| {
        let manifest = json!({"metadata": {"name": "some-policy"}, "spec": spec});
        if read::policy(&manifest, &memgate_platforms::ALL).1.is_empty() {
            accepted.push(manifest.to_string());
        }
    };
    let entries = |text: &str| parsed(text)[0].value().as_array().cloned().expect("a list");
    for entry in entries(BAD_RULES) {
        refuse(json!({"rules": [entry["refused"]]}));
    }
    for entry in entries(BAD_POLICIES) {
        refuse(entry["refused"].clone());
    }
    assert!(accepted.is_empty(), "{}", accepted.join("\n"));
}

/// Without a bound an apiserver would judge nothing in CEL, and an object could be as large as it likes.
#[test]
fn bound_everything() {
    fn unbounded(schema: &Value, path: &str, found: &mut Vec<String>) {
        let lacks = |bound: &str| schema.get(bound).is_none();
        let is_unbounded = match schema["type"].as_str() {
            Some("string") => lacks("maxLength"),
            Some("array") => lacks("maxItems"),
            Some("object") => lacks("properties") && lacks("maxProperties"),
            _ => false,
        };
        if is_unbounded {
            found.push(path.to_owned());
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            unbounded(field, &format!("{path}.{name}"), found);
        }
        for below in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(below) {
                unbounded(inner, &format!("{path}.{below}"), found);
            }
        }
    }
    for spec in specs() {
        let mut found = Vec::new();
        unbounded(&json!({"type": "object", "properties": spec}), "spec", &mut found);
        assert!(found.is_empty(), "{found:?}");
    }
}
