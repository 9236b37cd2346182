//! Rules of schemas one by one, with the words of an apiserver.

use super::*;
use crate::crd::Crd;
use crate::violation::message;
use memgate_primitives::members::Members;
use serde_json::{Value, json};

/// A definition whose `spec` has this schema.
fn version_with(spec: &Value) -> Crd {
    version_of(&json!({"type": "object", "properties": {"spec": spec}}))
}

/// A definition whose objects have this schema.
fn version_of(schema: &Value) -> Crd {
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    });
    let spec = json!({"group": "x.dev", "names": {"kind": "Thing"}, "versions": [version]});
    read(&json!({"metadata": {"name": "things.x.dev"}, "spec": spec})).expect("a definition")
}

/// What the first version of a definition refuses in an object, and whether the stored one has it.
fn found(crd: &Crd, object: &Value, old: Option<&Value>) -> Vec<(String, bool)> {
    let version = crd.newest().expect("served");
    let budget = Budget::default();
    let (text, old) = (object.to_string(), old.map(Value::to_string));
    let read = |text| document(text, Some(version), Status::Dropped, &budget).expect("JSON");
    let object = read(&text);
    let old = old.as_deref().map(read);
    let mut found = Violations::new(&budget);
    check(version, &object, old.as_ref(), &mut found);
    let mut places = Members::default();
    let first = found.iter().filter(|violation| places.insert(&violation.pointer));
    first.map(|violation| (message(violation), violation.stored)).collect()
}

fn messages(schema: &Value, spec: &Value) -> Vec<String> {
    let found = found(&version_with(schema), &json!({"spec": spec}), None);
    found.into_iter().map(|(message, _)| message).collect()
}

/// Schema by schema: what it takes, what it refuses, and with which words.
fn check_rows<const ROWS: usize>(rows: [(Value, Value, Value, &str); ROWS]) {
    for (schema, good, bad, message) in rows {
        assert_eq!(messages(&schema, &good), <[String; 0]>::default(), "{schema}");
        assert_eq!(messages(&schema, &bad), [message], "{schema}");
    }
}

#[test]
fn checks_texts_and_flags() {
    check_rows([
        (json!({"type": "string"}), json!("a"), json!(1), "spec: must be of type string, not integer 1"),
        (
            json!({"type": "boolean"}),
            json!(true),
            json!("true"),
            r#"spec: must be of type boolean, not string "true""#,
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!("80%"),
            json!(true),
            "spec: must be of type integer,string, not boolean true",
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(80),
            json!(1.5),
            "spec: must be of type integer,string, not number 1.5",
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("a"),
            json!("c"),
            r#"spec: Unsupported value: "c": supported values: "a", "b""#,
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("éé"),
            json!("ééé"),
            "spec: Too long: may not be more than 2 bytes",
        ),
        (
            json!({"type": "string", "minLength": 1}),
            json!("a"),
            json!(""),
            r#"spec: Invalid value: "": must not be empty"#,
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("aa"),
            json!("ab"),
            r#"spec: Invalid value: "ab": must match the pattern ^a+$"#,
        ),
        (
            json!({"type": "string", "format": "date"}),
            json!("2024-02-29"),
            json!("2023-02-29"),
            r#"spec: Invalid value: "2023-02-29": must have the format date"#,
        ),
        (
            json!({"type": "string", "format": "unheard-of"}),
            json!("x"),
            json!(1),
            "spec: must be of type string, not integer 1",
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!([]),
            json!(5),
            "spec: must be of type date-time, not int64",
        ),
    ]);
}

#[test]
fn checks_numbers() {
    check_rows([
        (json!({"type": "integer"}), json!(3.0), json!(1.5), "spec: must be of type integer, not number 1.5"),
        (
            json!({"type": "integer"}),
            json!(i64::MAX),
            json!(u64::MAX),
            "spec: must be of type integer, not number 18446744073709551615",
        ),
        (json!({"type": "number"}), json!(1), json!("1"), r#"spec: must be of type number, not string "1""#),
        (
            json!({"type": "integer", "enum": [1, 2]}),
            json!(2.0),
            json!(3),
            r#"spec: Unsupported value: 3: supported values: "1", "2""#,
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(1),
            json!(3_000_000_000_u32),
            "spec: Invalid value: 3000000000: must be of type integer with format int32",
        ),
        (
            json!({"type": "integer", "minimum": 1}),
            json!(1),
            json!(0),
            "spec: Invalid value: 0: must be greater than or equal to 1",
        ),
        (
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
            json!(2),
            json!(1),
            "spec: Invalid value: 1: must be greater than 1",
        ),
        (
            json!({"type": "number", "maximum": 0.5}),
            json!(0.5),
            json!(0.75),
            "spec: Invalid value: 0.75: must be less than or equal to 0.5",
        ),
        (
            json!({"type": "integer", "maximum": 4, "exclusiveMaximum": true}),
            json!(3),
            json!(4),
            "spec: Invalid value: 4: must be less than 4",
        ),
        (
            json!({"type": "integer", "multipleOf": 5}),
            json!(10),
            json!(11),
            "spec: Invalid value: 11: must be a multiple of 5",
        ),
    ]);
}

#[test]
fn checks_lists() {
    let text = json!({"type": "string"});
    check_rows([
        (json!({"type": "array"}), json!([]), json!({}), "spec: must be of type array, not object"),
        (
            json!({"type": "array", "minItems": 1, "items": text}),
            json!(["a"]),
            json!([]),
            "spec: Too few: 0: must have at least 1 item",
        ),
        (
            json!({"type": "array", "maxItems": 1, "items": text}),
            json!(["a"]),
            json!(["a", "b"]),
            "spec: Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": text}),
            json!(["a", "b"]),
            json!(["a", "a"]),
            "spec: must not have the same entry twice",
        ),
        (
            json!({"type": "array", "items": text}),
            json!(["a"]),
            json!(["a", null]),
            "spec[1]: must be of type string, not null",
        ),
    ]);
}

