//! Values as Go compares them, and as texts that are equal when they are.

use std::fmt::Write as _;

use serde_json::Value;

/// Whether two values are equal; a number is what it stands for, however it is written.
pub(super) fn equal(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => one == two || one.as_f64() == two.as_f64(),
        _ => one == two,
    }
}

/// A text that two values share only when they are equal, whatever the order of their fields.
pub(super) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Array(elements) => {
            text.push('[');
            for element in elements {
                write(element, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (key, value) in entries {
                let _infallible = write!(text, "{key:?}:");
                write(value, text);
                text.push(',');
            }
            text.push('}');
        }
        scalar => {
            let _infallible = write!(text, "{scalar}");
        }
    }
}
