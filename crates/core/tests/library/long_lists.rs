//! The check of patches with very many edits, and their application: they agree with a plain list, wherever the
//! inserts are.

#![allow(clippy::expect_used, reason = "a test that cannot go on must stop")]

use memgate_core::patch::{
    PatchError,
    apply::{apply, check},
};
use memgate_model::edit::{Edit, Op, Value as New};
use memgate_primitives::pointer::Pointer;
use serde_json::{Value, json};

/// How many edits: more than memgate makes in one list or object.
const MANY: usize = 2_000;

fn edit(op: Op, pointer: String, value: Value) -> Edit {
    Edit { op, pointer: Pointer::new(pointer), value: New::Tree(value), origins: Vec::new() }
}

/// Inserts at these places, each followed by a change inside the element that was inserted and one inside an
/// element that was there.
fn agrees(places: impl Iterator<Item = usize>) {
    let object = json!({"list": (0..1_000).map(|number| json!({"was": number})).collect::<Vec<_>>()});
    let text = object.to_string();
    let mut list = object.get("list").and_then(Value::as_array).cloned().expect("a list");
    let mut edits = Vec::new();
    for (number, place) in places.enumerate() {
        let at = place % (list.len() + 1);
        list.insert(at, json!({"is": number}));
        edits.push(edit(Op::Add, format!("/list/{at}"), json!({"is": number})));
        let other = (place * 31) % list.len();
        for at in [at, other] {
            list.get_mut(at)
                .and_then(Value::as_object_mut)
                .expect("an object")
                .insert("x".into(), number.into());
            edits.push(edit(Op::Add, format!("/list/{at}/x"), number.into()));
        }
    }
    assert_eq!(check(&text, &edits), Ok(()));
    let after: Value = serde_json::from_str(&apply(&text, &edits).expect("applies")).expect("JSON");
    assert_eq!(after, json!({ "list": list }));
    let behind = list.len() + 1;
    edits.push(edit(Op::Add, format!("/list/{behind}"), json!(1)));
    let misfit = PatchError::At(Pointer::new(format!("/list/{behind}")));
    assert_eq!(check(&text, &edits), Err(misfit));
    assert!(apply(&text, &edits).is_err());
}

#[test]
fn inserts_anywhere_are_followed() {
    agrees((0..2_000).map(|_| 0));
    agrees(0..2_000);
    agrees((0..2_000).map(|number| number * 7_919));
}

#[test]
fn many_edits_are_checked_and_applied() {
    let places: [fn(usize) -> usize; 3] = [|_| 0, |number| number, |number| number / 2];
    for at in places {
        let text = json!({"list": vec![0; MANY]}).to_string();
        let edits: Vec<Edit> =
            (0..MANY).map(|number| edit(Op::Add, format!("/list/{}", at(number)), number.into())).collect();
        assert_eq!(check(&text, &edits), Ok(()));
        let after: Value = serde_json::from_str(&apply(&text, &edits).expect("applies")).expect("JSON");
        assert_eq!(after.pointer("/list").and_then(Value::as_array).map(Vec::len), Some(2 * MANY));
    }
}

#[test]
fn many_fields_are_checked_and_applied() {
    let fields: serde_json::Map<String, Value> = (0..MANY).map(|n| (format!("f{n}"), json!({}))).collect();
    let text = Value::Object(fields).to_string();
    let edits: Vec<Edit> = (0..MANY).map(|n| edit(Op::Add, format!("/f{n}/x"), n.into())).collect();
    assert_eq!(check(&text, &edits), Ok(()));
    let after: Value = serde_json::from_str(&apply(&text, &edits).expect("applies")).expect("JSON");
    assert!((0..MANY).all(|n| after.pointer(&format!("/f{n}/x")) == Some(&json!(n))));
}

/// White space between values and the escapes of names are not kept; order and numbers are, and the last of equal keys.
#[test]
fn what_no_edit_names_stays_as_it_is() {
    let text = r#" { "a" : 1e400 , "b":{"c" :2,"d": 1.50},"odd\u0041":  "x","a":4 , "e" : [ 1,1e400 ] ,"b":{"c":5, "f" : 123456789012345678901 }} "#;
    for (pointer, op, after) in [
        ("/b/c", Op::Replace, r#"{"a":4,"b":{"c":0,"f":123456789012345678901},"oddA":"x","e":[1,1e400]}"#),
        ("/b", Op::Remove, r#"{"a":4,"oddA":"x","e":[1,1e400]}"#),
        ("/e/1", Op::Add, r#"{"a":4,"b":{"c":5,"f":123456789012345678901},"oddA":"x","e":[1,0,1e400]}"#),
        ("/oddA", Op::Replace, r#"{"a":4,"b":{"c":5,"f":123456789012345678901},"oddA":0,"e":[1,1e400]}"#),
        (
            "/new",
            Op::Add,
            r#"{"a":4,"b":{"c":5,"f":123456789012345678901},"oddA":"x","e":[1,1e400],"new":0}"#,
        ),
    ] {
        let applied = apply(text, &[edit(op, pointer.to_owned(), 0.into())]).expect("applies");
        assert_eq!(applied.replace(' ', "").replace(r"\u0041", "A"), after, "{pointer}");
    }
}