#[test]
fn checks_objects() {
    let text = json!({"type": "string"});
    check_rows([
        (json!({"type": "object"}), json!({}), json!([]), "spec: must be of type object, not array"),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": text}}),
            json!({"a": "x"}),
            json!({"a": null}),
            "spec.a: Required value",
        ),
        (
            json!({"type": "object", "minProperties": 1, "properties": {"a": text}}),
            json!({"a": "x"}),
            json!({"b": "x"}),
            "spec: Too few: 0: must have at least 1 item",
        ),
        (
            json!({"type": "object", "maxProperties": 1, "additionalProperties": text}),
            json!({"a": "x"}),
            json!({"a": "x", "b": "y"}),
            "spec: Too many: 2: must have at most 1 item",
        ),
        (
            json!({"type": "object", "additionalProperties": text}),
            json!({"a": "x"}),
            json!({"a": 1}),
            "spec.a: must be of type string, not integer 1",
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            json!({"apiVersion": "v1", "kind": "A", "b": 1}),
            json!({"apiVersion": "v1"}),
            "spec.kind: Required value",
        ),
    ]);
}

#[test]
fn checks_alternatives() {
    let properties = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    let schema =
        |keyword: &str, rules: Value| json!({"type": "object", "properties": properties, keyword: rules});
    let either = json!([{"required": ["a"]}, {"required": ["b"]}]);
    let (none, one, both) = (json!({}), json!({"a": "x"}), json!({"a": "x", "b": "y"}));
    for (schema, good, bad, message) in [
        (
            schema("anyOf", either.clone()),
            &both,
            &none,
            "spec: fits none of the forms that its schema allows (anyOf)",
        ),
        (
            schema("oneOf", either.clone()),
            &one,
            &none,
            "spec: fits none of the forms that its schema allows (oneOf)",
        ),
        (
            schema("oneOf", either.clone()),
            &one,
            &both,
            "spec: fits 2 forms of its schema, which allows only one at a time (oneOf)",
        ),
        (schema("allOf", either), &both, &one, "spec.b: Required value"),
        (
            schema("not", json!({"required": ["b"]})),
            &one,
            &both,
            "spec: has a form that its schema forbids (not)",
        ),
    ] {
        assert_eq!(messages(&schema, good), <[String; 0]>::default(), "{schema}");
        assert_eq!(messages(&schema, bad), [message], "{schema}");
    }
}

#[test]
fn tells_elements_apart() {
    let element = json!({"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer", "default": 80}}});
    let by = |keys: Value| json!({"type": "array", "items": element, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys});
    let set = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    for (schema, spec, expected) in [
        (by(json!(["name"])), json!([{"name": "a"}, {"name": "b"}]), &[][..]),
        (
            by(json!(["name"])),
            json!([{"name": "a"}, {"name": "a"}, {"name": "a"}]),
            &[r#"spec[1]: Duplicate value: {"name":"a"}"#][..],
        ),
        (
            by(json!(["name", "port"])),
            json!([{"name": "a"}, {"name": "a", "port": 80}]),
            &[r#"spec[1]: Duplicate value: {"name":"a","port":80}"#],
        ),
        (by(json!(["name"])), json!([{}, {}]), &["spec[1]: Duplicate value: {}"]),
        (set.clone(), json!(["a", "b"]), &[]),
        (set, json!(["a", "b", "b"]), &[r#"spec[2]: Duplicate value: "b""#]),
    ] {
        assert_eq!(messages(&schema, &spec), expected);
    }
}

#[test]
fn judges_what_would_be_stored() {
    let schema = json!({"type": "object", "required": ["mode", "kept"], "properties": {
        "mode": {"type": "string", "default": "a"},
        "kept": {"type": "string", "nullable": true},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
    }});
    let crd = version_with(&schema);
    let object = json!({
        "metadata": {"name": "x", "odd": 1}, "status": 5,
        "spec": {"mode": null, "kept": null, "any": {"x": [null]}, "gone": 1}, "gone": {},
    });
    assert_eq!(found(&crd, &object, None), []);
    let text = object.to_string();
    let object = document(&text, crd.newest(), Status::Dropped, &Budget::default()).expect("JSON");
    let stored = json!({
        "metadata": {"name": "x", "odd": 1},
        "spec": {"any": {"x": [null]}, "kept": null, "mode": "a"},
    });
    assert_eq!(shown::shown(&object.root), stored.to_string());
}

#[test]
fn marks_what_is_stored_already() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "enum": ["x"]},
        "atomic": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["mode"], "properties": {"name": {"type": "string"}, "mode": {"type": "string"}}}},
    }});
    let crd = version_with(&schema);
    let stored = |old: Value, new: Value| {
        let (old, new) = (json!({"spec": old}), json!({"spec": new}));
        found(&crd, &new, Some(&old)).into_iter().map(|(_, stored)| stored).collect::<Vec<_>>()
    };
    assert_eq!(stored(json!({"a": "old"}), json!({"a": "old"})), [true]);
    assert_eq!(stored(json!({"a": "old"}), json!({"a": "new"})), [false]);
    assert_eq!(stored(json!({"atomic": ["old"]}), json!({"atomic": ["old"]})), [true]);
    assert_eq!(stored(json!({"atomic": ["old"]}), json!({"atomic": ["old", "x"]})), [false]);
    assert_eq!(
        stored(
            json!({"map": [{"name": "one"}]}),
            json!({"map": [{"name": "two", "mode": ""}, {"name": "one"}]})
        ),
        [true]
    );
}

