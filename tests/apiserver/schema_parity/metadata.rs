//! What can be wrong with metadata.

use serde_json::{Value, json};

use super::{mutation::Change, verdict::OTHER_NAMESPACE};

/// Each by itself.
pub(super) fn changes() -> Vec<Change> {
    let mut changes = Vec::new();
    let mut all = |pointer: &str, values: Vec<Value>| {
        let values = values.into_iter().map(Some).chain([None]);
        changes.extend(values.map(|value| Change { pointer: pointer.to_owned(), value }));
    };
    all("/metadata", [not_text(), vec![json!("x"), json!({})], generated(), odd_fields()].concat());
    all("/metadata/name", [not_text(), names()].concat());
    all("/metadata/generateName", [not_text(), names()].concat());
    all("/metadata/namespace", [not_text(), namespaces()].concat());
    for field in ["labels", "annotations"] {
        let pointer = format!("/metadata/{field}");
        all(&pointer, [not_text(), vec![json!("x"), json!(["x"])], maps()].concat());
    }
    // A check looks at the types of these only.
    for field in ["finalizers", "ownerReferences"] {
        all(&format!("/metadata/{field}"), [not_text(), vec![json!("x"), json!([1])]].concat());
    }
    changes
}

fn not_text() -> Vec<Value> {
    vec![Value::Null, json!(true), json!(5), json!(1.5), json!([]), json!({"a": "b"})]
}

fn names() -> Vec<Value> {
    let texts = [
        "", " ", "ok", "Upper", "under_score", "-start", "end-", ".start", "end.", "a..b", "a.b", "a.-b",
        "9", "1.2", "a/b", "a b", "a%b", "ümläut", ".", "..", "a:b", "a\n", "ok-",
    ];
    let long = [63, 64, 248, 249, 253, 254, 300].map(|length| json!("a".repeat(length)));
    let parts = [json!(format!("{0}.{0}.{0}.{0}", "a".repeat(62))), json!(format!("{}.b", "a".repeat(64)))];
    texts.into_iter().map(Value::from).chain(long).chain(parts).collect()
}

/// Valid ones are those that there are: of another, the apiserver says that it does not exist, which
/// files cannot know.
fn namespaces() -> Vec<Value> {
    let wrong = ["", " ", "Upper", "under_score", "-start", "end-", "a.b", "a b", "ümläut"];
    wrong.map(Value::from).into_iter().chain([json!("a".repeat(64)), json!(OTHER_NAMESPACE)]).collect()
}

/// The whole of metadata, with a generated name.
fn generated() -> Vec<Value> {
    let with = |start: Value| json!({"generateName": start});
    let starts = names().into_iter().chain(not_text());
    starts
        .map(with)
        .chain([json!({"name": "a", "generateName": "Bad_"}), json!({"name": "", "generateName": ""})])
        .collect()
}

/// The whole of metadata, with unknown fields.
fn odd_fields() -> Vec<Value> {
    vec![json!({"name": "odd", "unheardOf": 1}), json!({"name": "odd", "Labels": {"a": "b"}})]
}

fn maps() -> Vec<Value> {
    let values = [
        Value::Null,
        json!(1),
        json!(true),
        json!([]),
        json!({}),
        json!(""),
        json!("ok"),
        json!("a b"),
        json!("-a"),
        json!("a-"),
        json!("a_b.C"),
        json!("ü"),
        json!("a/b"),
        json!("a\n"),
    ];
    let long_values = [63, 64].map(|length| json!("a".repeat(length)));
    let keys = [
        "", " ", "a b", "a/b", "a/b/c", "/a", "a/", "A.B/c", "a_b/c", "a.b/C_d.e-f", "a..b/c", "-a", "a-",
        "ü", "é/a", ".a", "9",
    ];
    let long_keys = [63, 64].map(|length| "a".repeat(length));
    let long_prefixes = [253, 254].map(|length| format!("{}/a", "a".repeat(length)));
    let value = |value: Value| json!({"key": "ok", "other": value});
    let key = |key: &str| json!({"key": "ok", key: "ok"});
    let large = [json!({"key": "a".repeat(262_141)}), json!({"key": "a".repeat(262_142)})];
    values
        .into_iter()
        .chain(long_values)
        .map(value)
        .chain(keys.into_iter().map(key))
        .chain(long_keys.iter().chain(&long_prefixes).map(|it| key(it)))
        .chain(large)
        .collect()
}
