//! Files of settings: their keys and values, which must be those of a JSON Schema of `memgate schema`. Errors have line
//! and column.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use regex::Regex;
use serde_json::{Map, Value};

use memgate_manifest::document::{Document, values};
use memgate_manifest::error::{Error, SyntaxError};
use memgate_manifest::source::Source;
use memgate_model::platform_settings::quantity;
use memgate_primitives::plain_text::{quoted_key, quoted_text};
use memgate_primitives::pointer::Pointer;
use memgate_primitives::suggest::{did_you_mean, nearest};
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::read::collect;

/// The JSON Schema of a settings file.
pub const SETTINGS: &str = include_str!("../../docs/schema/settings.json");

/// The JSON Schema of `.memgate.yaml`.
pub const PROJECT: &str = include_str!("../../docs/schema/project.json");

/// The flags that no file can set.
const FLAGS_ONLY: [&str; 3] = ["values", "kustomizeArgs", "helmArgs"];

/// Reads a file and checks its keys and values. An empty file has no document. Every error names the file.
///
/// # Errors
/// When it cannot be read, or has an unknown key or a wrong value.
pub fn read(path: &Path, schema: &str) -> anyhow::Result<Option<Document>> {
    parse(&source(path)?, schema)
}

/// The text of a file.
///
/// # Errors
/// When it cannot be read.
pub fn source(path: &Path) -> anyhow::Result<Arc<Source>> {
    let collected = collect(&[path.display().to_string()], &Plan::default(), &mut std::io::empty());
    if let Some(error) = collected.errors.into_iter().next() {
        return Err(error.into());
    }
    let source = collected.sources.into_iter().next();
    let no_file = || Error::of_input(path.to_string_lossy(), "this is not a file");
    Ok(source.ok_or_else(no_file)?)
}

/// The document of a text with these keys and values.
///
/// # Errors
/// Those of [`read`].
pub fn parse(source: &Arc<Source>, schema: &str) -> anyhow::Result<Option<Document>> {
    let mut errors = Vec::new();
    let mut documents = values(source, &mut errors).into_iter();
    if let Some(error) = errors.into_iter().next() {
        return Err(error.into());
    }
    let Some(document) = documents.next() else { return Ok(None) };
    if let Some(second) = documents.next() {
        let fault =
            Fault::new(Pointer::root(), "there is a second document; write everything into the first");
        return Err(fault.at(&second).into());
    }
    let schema: Value = serde_json::from_str(schema).context("the bundled schema is not JSON")?;
    match fault(document.value(), &schema, &schema, &Pointer::root()) {
        Some(fault) => Err(fault.at(&document).into()),
        None => Ok(Some(document)),
    }
}

/// A wrong key or value.
pub(super) struct Fault {
    pointer: Pointer,
    message: String,
    at_key: bool,
}

impl Fault {
    pub(super) fn new(pointer: Pointer, message: impl Into<String>) -> Self {
        Self { pointer, message: message.into(), at_key: false }
    }

    pub(super) fn at(self, document: &Document) -> Error {
        let place = document.locate(&self.pointer);
        let span = place.key.filter(|_| self.at_key).unwrap_or(place.caret);
        Error::Syntax(Box::new(SyntaxError::new(document.source(), span, self.message)))
    }
}

