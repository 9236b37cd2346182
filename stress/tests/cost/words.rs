//! The texts that elements, keys and values are made of.

use serde_json::{Value, json};

/// A text that stands for many: `#` in it is a number, `~` a thousand letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wording {
    pub(crate) name: &'static str,
    text: &'static str,
}

const fn wording(name: &'static str, text: &'static str) -> Wording {
    Wording { name, text }
}

/// Each another word.
pub(crate) const UNIQUE: Wording = wording("unique", "n#");
/// Always the same.
pub(crate) const EQUAL: Wording = wording("equal", "same");

/// The texts of elements and of values.
pub(crate) const WORDINGS: [Wording; 13] = [
    UNIQUE,
    EQUAL,
    wording("empty", ""),
    wording("long", "~#"),
    wording("escapes", "\"\\\u{1}\n\u{2028}\u{1d11e}#"),
    wording("credentials", "postgres://user#:pa55w0rd@h#.example.com/d?password=x&token=y"),
    wording("url", "http://h#.team-a.svc:8080/p"),
    wording("glob", "*?*?*?*a#"),
    wording("variable", "$(V#)"),
    wording("later", "${V#:=5}"),
    wording("slash", "team-a/n#"),
    wording("word", "read"),
    wording("number", "1#"),
];

/// The keys of maps, and of unknown fields.
pub(crate) const KEYS: [Wording; 9] = [
    wording("unique", "k#"),
    wording("memgate", "memgate.dev/k#"),
    wording("ark", "memgate.dev/ark-memori#"),
    wording("orka", "memgate.dev/orka-memory-contex#"),
    wording("long", "~#"),
    wording("escapes", "a/b~\"\\\u{1}\n#"),
    wording("same", "same"),
    wording("later", "${V#}"),
    wording("empty", ""),
];

/// A part that long texts repeat, as JSON has it, with a name.
pub(crate) type Unit = (&'static str, &'static str);

/// What one long text repeats.
pub(crate) const UNITS: [Unit; 29] = [
    ("letters", "a"),
    ("spaces", " "),
    ("slashes", "/"),
    ("dots", "."),
    ("labels", "a."),
    ("dashes", "-"),
    ("commas", ","),
    ("words", "read,"),
    ("colons", ":"),
    ("schemes", "a://"),
    ("percent", "%41"),
    ("bad-percent", "%"),
    ("parameters", "&a=b"),
    ("passwords", "&password=x"),
    ("addresses", "http://u:p@h/ "),
    ("at", "@"),
    ("quotes", "\\\""),
    ("controls", "\\u0001"),
    ("newlines", "\\n"),
    ("accents", "é"),
    ("surrogates", "\\ud834\\udd1e"),
    ("variables", "$(A)"),
    ("dollars", "$"),
    ("later", "${a:"),
    ("digits", "9"),
    ("hours", "1h"),
    ("stars", "*a"),
    ("brackets", "["),
    ("objects", "{\\\"a\\\":"),
];

/// The units that mean something in a URL.
pub(crate) const IN_URLS: [&str; 8] =
    ["letters", "slashes", "labels", "percent", "parameters", "passwords", "at", "accents"];

/// Beginnings of long texts that are URLs.
pub(crate) const STARTS: [Unit; 3] =
    [("path-", "http://h/"), ("user-", "https://u:"), ("query-", "postgres://u:p@h/d?")];

impl Wording {
    /// The text with this number.
    pub(crate) fn word(self, number: usize) -> String {
        let text = self.text.replace('#', &number.to_string());
        if text.contains('~') && self.name == "long" { text.replace('~', &"x".repeat(1000)) } else { text }
    }
}

/// A value of this schema with its required fields, or with all of them. It is valid as far as the words are.
pub(crate) fn sample(schema: &Value, full: bool, wording: Wording, number: usize) -> Value {
    if let Some(choices) = schema["enum"].as_array().filter(|choices| !choices.is_empty()) {
        return choices.get(number % choices.len()).cloned().unwrap_or_default();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
            let fields = schema["properties"].as_object().into_iter().flatten();
            let fields = fields.filter(|(name, _)| full || required.iter().any(|it| it == name.as_str()));
            let value = |field: &Value| sample(field, full, wording, number);
            Value::Object(fields.map(|(name, field)| (name.clone(), value(field))).collect())
        }
        Some("array") => json!([]),
        Some("boolean") => json!(true),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("string") if schema["format"] == "date-time" => json!("2026-01-02T03:04:05Z"),
        _ => json!(wording.word(number)),
    }
}

/// Gives all texts of a value other words. Unique ones keep what they mean, and equal ones are left.
pub(crate) fn reword(value: &mut Value, wording: Wording, number: usize) {
    match value {
        Value::String(text) if wording == UNIQUE => text.push_str(&number.to_string()),
        Value::String(text) if wording != EQUAL => *text = wording.word(number),
        Value::Array(items) => items.iter_mut().for_each(|item| reword(item, wording, number)),
        Value::Object(fields) => fields.values_mut().for_each(|value| reword(value, wording, number)),
        _ => {}
    }
}

/// A name that differs from the right one in three letters, and from all others.
pub(crate) fn almost(name: &str, number: usize) -> String {
    let letter = |place: usize| char::from(b"abcdefghijklmnopqrstuvwxyz"[number / place % 26]);
    let letters: String = [1, 26, 676].map(letter).iter().collect();
    let (start, end) = name.split_at(name.len() / 2);
    format!("{start}{letters}{end}")
}
