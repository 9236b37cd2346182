//! What a wrong element costs, counted in calls of the allocator: it has one text, its place. What is not reported takes no
//! more, and the rules in CEL of the definition do not copy it.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use allocation_counter::measure;
use memgate_primitives::budget::Budget;
use memgate_schema::{Status, Violations};
use serde_json::{Value, json};

/// A definition with rules in CEL around a list, and in its elements.
fn definition() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let holds = |rule: &str| json!([{"rule": rule, "message": "no"}]);
    let fields = json!({"name": text, "value": text, "kind": {"type": "string", "enum": ["a", "b"]}});
    let plain = json!({"type": "object", "required": ["name", "value"], "properties": fields});
    let mut ruled = plain.clone();
    ruled["x-kubernetes-validations"] = holds("self.name != self.value");
    let lists =
        json!({"plain": {"type": "array", "items": plain}, "ruled": {"type": "array", "items": ruled}});
    let spec =
        json!({"type": "object", "properties": lists, "x-kubernetes-validations": holds("has(self.plain)")});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({
        "metadata": {"name": "lists.example.dev"},
        "spec": {"group": "example.dev", "names": {"kind": "List"}, "versions": [
            {"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}},
        ]},
    })
}

/// How often comparing an object with so many of these elements calls the allocator, and how many violations it finds.
fn calls(list: &str, element: &str, count: usize) -> (u64, usize) {
    let crd = memgate_schema::read(&definition()).expect("a definition");
    let version = crd.newest().expect("a version");
    let elements = vec![element; count].join(",");
    let text = format!(r#"{{"kind":"List","spec":{{"{list}":[{elements}]}}}}"#);
    let budget = Budget::default();
    let object = memgate_schema::document(&text, Some(version), Status::Judged, &budget).expect("JSON");
    // What is compiled once is not counted.
    memgate_schema::check_rules(version, u64::MAX, &object, None, &mut Violations::new(&budget));
    let mut found = Violations::new(&budget);
    let counted = measure(|| {
        memgate_schema::check(version, &object, None, &mut found);
        memgate_schema::check_rules(version, u64::MAX, &object, None, &mut found);
    });
    (counted.count_total, found.len())
}

#[test]
fn a_wrong_element_has_one_text() {
    for element in ["{}", "1", "[]", "\"x\"", r#"{"name":1,"value":2,"kind":"c"}"#, r#"{"name":"a"}"#] {
        for (list, of_element) in [("plain", 0), ("ruled", 2)] {
            let (few, found_few) = calls(list, element, 100);
            let (many, found_many) = calls(list, element, 1_100);
            let (calls, found) = (many - few, (found_many - found_few) as u64);
            assert!(found >= 1_000, "{element} is wrong");
            // Lists grow now and then. Whether rules hold for an element is asked by its place.
            let most = found + of_element * 1_000 + 50;
            assert!(calls <= most, "{calls} calls for {found} violations of {element} in {list}");
        }
    }
}