/// The first wrong key or value. `schema` is a part of `whole`, in which its references lead.
fn fault(value: &Value, schema: &Value, whole: &Value, pointer: &Pointer) -> Option<Fault> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return fault(value, whole.pointer(reference.trim_start_matches('#'))?, whole, pointer);
    }
    let wrong = |what: &str| Some(Fault::new(pointer.clone(), format!("{}{what}", field(pointer))));
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        // YAML reads `off` without quotes as false.
        let word = value.as_str().unwrap_or(if *value == Value::Bool(false) { "off" } else { "" });
        let hint = did_you_mean(nearest(word, words.iter().copied()));
        let message = format!("write one of {}{hint}", words.join(", "));
        return if words.contains(&word) { None } else { wrong(&message) };
    }
    let kind = match schema.get("type")? {
        Value::String(kind) => kind.as_str(),
        // A quantity may be a number.
        _ if schema.get("pattern").is_some() => {
            let Some(text) = quantity(value) else { return wrong("write a quantity, such as 100m or 64Mi") };
            return misfit(&text, schema).and_then(|what| wrong(&what));
        }
        _ => return None,
    };
    match (kind, value) {
        ("string", Value::String(text)) => misfit(text, schema).and_then(|what| wrong(&what)),
        ("boolean", Value::Bool(_)) | ("number", Value::Number(_)) => None,
        ("integer", Value::Number(number)) if number.is_u64() => None,
        ("string", _) => wrong("write a text"),
        ("boolean", _) => wrong("write true or false"),
        ("integer", _) => wrong("write a whole number"),
        ("number", _) => wrong("write a number"),
        ("array", Value::Array(items)) => {
            let of = schema.get("items")?;
            let miscounted = miscounted(items.len(), schema, ["minItems", "maxItems"]);
            let mut items = items.iter().enumerate();
            miscounted
                .and_then(|what| wrong(&what))
                .or_else(|| items.find_map(|(index, item)| fault(item, of, whole, &pointer.index(index))))
        }
        ("array", _) => wrong("write a list"),
        (_, Value::Object(fields)) => {
            let miscounted = miscounted(fields.len(), schema, ["minProperties", "maxProperties"]);
            let mut required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let missing = required.find_map(|key| key.as_str().filter(|key| !fields.contains_key(*key)));
            let missing = missing.map(|key| format!("the key {} is missing", quoted_key(key)));
            let of_field = |(name, value): (&String, &Value)| {
                let at = pointer.key(name);
                let key = |what: String| Some(Fault { at_key: true, ..Fault::new(at.clone(), what) });
                if let Some(what) = schema.get("propertyNames").and_then(|names| misfit(name, names)) {
                    return key(what);
                }
                match properties(schema).get(name).or_else(|| any_key(schema)) {
                    Some(schema) => fault(value, schema, whole, &at),
                    None => key(unknown_key(name, schema)),
                }
            };
            miscounted.or(missing).and_then(|what| wrong(&what)).or_else(|| fields.iter().find_map(of_field))
        }
        _ if any_key(schema).is_some() => wrong("write a map"),
        _ => wrong(&format!("write a map with keys out of {}", names(schema).join(", "))),
    }
}

/// Why a text does not have the pattern of its schema, if it does not. `patternErrorMessage` is also what editors show.
fn misfit(text: &str, schema: &Value) -> Option<String> {
    let pattern = Regex::new(schema.get("pattern")?.as_str()?).ok()?;
    let what = schema.get("patternErrorMessage").and_then(Value::as_str).unwrap_or("is not allowed here");
    (!pattern.is_match(text)).then(|| format!("{} {what}", quoted_text(text)))
}

/// Why a list or map has too few or too many entries.
fn miscounted(count: usize, schema: &Value, [least, most]: [&str; 2]) -> Option<String> {
    let limit = |name| schema.get(name).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
    match (limit(least), limit(most)) {
        (Some(least), _) if count < least => {
            Some(format!("there are {count} entries; write at least {least}"))
        }
        (_, Some(most)) if count > most => {
            Some(format!("there are {count} entries; at most {most} are read"))
        }
        _ => None,
    }
}

fn properties(schema: &Value) -> Map<String, Value> {
    schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The schema of the values of a map that may have any key.
fn any_key(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|schema| schema.is_object())
}

fn names(schema: &Value) -> Vec<String> {
    properties(schema).into_iter().map(|(name, _)| name).collect()
}

fn unknown_key(name: &str, schema: &Value) -> String {
    if FLAGS_ONLY.contains(&name) {
        return format!(
            "{name}: a file cannot give this, since the author of a change could steer programs with it; give it on the \
             command line"
        );
    }
    let names = names(schema);
    let hint = did_you_mean(nearest(name, names.iter().map(String::as_str)));
    format!("unknown key {}; keys here are {}{hint}", quoted_key(name), names.join(", "))
}

/// The name of a field at the start of a message; empty for the whole file.
fn field(pointer: &Pointer) -> String {
    let field = pointer.field();
    if field.is_empty() { field } else { format!("{field}: ") }
}
