//! Damage to an input: of its bytes, and, where it is JSON, of its values.

use proptest::{collection, prelude::*, sample::Index};
use serde_json::{Value, json};

use crate::pointers::all_pointers;

/// One thing that goes wrong.
#[derive(Debug, Clone)]
pub(crate) enum Damage {
    /// Another byte.
    Byte { at: Index, byte: u8 },
    /// A word that readers stumble over.
    Word { at: Index, word: &'static str },
    /// A part is missing.
    Cut { from: Index, length: u8 },
    /// A part stands there twice.
    Twice { from: Index, length: u8, to: Index },
    /// It goes on as another input does.
    Crossed { at: Index, other: Index, from: Index },
    /// Another JSON value.
    Replaced { at: Index, by: Value },
    /// A JSON value that stands somewhere else in it.
    Moved { from: Index, to: Index },
    /// A JSON value is missing.
    Missing { at: Index },
    /// A key is misspelt, or written another way.
    Renamed { at: Index, key: &'static str },
    /// A string goes on.
    Longer { at: Index, word: &'static str },
}

/// What tends to break readers of JSON, YAML, HTTP, PEM and Go durations.
const WORDS: &[&str] = &[
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "true",
    "-",
    "1e999",
    "-0",
    "0x1F",
    "1_000",
    "\\ud800",
    "\\u0000",
    "\0",
    "\u{feff}",
    "\u{2028}",
    "\r\n",
    "\n",
    "\t",
    " ",
    "~",
    "~0",
    "~1",
    "/",
    "%",
    "%2f",
    "é",
    "🦀",
    "[[[[[[[[[[[[[[[[",
    "{\"a\":{\"a\":{\"a\":",
    "}}}}}}}}",
    "\"a\":1,\"a\":2,",
    "- ",
    "? ",
    "&a ",
    "*a",
    "<<: *a",
    "!!binary ",
    "!x ",
    "|\n",
    ">-\n ",
    "---\n",
    "...\n",
    "# ",
    "%YAML 9.9\n",
    "18446744073709551616",
    "-9223372036854775809",
    "1h",
    "-1s",
    "9999999999h",
    "Transfer-Encoding: chunked\r\n",
    "Content-Length: 9\r\n",
    "HTTP/9.9",
    "-----BEGIN CERTIFICATE-----\n",
    "-----END CERTIFICATE-----\n",
    "$(A)",
    "${A}",
    "../",
    "::1",
];

/// Some damage, of values or of bytes: JSON seldom survives the latter.
pub(crate) fn damages() -> impl Strategy<Value = Vec<Damage>> {
    prop_oneof![
        2 => collection::vec(of_values(), 1..6),
        1 => collection::vec(of_bytes(), 1..6),
    ]
}

fn of_values() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    let word = || prop::sample::select(WORDS);
    prop_oneof![
        4 => (at(), prop::sample::select(values())).prop_map(|(at, by)| Damage::Replaced { at, by }),
        2 => (at(), at()).prop_map(|(from, to)| Damage::Moved { from, to }),
        2 => at().prop_map(|at| Damage::Missing { at }),
        2 => (at(), word()).prop_map(|(at, key)| Damage::Renamed { at, key }),
        3 => (at(), word()).prop_map(|(at, word)| Damage::Longer { at, word }),
    ]
}

fn of_bytes() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    let word = prop::sample::select(WORDS);
    prop_oneof![
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte { at, byte }),
        3 => (at(), word).prop_map(|(at, word)| Damage::Word { at, word }),
        1 => (at(), any::<u8>()).prop_map(|(from, length)| Damage::Cut { from, length }),
        1 => (at(), any::<u8>(), at()).prop_map(|(from, length, to)| Damage::Twice { from, length, to }),
        1 => (at(), at(), at()).prop_map(|(at, other, from)| Damage::Crossed { at, other, from }),
    ]
}

fn values() -> Vec<Value> {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!(""),
        json!(" "),
        json!("x"),
        json!("default"),
        json!("a".repeat(300)),
        json!("é\u{0}\n\u{202e}"),
        json!([]),
        json!({}),
        json!([null]),
        json!({"": null}),
        json!({"name": null}),
        json!([{}, [], "", 0]),
        deep,
    ]
}

/// The seed with damage done to it: first to its JSON values, if it is JSON, then to its bytes.
pub(crate) fn damaged(seed: &[u8], damages: &[Damage], seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = match serde_json::from_slice::<Value>(seed) {
        Ok(mut value) => {
            for damage in damages {
                damage_value(&mut value, damage);
            }
            value.to_string().into_bytes()
        }
        Err(_) => seed.to_vec(),
    };
    for damage in damages {
        damage_bytes(&mut bytes, damage, seeds);
    }
    bytes
}

fn damage_value(value: &mut Value, damage: &Damage) {
    let pointers = all_pointers(value);
    let pointer = |index: &Index| pointers[index.index(pointers.len())].as_str();
    match damage {
        Damage::Replaced { at, by } => set(value, pointer(at), by.clone()),
        Damage::Moved { from, to } => {
            let copy = value.pointer(pointer(from)).cloned().unwrap_or_default();
            // Values that hold themselves double with each step.
            if copy.to_string().len() < 4096 {
                set(value, pointer(to), copy);
            }
        }
        Damage::Missing { at } => {
            let Some((parent, key)) = pointer(at).rsplit_once('/') else { return };
            match value.pointer_mut(parent) {
                Some(Value::Object(members)) => {
                    members.shift_remove(&unescaped(key));
                }
                Some(Value::Array(items)) => {
                    items.remove(key.parse().expect("an index"));
                }
                _ => {}
            }
        }
        Damage::Renamed { at, key } => {
            let Some((parent, old)) = pointer(at).rsplit_once('/') else { return };
            if let Some(members) = value.pointer_mut(parent).and_then(Value::as_object_mut)
                && let Some(member) = members.shift_remove(&unescaped(old))
            {
                members.insert(format!("{}{key}", unescaped(old)), member);
            }
        }
        Damage::Longer { at, word } => {
            if let Some(Value::String(text)) = value.pointer_mut(pointer(at)) {
                text.push_str(word);
            }
        }
        Damage::Byte { .. }
        | Damage::Word { .. }
        | Damage::Cut { .. }
        | Damage::Twice { .. }
        | Damage::Crossed { .. } => {}
    }
}

fn set(value: &mut Value, pointer: &str, by: Value) {
    if let Some(target) = value.pointer_mut(pointer) {
        *target = by;
    }
}

fn unescaped(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

fn damage_bytes(bytes: &mut Vec<u8>, damage: &Damage, seeds: &[Vec<u8>]) {
    let length = bytes.len();
    let offset = |index: &Index| index.index(length + 1);
    match damage {
        Damage::Byte { at, byte } if length > 0 => bytes[at.index(length)] = *byte,
        Damage::Word { at, word } => {
            let at = offset(at);
            bytes.splice(at..at, word.bytes());
        }
        Damage::Cut { from, length: cut } => {
            let from = offset(from);
            bytes.drain(from..length.min(from + usize::from(*cut)));
        }
        Damage::Twice { from, length: part, to } => {
            let (from, to) = (offset(from), offset(to));
            let part = bytes[from..length.min(from + usize::from(*part))].to_vec();
            bytes.splice(to..to, part);
        }
        Damage::Crossed { at, other, from } => {
            let other = &seeds[other.index(seeds.len())];
            bytes.truncate(offset(at));
            bytes.extend_from_slice(&other[from.index(other.len() + 1)..]);
        }
        _ => {}
    }
}
