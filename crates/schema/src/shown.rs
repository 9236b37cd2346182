//! Values as messages show them.

use serde_json::Value;

use crate::cursor::{Content, Cursor};
use crate::equal::key;
use memgate_primitives::credential::masked_start;
use memgate_primitives::plain_text::quoted;

/// How much of a value is written: more than is looked at for credentials.
const MAX_WRITTEN_BYTES: usize = 8 << 10;

/// A value as messages show it: texts in quotes, everything else as JSON. What in it looks like a credential
/// is masked.
pub(super) fn shown(value: Cursor<'_>) -> String {
    match value.content() {
        Content::Text(text) => quoted(text),
        _ => {
            let mut json = String::new();
            write(value, &mut json);
            cut(&json)
        }
    }
}

/// The fields that tell an element of a list apart, as messages show them.
pub(super) fn key_shown(element: Cursor<'_>, names: &[String]) -> String {
    let mut json = String::new();
    write_fields(key(element, names), &mut json);
    cut(&json)
}

fn cut(json: &str) -> String {
    const MAX_CHARS: usize = 256;
    masked_start(json).chars().take(MAX_CHARS).collect()
}

fn write(value: Cursor<'_>, json: &mut String) {
    if json.len() > MAX_WRITTEN_BYTES {
        return;
    }
    if let Some(raw) = value.raw() {
        return json.push_str(start(raw));
    }
    match value.content() {
        Content::Null => json.push_str("null"),
        Content::Boolean(value) => json.push_str(if value { "true" } else { "false" }),
        Content::Number(number) => json.push_str(&number.to_string()),
        Content::Text(text) => write_text(text, json),
        Content::List => {
            json.push('[');
            for (index, element) in value.elements().enumerate() {
                if index > 0 {
                    json.push(',');
                }
                write(element, json);
                if json.len() > MAX_WRITTEN_BYTES {
                    return;
                }
            }
            json.push(']');
        }
        Content::Map => write_fields(value.fields(), json),
    }
}

fn write_fields<'d>(fields: impl Iterator<Item = (&'d str, Cursor<'d>)>, json: &mut String) {
    json.push('{');
    for (index, (key, value)) in fields.enumerate() {
        if index > 0 {
            json.push(',');
        }
        write_text(key, json);
        json.push(':');
        write(value, json);
        if json.len() > MAX_WRITTEN_BYTES {
            return;
        }
    }
    json.push('}');
}

fn write_text(text: &str, json: &mut String) {
    json.push_str(&Value::from(start(text)).to_string());
}

fn start(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_WRITTEN_BYTES)).unwrap_or(text)
}
