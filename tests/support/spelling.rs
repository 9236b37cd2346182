//! JSON as no apiserver writes it: with escapes in keys and texts, and with blanks.

use std::fmt::Write as _;

use serde_json::Value;

/// A value with an escape for each character of its keys and texts, and blanks around each part.
pub(crate) fn odd(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(" ,\r\n");
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(key, member)| format!("{}\t: {}", escaped(key), odd(member)));
            format!("{{ {}\n}}", joined(members.collect()))
        }
        Value::Array(items) => format!("[ {}\t]", joined(items.iter().map(odd).collect())),
        Value::String(text) => escaped(text),
        leaf => leaf.to_string(),
    }
}

/// A text with an escape for each character, two for one beyond U+FFFF.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::from('"');
    for unit in text.encode_utf16() {
        let _infallible = write!(escaped, "\\u{unit:04X}");
    }
    escaped.push('"');
    escaped
}
