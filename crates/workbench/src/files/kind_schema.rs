//! The JSON Schema of a kind, for editors, made from memgate's definition of it. It is stricter than an apiserver, which
//! drops unknown fields instead of refusing them.
//!
//! ```text
//! definition ──openapi──▶ schema of a kind ──combined──▶ schema of all kinds
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use memgate_manifest::document::values;
use memgate_manifest::later::FILLED_IN_LATER;
use memgate_manifest::source::Source;
use serde_json::{Map, Value, json};

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";
const API_VERSION: &str = "The group and version of the kind.";
const KIND: &str = "What the object is.";
const STATUS: &str = "What the platform says of the object. Users do not write it.";

/// The definition of a kind.
#[derive(Debug)]
pub struct KindDefinition {
    /// The group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// Each version with its schema.
    versions: Vec<(String, Value)>,
}

/// All definitions, family by family, and those of memgate's own kinds.
pub fn definitions() -> Vec<KindDefinition> {
    let of_families = memgate_platforms::ALL.into_iter().flat_map(|family| family.definitions.crds);
    of_families.flat_map(|text| read(&text())).chain(read(&memgate_platforms::policy_crds())).collect()
}

/// The definitions of a file.
fn read(text: &str) -> impl Iterator<Item = KindDefinition> + use<> {
    // They are part of the program, and a test checks that each can be read.
    let documents = values(&Arc::new(Source::new("<bundled>", text)), &mut Vec::new());
    documents.into_iter().filter_map(|document| definition(document.value()))
}

fn definition(value: &Value) -> Option<KindDefinition> {
    let spec = value.get("spec")?;
    let version = |version: &Value| {
        let schema = version.pointer("/schema/openAPIV3Schema")?;
        Some((version.get("name")?.as_str()?.to_owned(), schema.clone()))
    };
    Some(KindDefinition {
        group: spec.get("group")?.as_str()?.to_owned(),
        kind: spec.pointer("/names/kind")?.as_str()?.to_owned(),
        versions: spec.get("versions")?.as_array()?.iter().filter_map(version).collect(),
    })
}

/// The JSON Schema (draft 7) of files with objects of any kind: objects of these definitions must match their own
/// schemas, all others are accepted.
pub fn combined(definitions: &[KindDefinition]) -> Value {
    let (mut schemas, mut choices) = (Map::new(), Vec::new());
    let (mut api_versions, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for definition in definitions {
        kinds.insert(&definition.kind);
        for version in &definition.versions {
            let (api_version, kind) = (definition.api_version(version), &definition.kind);
            let name = format!("{kind}.{}.{}", version.0, definition.group);
            choices.push(json!({
                "if": {
                    "required": ["apiVersion", "kind"],
                    "properties": {"apiVersion": {"const": api_version}, "kind": {"const": kind}},
                },
                "then": {"$ref": format!("#/definitions/{name}")},
            }));
            let mut schema = definition.of_version(version);
            allow_later(&mut schema);
            schemas.insert(name, schema);
            api_versions.insert(api_version);
        }
    }
    json!({
        "$schema": DRAFT,
        "title": "Objects of agent platforms, and others",
        "type": "object",
        "properties": {
            // Suggested, but others are as right.
            "apiVersion": {"description": API_VERSION, "anyOf": [{"enum": api_versions}, {"type": "string"}]},
            "kind": {"description": KIND, "anyOf": [{"enum": kinds}, {"type": "string"}]},
        },
        "allOf": choices,
        "definitions": schemas,
    })
}

impl KindDefinition {
    /// The name by which there is only this one, as kubectl takes it: `Agent.orloj.dev`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.kind, self.group)
    }

    /// Whether a name means this kind, with the group or without.
    pub fn has_name(&self, name: &str) -> bool {
        name == self.kind || name == self.full_name()
    }

    /// The JSON Schema (draft 7) of its objects; the object's `apiVersion` selects one of several versions.
    pub fn json_schema(&self) -> Value {
        let schema = match self.versions.as_slice() {
            [only] => self.of_version(only),
            several => {
                let versions: Vec<Value> = several.iter().map(|version| self.of_version(version)).collect();
                // Editors show this while the version is not written yet.
                let description = versions.first().map(|newest| newest["description"].clone());
                json!({"title": self.full_name(), "description": description, "oneOf": versions})
            }
        };
        let mut whole = Map::from_iter([("$schema".to_owned(), Value::from(DRAFT))]);
        whole.extend(members(schema));
        let mut whole = Value::Object(whole);
        allow_later(&mut whole);
        whole
    }

    fn api_version(&self, (version, _): &(String, Value)) -> String {
        format!("{}/{version}", self.group)
    }

    fn of_version(&self, version: &(String, Value)) -> Value {
        let mut schema = members(converted(&version.1));
        let mut properties = members(schema.remove("properties").unwrap_or_default());
        let constant = |about, value| json!({"description": about, "type": "string", "const": value});
        properties.insert("apiVersion".to_owned(), constant(API_VERSION, self.api_version(version)));
        properties.insert("kind".to_owned(), constant(KIND, self.kind.clone()));
        properties.insert("metadata".to_owned(), metadata());
        // An apiserver passes over what users write there.
        properties.insert("status".to_owned(), json!({"description": STATUS, "type": "object"}));
        schema.insert("properties".to_owned(), Value::Object(properties));
        let mut required = vec![json!("apiVersion"), json!("kind"), json!("metadata")];
        if let Some(Value::Array(more)) = schema.remove("required") {
            required.extend(more.into_iter().filter(|name| !required.contains(name)).collect::<Vec<_>>());
        }
        schema.insert("required".to_owned(), Value::from(required));
        let mut whole = Map::from_iter([("title".to_owned(), Value::from(self.full_name()))]);
        whole.extend(schema);
        Value::Object(whole)
    }
}

