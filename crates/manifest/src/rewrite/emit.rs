//! Writes values as lines of YAML or JSON, without line ends. `block` and `flow` put them into the text.

use std::fmt::Write as _;

use serde_json::Value;

use crate::scalar::{Scalar, plain};

/// The longest key, in bytes, that is written without `? ` in front of it. YAML allows 1,024
/// characters, quotes and escapes included.
const MAX_IMPLICIT_KEY_BYTES: usize = 500;

/// How block collections are indented.
#[derive(Debug, Clone, Copy)]
pub(super) struct Indents {
    /// Columns from a key to the keys of the mapping below it.
    pub(super) map: usize,
    /// Columns from a key to the dashes of the list below it.
    pub(super) list: usize,
}

/// Whether a value is a collection with something in it, which needs several lines in a block.
pub(super) fn is_long(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => false,
    }
}

/// A value as a document of YAML, with the end of its last line.
pub(super) fn document(value: &Value) -> String {
    let mut lines = Vec::new();
    block(&mut lines, value, 0, Indents { map: 2, list: 0 });
    lines.join("\n") + "\n"
}

/// The entry `key: value` of a block mapping whose keys stand at column `at`.
pub(super) fn entry(lines: &mut Vec<String>, key: &str, value: &Value, at: usize, indents: Indents) {
    let (margin, key) = (" ".repeat(at), text_scalar(key, false));
    if key.len() > MAX_IMPLICIT_KEY_BYTES {
        lines.push(format!("{margin}? {key}"));
        return below(lines, format!("{margin}:"), value, at, indents);
    }
    below(lines, format!("{margin}{key}:"), value, at, indents);
}

/// An element of a block list whose dashes stand at column `at`.
pub(super) fn element(lines: &mut Vec<String>, value: &Value, at: usize, indents: Indents) {
    let margin = " ".repeat(at);
    if !is_long(value) {
        return below(lines, format!("{margin}-"), value, at, indents);
    }
    let first = lines.len();
    block(lines, value, at + 2, indents);
    if let Some(line) = lines.get_mut(first) {
        line.replace_range(..at + 2, &format!("{margin}- "));
    }
}

/// A collection that is not empty, or a scalar, as a block at column `at`. Bounded: a value is as
/// deep as its source and one edit.
pub(super) fn block(lines: &mut Vec<String>, value: &Value, at: usize, indents: Indents) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                entry(lines, key, value, at, indents);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for value in list {
                element(lines, value, at, indents);
            }
        }
        _ => lines.push(format!("{}{}", " ".repeat(at), scalar(value, false))),
    }
}

/// A value behind `head`, which is a key or a dash at column `at`.
fn below(lines: &mut Vec<String>, head: String, value: &Value, at: usize, indents: Indents) {
    match value {
        _ if is_long(value) => {
            lines.push(head);
            let indent = if value.is_array() { indents.list } else { indents.map };
            block(lines, value, at + indent, indents);
        }
        // In quotes, a text of several lines would be one long line of escapes.
        Value::String(text) if is_literal(text) => literal(lines, &head, text, at + 2),
        _ => lines.push(format!("{head} {}", scalar(value, false))),
    }
}

/// Whether a text of several lines can be a literal block as it is.
fn is_literal(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.starts_with([' ', '\n'])
        && !body.ends_with('\n')
        && text.chars().all(|character| character == '\n' || is_printable(character))
}

fn literal(lines: &mut Vec<String>, head: &str, text: &str, at: usize) {
    let (indicator, body) = match text.strip_suffix('\n') {
        Some(body) => ("|", body),
        None => ("|-", text),
    };
    lines.push(format!("{head} {indicator}"));
    let margin = " ".repeat(at);
    lines.extend(
        body.split('\n').map(|line| if line.is_empty() { String::new() } else { format!("{margin}{line}") }),
    );
}

/// How a value is written in one line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Inline {
    /// As YAML: `{name: A, value: "1"}`.
    Yaml,
    /// As JSON, with a blank behind colons and commas.
    Json,
    /// As JSON without blanks.
    Minified,
}

impl Inline {
    /// The blank behind colons and commas.
    pub(super) const fn gap(self) -> &'static str {
        if matches!(self, Self::Minified) { "" } else { " " }
    }

    fn text(self, text: &str) -> String {
        if matches!(self, Self::Yaml) { text_scalar(text, true) } else { double_quoted(text) }
    }

    /// A value.
    pub(super) fn value(self, value: &Value) -> String {
        let comma = format!(",{}", self.gap());
        match value {
            Value::Object(map) => {
                let entries: Vec<String> = map.iter().map(|(key, value)| self.entry(key, value)).collect();
                format!("{{{}}}", entries.join(&comma))
            }
            Value::Array(list) => {
                let items: Vec<String> = list.iter().map(|value| self.value(value)).collect();
                format!("[{}]", items.join(&comma))
            }
            Value::String(text) => self.text(text),
            _ => value.to_string(),
        }
    }

    /// An entry of a mapping.
    pub(super) fn entry(self, key: &str, value: &Value) -> String {
        format!("{}:{}{}", self.text(key), self.gap(), self.value(value))
    }
}

