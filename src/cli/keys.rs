//! Files of settings: their keys and values, and errors with line and column.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use serde_json::Value;

use crate::offline::collect::{Reading, collect};
use memgate_core::family;
use memgate_manifest::document::{Document, values};
use memgate_manifest::error::{Error, SyntaxError};
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::{did_you_mean, nearest};

/// The places of the private memory of a sympozium agent.
pub const MEMORY_MODES: [&str; 3] = ["auto", "service", "sidecar"];

/// The values that a key of a file may have.
#[derive(Debug)]
pub enum Expected {
    /// A text.
    Text,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(Vec<&'static str>),
    /// A list of such values.
    List(Box<Self>),
    /// A map with only these keys.
    Keys(Vec<(&'static str, Self)>),
    /// The key is not allowed, for this reason.
    Refused(&'static str),
}

/// The keys of a settings file.
#[must_use]
pub fn settings() -> Expected {
    use Expected::{Keys, Text, Word};
    let texts = Expected::texts;
    Keys(vec![
        ("families", families()),
        (
            "orloj",
            Keys(vec![("jobNamespaces", texts()), ("sharedSecrets", texts()), ("sourceNamespaces", texts())]),
        ),
        (
            "sympozium",
            Keys(vec![
                ("memoryMode", Word(MEMORY_MODES.to_vec())),
                ("waitImage", Text),
                ("memoryImage", Text),
            ]),
        ),
    ])
}

/// A list of names of families.
#[must_use]
pub fn families() -> Expected {
    Expected::List(Box::new(Expected::Word(family::ALL.map(|family| family.name).to_vec())))
}

impl Expected {
    /// A list of texts.
    #[must_use]
    pub fn texts() -> Self {
        Self::List(Box::new(Self::Text))
    }
}

/// Reads a file and checks its keys and values. An empty file has no document. Every error names the file.
///
/// # Errors
/// When it cannot be read, or has an unknown key or a wrong value.
pub fn read(path: &Path, expected: &Expected) -> anyhow::Result<Option<Document>> {
    let collected = collect(&[path.display().to_string()], &Reading::default(), &mut std::io::empty());
    if let Some(error) = collected.errors.into_iter().next() {
        return Err(error.into());
    }
    let Some(source) = collected.sources.into_iter().next() else {
        bail!("{}: this is not a file", path.display());
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

/// A wrong key or value.
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

/// The first wrong key or value.
fn fault(value: &Value, expected: &Expected, pointer: &Pointer) -> Option<Fault> {
    let wrong = |what: &str| Some(Fault::new(pointer.clone(), format!("{}{what}", field(pointer))));
    match expected {
        Expected::Text if !value.is_string() => wrong("write a text"),
        Expected::Flag if !value.is_boolean() => wrong("write true or false"),
        Expected::Word(words) => {
            let word = value.as_str().unwrap_or_default();
            let hint = || did_you_mean(nearest(word, words.iter().copied()));
            if words.contains(&word) {
                None
            } else {
                wrong(&format!("write one of {}{}", words.join(", "), hint()))
            }
        }
        Expected::List(of) => {
            let Some(items) = value.as_array() else { return wrong("write a list") };
            items.iter().enumerate().find_map(|(index, item)| fault(item, of, &pointer.index(index)))
        }
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

/// The name of a field at the start of a message; empty for the whole file.
fn field(pointer: &Pointer) -> String {
    let field = pointer.field();
    if field.is_empty() { field } else { format!("{field}: ") }
}