/// The members of an object; none of another value.
fn members(value: Value) -> Map<String, Value> {
    if let Value::Object(members) = value { members } else { Map::new() }
}

/// Lets a text that a later step fills in stand for each value below an object that is not any text. The recursion is bounded
/// by the depth of the definitions.
fn allow_later(object: &mut Value) {
    let below = |key: &str, schema: &mut Value| match (key, schema) {
        ("properties", Value::Object(fields)) => fields.values_mut().for_each(allow_in),
        ("anyOf" | "allOf" | "oneOf", Value::Array(schemas)) => schemas.iter_mut().for_each(allow_later),
        ("items" | "additionalProperties", schema) => allow_in(schema),
        _ => {}
    };
    object.as_object_mut().into_iter().flatten().for_each(|(key, schema)| below(key, schema));
}

fn allow_in(schema: &mut Value) {
    const ABOUT: [&str; 5] = ["title", "description", "default", "examples", "type"];
    allow_later(schema);
    let Some(fields) = schema.as_object_mut().filter(|fields| !fields.contains_key("const")) else { return };
    let is_text = fields.get("type").is_none_or(|it| it == "string");
    if fields.contains_key("enum") || is_text && fields.keys().any(|key| !ABOUT.contains(&&**key)) {
        let own = std::mem::take(fields);
        fields.extend(own.get("description").map(|about| ("description".to_owned(), about.clone())));
        fields.insert("anyOf".to_owned(), json!([own, {"type": "string", "pattern": FILLED_IN_LATER}]));
        return;
    }
    let mut types = match fields.get("type").cloned() {
        Some(Value::Array(types)) => types,
        only => only.into_iter().collect(),
    };
    if !types.is_empty() && !types.contains(&json!("string")) {
        types.push("string".into());
        // A pattern holds for texts alone.
        fields.extend([("type".to_owned(), types.into()), ("pattern".to_owned(), FILLED_IN_LATER.into())]);
    }
}

/// Metadata as users write it. An apiserver writes more, and refuses none of it.
fn metadata() -> Value {
    let text = |about: &str| json!({"description": about, "type": "string"});
    // Templates leave them empty.
    let texts = |about: &str| json!({"description": about, "type": ["object", "null"], "additionalProperties": {"type": "string"}});
    json!({
        "description": "Name, namespace, labels and annotations of the object.",
        "type": "object",
        "properties": {
            "name": text("The name of the object, unique for its kind in the namespace."),
            "generateName": text("What a name that the apiserver makes begins with, in place of name."),
            "namespace": text("The namespace of the object; left out, the one into which it is applied."),
            "labels": texts("By which objects are selected."),
            "annotations": texts("Notes and settings that nothing is selected by."),
        },
    })
}

