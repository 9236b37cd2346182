//! Files of settings: which keys they may have, and what belongs there. What is wrong is said at its line.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use serde_json::Value;

use crate::family;
use crate::family::suggest::{did_you_mean, nearest};
use crate::manifest::document::{Document, values};
use crate::manifest::error::{Error, SyntaxError};
use crate::model::pointer::Pointer;
use crate::offline::collect::{Reading, collect};

/// What belongs at a place of a file.
#[derive(Debug)]
pub enum Expected {
    /// A text.
    Text,
    /// `true` or `false`.
    Flag,
    /// A list of texts.
    Texts,
    /// One of these words.
    Word(Vec<&'static str>),
    /// A list of these words.
    Words(Vec<&'static str>),
    /// A map with none but these keys.
    Keys(Vec<(&'static str, Self)>),
    /// Nothing, for this reason.
    Refused(&'static str),
}

/// What belongs into a file of settings.
#[must_use]
pub fn settings() -> Expected {
    use Expected::{Keys, Text, Texts, Word};
    Keys(vec![
        ("families", families()),
        (
            "orloj",
            Keys(vec![("jobNamespaces", Texts), ("sharedSecrets", Texts), ("sourceNamespaces", Texts)]),
        ),
        (
            "sympozium",
            Keys(vec![
                ("memoryMode", Word(vec!["auto", "service", "sidecar"])),
                ("waitImage", Text),
                ("memoryImage", Text),
            ]),
        ),
    ])
}

/// Names of families.
#[must_use]
pub fn families() -> Expected {
    Expected::Words(family::ALL.map(|family| family.name).to_vec())
}

/// What a file holds, with its places; nothing when it is empty. Every error names the file.
///
/// # Errors
/// When it cannot be read, or holds what does not belong there.
pub fn read(path: &Path, expected: &Expected) -> anyhow::Result<Option<Document>> {
    let collected = collect(&[path.display().to_string()], &Reading::default(), &mut std::io::empty());
    if let Some(error) = collected.errors.into_iter().next() {
        return Err(error.into());
    }
    let Some(source) = collected.sources.into_iter().next() else {
        bail!("{}: this is no file", path.display());
    };
    let mut errors = Vec::new();
    let mut documents = values(&Arc::new(source), &mut errors).into_iter();
    if let Some(error) = errors.into_iter().next() {
        return Err(error.into());
    }
    let Some(document) = documents.next() else { return Ok(None) };
    if let Some(second) = documents.next() {
        let fault =
            Fault::new(Pointer::root(), "there is a second document; write everything into the first");
        return Err(fault.at(&second).into());
    }
    match fault(document.value(), expected, &Pointer::root()) {
        Some(fault) => Err(fault.at(&document).into()),
        None => Ok(Some(document)),
    }
}

/// What does not belong where it stands.
struct Fault {
    pointer: Pointer,
    message: String,
    at_key: bool,
}

impl Fault {
    fn new(pointer: Pointer, message: impl Into<String>) -> Self {
        Self { pointer, message: message.into(), at_key: false }
    }

    fn at(self, document: &Document) -> Error {
        let place = document.locate(&self.pointer);
        Error::Syntax(Box::new(SyntaxError {
            source_text: Arc::clone(document.source()),
            span: place.key.filter(|_| self.at_key).unwrap_or(place.caret),
            message: self.message,
            help: None,
            related: None,
        }))
    }
}

/// The first thing that does not belong there.
fn fault(value: &Value, expected: &Expected, pointer: &Pointer) -> Option<Fault> {
    let wrong = |what: &str| Some(Fault::new(pointer.clone(), format!("{}{what}", field(pointer))));
    match expected {
        Expected::Text if !value.is_string() => wrong("write a text"),
        Expected::Flag if !value.is_boolean() => wrong("write true or false"),
        Expected::Word(words) => word_fault(value, words, pointer),
        Expected::Texts => items_fault(value, pointer, |item, at| fault(item, &Expected::Text, at)),
        Expected::Words(words) => items_fault(value, pointer, |item, at| word_fault(item, words, at)),
        Expected::Keys(keys) => {
            let Some(fields) = value.as_object() else {
                let names = keys.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                return wrong(&format!("write a map with keys out of {names}"));
            };
            fields.iter().find_map(|(name, value)| key_fault(name, value, keys, pointer))
        }
        Expected::Refused(_) | Expected::Text | Expected::Flag => None,
    }
}

fn key_fault(
    name: &str,
    value: &Value,
    keys: &[(&'static str, Expected)],
    pointer: &Pointer,
) -> Option<Fault> {
    let below = pointer.key(name);
    match keys.iter().find(|(known, _)| *known == name) {
        Some((_, Expected::Refused(why))) => {
            Some(Fault { at_key: true, ..Fault::new(below, format!("{name}: {why}")) })
        }
        Some((_, expected)) => fault(value, expected, &below),
        None => {
            let taken = || keys.iter().filter(|(_, expected)| !matches!(expected, Expected::Refused(_)));
            let names = || taken().map(|(known, _)| *known);
            let hint = did_you_mean(nearest(name, names()));
            let names = names().collect::<Vec<_>>().join(", ");
            let message = format!("unknown key \"{name}\"; keys here are {names}{hint}");
            Some(Fault { at_key: true, ..Fault::new(below, message) })
        }
    }
}

fn word_fault(value: &Value, words: &[&'static str], pointer: &Pointer) -> Option<Fault> {
    let word = value.as_str().unwrap_or_default();
    if words.contains(&word) {
        return None;
    }
    let hint = did_you_mean(nearest(word, words.iter().copied()));
    Some(Fault::new(pointer.clone(), format!("{}write one of {}{hint}", field(pointer), words.join(", "))))
}

fn items_fault(
    value: &Value,
    pointer: &Pointer,
    of_item: impl Fn(&Value, &Pointer) -> Option<Fault>,
) -> Option<Fault> {
    let Some(items) = value.as_array() else {
        return Some(Fault::new(pointer.clone(), format!("{}write a list", field(pointer))));
    };
    items.iter().enumerate().find_map(|(index, item)| of_item(item, &pointer.index(index)))
}

/// The start of a message that names a field; empty for the whole file.
fn field(pointer: &Pointer) -> String {
    let field = pointer.field();
    if field.is_empty() { field } else { format!("{field}: ") }
}