/// A value as JSON over several lines. `head` begins its first line, `margin` is the indentation of its last line, and
/// `unit` one level of indentation.
pub(super) fn pretty(head: &str, value: &Value, margin: &str, unit: &str) -> String {
    let inner = format!("{margin}{unit}");
    let (open, close, members): (_, _, Vec<String>) = match value {
        Value::Object(map) if !map.is_empty() => {
            let entry = |(key, value): (&String, &Value)| {
                pretty(&format!("{inner}{}: ", double_quoted(key)), value, &inner, unit)
            };
            ('{', '}', map.iter().map(entry).collect())
        }
        Value::Array(list) if !list.is_empty() => {
            ('[', ']', list.iter().map(|value| pretty(&inner, value, &inner, unit)).collect())
        }
        _ => return format!("{head}{}", Inline::Json.value(value)),
    };
    format!("{head}{open}\n{}\n{margin}{close}", members.join(",\n"))
}

/// A scalar, or an empty collection, in one line.
pub(super) fn scalar(value: &Value, in_flow: bool) -> String {
    match value {
        Value::String(text) => text_scalar(text, in_flow),
        _ => value.to_string(),
    }
}

/// A string that every YAML reader, of 1.1 or 1.2, reads as this string. A text with quotes or backslashes, such as JSON
/// in an annotation, is put in single quotes, so that it stays legible.
fn text_scalar(text: &str, in_flow: bool) -> String {
    if is_plain(text, in_flow) {
        text.to_owned()
    } else if text.contains(['"', '\\']) && text.chars().all(is_printable) {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        double_quoted(text)
    }
}

/// Whether a string can be written without quotes. Too strict rather than too lax.
fn is_plain(text: &str, in_flow: bool) -> bool {
    let harmless =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+' | '%');
    // Base 60 numbers, dates and everything else that a reader may take for a number.
    let numeric = |c: char| {
        c.is_ascii_hexdigit() || matches!(c, 'x' | 'o' | 'T' | 't' | 'Z' | '_' | ':' | '.' | '-' | '+' | ' ')
    };
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_'))
        && text.chars().all(|c| harmless(c) || (matches!(c, ':' | '=') && !in_flow) || c == ' ')
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !(text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(numeric))
        && matches!(plain(text), Scalar::Text(_))
}

/// Whether YAML allows a character without an escape, and no reader takes it for a line break.
fn is_printable(character: char) -> bool {
    matches!(character, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}')
        || matches!(character, '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

/// A string in double quotes, with escapes that YAML and JSON share.
pub(super) fn double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for character in Value::from(text).to_string().chars() {
        if is_printable(character) {
            quoted.push(character);
        } else {
            let _infallible = write!(quoted, "\\u{:04x}", u32::from(character));
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_a_document() {
        let value = serde_json::json!({"a": {}, "b": [{"c": 1, "d": ["true"]}], "e": {"f": null}});
        assert_eq!(document(&value), "a: {}\nb:\n- c: 1\n  d:\n  - \"true\"\ne:\n  f: null\n");
    }

    #[test]
    fn quotes_what_any_yaml_reader_could_mistake() {
        for (text, in_block, in_flow) in [
            ("redis", "redis", "redis"),
            ("some words", "some words", "some words"),
            (
                "http://qdrant.data.svc:6333/x",
                "http://qdrant.data.svc:6333/x",
                "\"http://qdrant.data.svc:6333/x\"",
            ),
            ("", "\"\"", "\"\""),
            ("3600", "\"3600\"", "\"3600\""),
            ("1e3", "\"1e3\"", "\"1e3\""),
            ("0x1", "\"0x1\"", "\"0x1\""),
            ("0o7", "\"0o7\"", "\"0o7\""),
            ("1_000", "\"1_000\"", "\"1_000\""),
            ("12:30:45", "\"12:30:45\"", "\"12:30:45\""),
            ("2001-01-01", "\"2001-01-01\"", "\"2001-01-01\""),
            ("10.0.0.1", "\"10.0.0.1\"", "\"10.0.0.1\""),
            ("3-tier", "3-tier", "3-tier"),
            ("yes", "\"yes\"", "\"yes\""),
            ("y", "\"y\"", "\"y\""),
            ("null", "\"null\"", "\"null\""),
            ("~", "\"~\"", "\"~\""),
            (".5", "\".5\"", "\".5\""),
            ("*a", "\"*a\"", "\"*a\""),
            ("&a", "\"&a\"", "\"&a\""),
            ("!a", "\"!a\"", "\"!a\""),
            ("%a", "\"%a\"", "\"%a\""),
            ("@a", "\"@a\"", "\"@a\""),
            ("- a", "\"- a\"", "\"- a\""),
            ("a: b", "\"a: b\"", "\"a: b\""),
            ("a:", "\"a:\"", "\"a:\""),
            ("a #b", "\"a #b\"", "\"a #b\""),
            (" a", "\" a\"", "\" a\""),
            ("a ", "\"a \"", "\"a \""),
            ("a\nb", "\"a\\nb\"", "\"a\\nb\""),
            ("{\"a\":'b'}", "'{\"a\":''b''}'", "'{\"a\":''b''}'"),
            (
                "\u{85}\u{2028}\u{feff}\u{7f}",
                "\"\\u0085\\u2028\\ufeff\\u007f\"",
                "\"\\u0085\\u2028\\ufeff\\u007f\"",
            ),
            ("größe", "\"größe\"", "\"größe\""),
        ] {
            assert_eq!(
                (text_scalar(text, false), text_scalar(text, true)),
                (in_block.into(), in_flow.into())
            );
        }
    }
}