/// A schema of OpenAPI 3.0, as definitions have it, in JSON Schema.
fn converted(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut new = Map::new();
    for (key, value) in schema {
        match key.as_str() {
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let fields: Map<String, Value> =
                    fields.map(|(name, field)| (name.clone(), converted(field))).collect();
                new.insert(key.clone(), Value::Object(fields));
            }
            "items" | "additionalProperties" | "not" => {
                new.insert(key.clone(), converted(value));
            }
            "allOf" | "anyOf" | "oneOf" => {
                let schemas: Vec<Value> = value.as_array().into_iter().flatten().map(converted).collect();
                new.insert(key.clone(), Value::from(schemas));
            }
            "pattern" => {
                // Go's classes have other names in ECMAScript.
                let pattern = value.as_str().unwrap_or_default().replace("[:space:]", r"\s");
                new.insert(key.clone(), Value::from(pattern));
            }
            "nullable" | "example" | "externalDocs" => {}
            other if other.starts_with("x-kubernetes-") => {}
            _ => {
                new.insert(key.clone(), value.clone());
            }
        }
    }
    let is = |key| schema.get(key) == Some(&Value::Bool(true));
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        // There it is a flag beside the bound, here it is the bound.
        new.remove(flag);
        if let Some(value) = is(flag).then(|| new.remove(bound)).flatten() {
            new.insert(flag.to_owned(), value);
        }
    }
    if is("x-kubernetes-int-or-string") {
        new.insert("type".to_owned(), json!(["integer", "string"]));
        new.remove("anyOf");
    }
    if is("nullable") {
        allow_null(&mut new);
    }
    require_what_has_no_default(&mut new);
    let is_closed = new.contains_key("properties") && !new.contains_key("additionalProperties");
    if is_closed && !is("x-kubernetes-preserve-unknown-fields") {
        new.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(new)
}

/// An apiserver writes defaults before it checks required fields.
fn require_what_has_no_default(schema: &mut Map<String, Value>) {
    let Some(Value::Array(mut required)) = schema.remove("required") else { return };
    let properties = schema.get("properties");
    let has_default =
        |name: &str| properties.is_some_and(|it| it.get(name).is_some_and(|it| it.get("default").is_some()));
    required.retain(|name| !name.as_str().is_some_and(has_default));
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
}

fn allow_null(schema: &mut Map<String, Value>) {
    if let Some(Value::String(only)) = schema.get("type") {
        let types = json!([only, "null"]);
        schema.insert("type".to_owned(), types);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_kinds_with_and_without_their_group() {
        let definitions = definitions();
        let named = |name: &str| -> Vec<String> {
            let found = definitions.iter().filter(|definition| definition.has_name(name));
            found.map(KindDefinition::full_name).collect()
        };
        for name in ["ArkMemory", "ArkMemory.arkonis.dev"] {
            assert_eq!(named(name), ["ArkMemory.arkonis.dev"], "{name}");
        }
        assert!(named("Agent").len() > 2, "{:?}", named("Agent"));
        assert_eq!(named("Agent.orloj.dev"), ["Agent.orloj.dev"]);
        assert!(named("ArkMemry").is_empty());
    }

    #[test]
    fn says_in_json_schema_what_openapi_says() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer", "minimum": 1, "exclusiveMinimum": true, "nullable": true},
                "b": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "c": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {}},
                "nullable": {"type": "string", "enum": ["x"], "nullable": true},
                "e": {"type": "string", "pattern": "^[^[:space:]]+$"},
                "d": {"type": "boolean", "default": true},
            },
            "required": ["a", "d"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "a": {"type": ["integer", "null"], "exclusiveMinimum": 1},
                "b": {"type": ["integer", "string"]},
                "c": {"type": "object", "properties": {}},
                "nullable": {"type": ["string", "null"], "enum": ["x", null]},
                "e": {"type": "string", "pattern": r"^[^\s]+$"},
                "d": {"type": "boolean", "default": true},
            },
            "required": ["a"],
            "additionalProperties": false,
        });
        assert_eq!(converted(&schema), expected);
    }
}
