//! The same objects in the styles of people and programs.

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memgate_manifest::document::values;
use memgate_manifest::source::Source;
use serde_json::Value;

use crate::MARKER;

/// A way to write objects.
pub(crate) struct Style {
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    write: fn(&str) -> String,
}

pub(crate) const STYLES: &[Style] = &[
    Style { name: "block", file: "input.yaml", write: str::to_owned },
    Style { name: "flow", file: "input.yaml", write: |text| joined(text, flow) },
    Style { name: "json", file: "input.json", write: |text| joined(text, |value| format!("{value:#}")) },
    Style { name: "json line", file: "input.json", write: |text| joined(text, Value::to_string) },
];

impl Style {
    /// The objects of a text in this style.
    pub(crate) fn write(&self, text: &str) -> String {
        (self.write)(text)
    }
}

/// The objects of a text.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let mut errors = Vec::new();
    let documents = values(&Arc::new(Source::new("fields", text)), &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    documents.iter().map(|document| document.value().clone()).collect()
}

/// Whether the marker stands in a text, in clear text or in base64.
pub(crate) fn holds_marker(text: &str) -> bool {
    text.contains(MARKER)
        || text.contains(&MARKER.to_ascii_uppercase())
        || text.contains(&STANDARD.encode(MARKER))
}

fn joined(text: &str, write: impl Fn(&Value) -> String) -> String {
    objects(text).iter().map(write).collect::<Vec<_>>().join("\n---\n") + "\n"
}

/// One line of YAML with as few quotes as it takes.
fn flow(value: &Value) -> String {
    let mut text = String::new();
    write_flow(value, &mut text);
    text
}

fn write_flow(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, value)) in fields.iter().enumerate() {
                let _infallible = write!(text, "{}{key}: ", if index == 0 { "" } else { ", " });
                write_flow(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                write_flow(item, text);
            }
            text.push(']');
        }
        Value::String(string) if string.chars().any(char::is_control) => text.push_str(&value.to_string()),
        Value::String(string) => {
            let _infallible = write!(text, "'{}'", string.replace('\'', "''"));
        }
        other => text.push_str(&other.to_string()),
    }
}
