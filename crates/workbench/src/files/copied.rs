//! Values of Secrets that kustomize or helm copied into other objects: no output shows them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{Bound, Range};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::build::origins::Origins;
use memgate_model::finding::Finding;
use memgate_primitives::credential::hide;
use memgate_primitives::pointer::Pointer;

/// A value that is not in quotes, or not a whole text, is hidden if it has so many bytes: shorter ones are words and numbers
/// of messages too.
const MIN_BYTES: usize = 4;

/// What may stand around a value in a text.
const AROUND: [char; 13] = ['/', ':', '@', '=', ',', '?', '&', ';', '(', ')', '\'', ' ', '\n'];

/// The values that were copied.
#[derive(Debug, Default)]
pub(crate) struct CopiedSecrets(BTreeSet<String>);

impl CopiedSecrets {
    /// Those in what memgate rendered: each is compared with the Secrets of the same chart or overlay.
    pub(crate) fn of(origins: &Origins) -> Self {
        let mut copied = BTreeSet::new();
        for rendered in origins.rendered.values() {
            let secrets: BTreeSet<String> =
                rendered.objects().filter(|object| is_secret(object)).flat_map(values_of).collect();
            for object in rendered.objects().filter(|object| !is_secret(object) && !secrets.is_empty()) {
                add_copied(object, &secrets, &mut copied);
            }
        }
        Self(copied)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A text without these values.
    pub(crate) fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let spans = match () {
            () if self.is_empty() => Vec::new(),
            () if self.0.contains(text) => Vec::from([Range { start: 0, end: text.len() }]),
            () => self.spans(text),
        };
        if spans.is_empty() { text.into() } else { hide(text, spans).into() }
    }

    /// Takes these values out of the texts of a finding.
    pub(crate) fn mask(&self, finding: &mut Finding, pointer: &Pointer) {
        let message = finding.message_at(pointer);
        let masked = self.masked(&message);
        let help = finding.help_text().map(|help| self.masked(&help).into_owned());
        let is_shown = |help: &String| finding.help_text().is_some_and(|it| it == help.as_str());
        if matches!(masked, Cow::Borrowed(_)) && help.as_ref().is_none_or(is_shown) {
            return;
        }
        // A fix of such a value is made of it.
        let told = finding.clone().with_message(masked).fix(None);
        *finding = match help {
            Some(help) => told.help(help),
            None => told,
        };
    }

    /// Where they stand in a text: in quotes, whole or cut, or as a word.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let mut start = 0;
        for (number, part) in text.split('"').enumerate() {
            let is_cut = || {
                let begin = part.strip_suffix('…').filter(|begin| !begin.is_empty());
                begin.is_some_and(|begin| {
                    self.0
                        .range::<str, _>((Bound::Included(begin), Bound::Unbounded))
                        .next()
                        .is_some_and(|it| it.starts_with(begin))
                })
            };
            if number % 2 == 1 && (self.0.contains(part) || is_cut()) {
                spans.push(start..start + part.len());
            } else {
                let own = pieces(part).filter(|(_, piece)| self.0.contains(*piece));
                spans.extend(own.map(|(at, piece)| start + at..start + at + piece.len()));
            }
            start += part.len() + 1;
        }
        spans
    }
}

/// The words of a text, and what is between the characters that may stand around a value, each with its place.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let words = split(text, char::is_whitespace);
    let words = words.map(|(at, word)| (at, word.trim_end_matches(['.', ';', ',', ':'])));
    let all = words.chain(split(text, |c| AROUND.contains(&c)));
    all.filter(|(_, piece)| piece.len() >= MIN_BYTES)
}

/// The parts of a text between some characters, each with its place.
fn split(text: &str, is_end: impl Fn(char) -> bool + Copy) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive(is_end).map(move |part| {
        let start = at;
        at += part.len();
        (start, part.strip_suffix(is_end).unwrap_or(part))
    })
}

fn is_secret(object: &Value) -> bool {
    let is = |field: &str, text: &str| object.get(field).is_some_and(|it| it == text);
    is("kind", "Secret") && is("apiVersion", "v1")
}

/// The values of a Secret, as they are written and as they are meant.
fn values_of(secret: &Value) -> impl Iterator<Item = String> {
    let texts = |field: &str| {
        let fields = secret.get(field).and_then(Value::as_object).into_iter();
        fields.flat_map(|it| it.values()).filter_map(Value::as_str)
    };
    let decoded = texts("data").filter_map(|text| {
        let decoded = STANDARD.decode(text.split_whitespace().collect::<String>()).ok()?;
        String::from_utf8(decoded).ok()
    });
    let written = texts("data").chain(texts("stringData")).map(str::to_owned);
    let all = written.chain(decoded).flat_map(|text| [text.trim_end().to_owned(), text]);
    all.filter(|text| !text.is_empty())
}

/// Adds the scalars of an object that are among the values of Secrets, or have one between other characters. What says which
/// object it is does not count.
fn add_copied(object: &Value, secrets: &BTreeSet<String>, copied: &mut BTreeSet<String>) {
    let is_identity = |depth: usize, parent: &str, key: &str| match depth {
        0 => ["apiVersion", "kind"].contains(&key),
        1 => parent == "metadata" && ["name", "namespace"].contains(&key),
        _ => false,
    };
    let mut open = vec![(object, 0, "")];
    while let Some((value, depth, parent)) = open.pop() {
        match value {
            Value::Object(fields) => {
                let fields = fields.iter().filter(|(key, _)| !is_identity(depth, parent, key));
                open.extend(fields.map(|(key, value)| (value, depth + 1, key.as_str())));
            }
            Value::Array(elements) => open.extend(elements.iter().map(|element| (element, depth + 1, ""))),
            Value::String(text) => {
                let whole = std::iter::once(text.as_str());
                let all = whole.chain(pieces(text).map(|(_, piece)| piece));
                copied.extend(all.filter(|piece| secrets.contains(*piece)).map(str::to_owned));
            }
            Value::Number(number) => copied.extend(secrets.get(&number.to_string()).cloned()),
            Value::Null | Value::Bool(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_where_they_stand() {
        let copied = CopiedSecrets(["hunter2", "s3cret-value", "a b", "5"].map(str::to_owned).into());
        for (text, expected) in [
            ("backend: \"hunter2\" is wrong", "backend: \"*******\" is wrong"),
            ("\"s3cr…\" (12 characters)", "\"*****\" (12 characters)"),
            ("\"a b\" and \"5\", at most 5", "\"***\" and \"*\", at most 5"),
            ("url \"redis://h/hunter2?x=1\"", "url \"redis://h/*******?x=1\""),
            ("hunter2; write hunter22", "*******; write hunter22"),
            ("nothing \"here\"", "nothing \"here\""),
        ] {
            assert_eq!(copied.masked(text).replace('•', "*"), expected, "{text}");
        }
    }
}