#[test]
fn what_the_whole_object_lacks_is_stored_if_it_lacked_it() {
    let spec = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
    let crd = version_of(&json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}}));
    let of = |spec: Option<Value>, label: &str| {
        let mut object = json!({"metadata": {"name": "x", "labels": {"tier": label}}});
        if let Some(spec) = spec {
            object["spec"] = spec;
        }
        object
    };
    let some = |value: Value| Some(value);
    let rows: [(_, _, &[_]); 8] = [
        (None, None, &[("spec: Required value", true)]),
        (some(json!(null)), None, &[("spec: Required value", true)]),
        (None, some(json!(null)), &[("spec: Required value", true)]),
        (some(json!({})), None, &[("spec: Required value", false)]),
        (some(json!({"a": "x"})), some(json!(null)), &[("spec: Required value", false)]),
        (None, some(json!({})), &[("spec.a: Required value", false)]),
        (some(json!({})), some(json!({})), &[("spec.a: Required value", true)]),
        (None, some(json!({"a": "x"})), &[]),
    ];
    for (old, new, expected) in rows {
        let found = found(&crd, &of(new.clone(), "gold"), Some(&of(old.clone(), "tin")));
        let found: Vec<_> = found.iter().map(|(message, stored)| (message.as_str(), *stored)).collect();
        assert_eq!(found, expected, "{old:?} -> {new:?}");
    }
}

#[test]
fn checks_metadata() {
    let new = Some(NewObject { name: "", namespaced: true, name_is_label: false });
    for (metadata, expected) in [
        (
            json!({"name": "a.b", "namespace": "team-a", "labels": {"a.b/c": "x_y"}, "annotations": {"A/b": "any text", "n": null}}),
            &[][..],
        ),
        (json!({"generateName": "a-"}), &[]),
        (json!({}), &["metadata.name: Required value: name or generateName is required"]),
        (
            json!({"name": "A"}),
            &[
                "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            ],
        ),
        (
            json!({"generateName": "A-"}),
            &[
                "metadata.generateName: Invalid value: \"A…\" (2 characters): a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            ],
        ),
        (
            json!({"name": "a", "namespace": "a.b"}),
            &["metadata.namespace: Invalid value: \"a.b\": must not contain dots"],
        ),
        (json!({"name": 5}), &["metadata.name: must be of type string, not integer 5"]),
        (
            json!({"name": "a", "annotations": {"b": true}}),
            &["metadata.annotations.b: must be of type string, not boolean true"],
        ),
        (json!({"name": "a", "labels": ["b"]}), &["metadata.labels: must be of type object, not array"]),
        (
            json!({"name": "a", "labels": {"/b": "c"}}),
            &["metadata.labels[/b]: Invalid value: \"/b\": prefix part must be non-empty"],
        ),
        (
            json!({"name": "a", "labels": {"b": "-c"}}),
            &[
                "metadata.labels.b: Invalid value: \"-c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            ],
        ),
    ] {
        assert_eq!(metadata_messages(&metadata, new), expected, "{metadata}");
    }
    let long = "x".repeat(256 << 10);
    let messages = metadata_messages(&json!({"annotations": {"a": long}}), None);
    assert_eq!(messages, ["metadata.annotations: Too long: may not be more than 262144 bytes"]);
}

fn metadata_messages(metadata: &Value, new: Option<NewObject<'_>>) -> Vec<String> {
    let text = json!({"metadata": metadata}).to_string();
    let budget = Budget::default();
    let object = document(&text, None, Status::Dropped, &budget).expect("JSON");
    let mut found = Violations::new(&budget);
    check_metadata(&object, new, None, &mut found);
    found.iter().map(message).collect()
}
