//! The JSON Schema of a kind, for editors: from the definition that memgate has of it, and stricter than an apiserver,
//! which drops unknown fields instead of refusing them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::family;
use crate::manifest::document::values;
use crate::manifest::source::Source;
use crate::model::kind::POLICY_CRDS;

/// A definition that memgate has.
#[derive(Debug)]
pub struct KindDefinition {
    /// The group.
    pub group: String,
    /// The kind.
    pub kind: String,
    plural: String,
    singular: String,
    /// Each version with its schema.
    versions: Vec<(String, Value)>,
}

/// All definitions, family by family, and those of memgate's own kinds.
#[must_use]
pub fn definitions() -> Vec<KindDefinition> {
    let files = family::ALL.into_iter().flat_map(|family| family.crds).copied().chain([POLICY_CRDS]);
    // They are part of the program, and tests hold that each can be read.
    let documents = files.flat_map(|text| values(&Arc::new(Source::new("<bundled>", text)), &mut Vec::new()));
    documents.filter_map(|document| definition(document.value())).collect()
}

fn definition(value: &Value) -> Option<KindDefinition> {
    let spec = value.get("spec")?;
    let name =
        |key| spec.pointer(&format!("/names/{key}")).and_then(Value::as_str).unwrap_or_default().to_owned();
    let version = |version: &Value| {
        let schema = version.pointer("/schema/openAPIV3Schema")?;
        Some((version.get("name")?.as_str()?.to_owned(), schema.clone()))
    };
    Some(KindDefinition {
        group: spec.get("group")?.as_str()?.to_owned(),
        kind: name("kind"),
        plural: name("plural"),
        singular: name("singular"),
        versions: spec.get("versions")?.as_array()?.iter().filter_map(version).collect(),
    })
}

impl KindDefinition {
    /// The name by which there is only this one, as kubectl takes it: `Agent.orloj.dev`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.kind, self.group)
    }

    /// Whether a name means this kind: its kind, plural or singular, in capitals or not, with the group or without.
    #[must_use]
    pub fn has_name(&self, name: &str) -> bool {
        let (name, group) = name.split_once('.').map_or((name, None), |(name, group)| (name, Some(group)));
        let names = [&self.kind, &self.plural, &self.singular];
        names.into_iter().any(|own| own.eq_ignore_ascii_case(name))
            && group.is_none_or(|group| group.eq_ignore_ascii_case(&self.group))
    }

    /// The JSON Schema (draft 7) of its objects; of several versions the object's `apiVersion` says which.
    #[must_use]
    pub fn json_schema(&self) -> Value {
        let mut schema = match self.versions.as_slice() {
            [only] => self.of_version(only),
            several => {
                let versions: Vec<Value> =
                    several.iter().map(|version| self.of_version(version).into()).collect();
                Map::from_iter([("oneOf".to_owned(), Value::from(versions))])
            }
        };
        let mut whole = Map::new();
        whole.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
        whole.insert("title".to_owned(), self.full_name().into());
        whole.append(&mut schema);
        Value::Object(whole)
    }

    fn of_version(&self, (version, schema): &(String, Value)) -> Map<String, Value> {
        let mut schema = match converted(schema) {
            Value::Object(schema) => schema,
            _ => Map::new(),
        };
        let mut properties = match schema.remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        };
        let api_version = format!("{}/{version}", self.group);
        properties.insert("apiVersion".to_owned(), json!({"type": "string", "const": api_version}));
        properties.insert("kind".to_owned(), json!({"type": "string", "const": self.kind}));
        properties.insert("metadata".to_owned(), json!({"type": "object"}));
        // An apiserver takes any, and writes it by itself.
        properties.entry("status").or_insert_with(|| json!({"type": "object"}));
        schema.insert("properties".to_owned(), Value::Object(properties));
        let mut required = vec![json!("apiVersion"), json!("kind"), json!("metadata")];
        if let Some(Value::Array(more)) = schema.remove("required") {
            required.extend(more.into_iter().filter(|name| !required.contains(name)).collect::<Vec<_>>());
        }
        schema.insert("required".to_owned(), Value::from(required));
        schema
    }
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
    let is_closed = new.contains_key("properties") && !new.contains_key("additionalProperties");
    if is_closed && !is("x-kubernetes-preserve-unknown-fields") {
        new.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(new)
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
    fn finds_kinds_by_every_name() {
        let definitions = definitions();
        let named = |name: &str| -> Vec<String> {
            let found = definitions.iter().filter(|definition| definition.has_name(name));
            found.map(KindDefinition::full_name).collect()
        };
        for name in ["ArkMemory", "arkmemories", "arkmemory.arkonis.dev"] {
            assert_eq!(named(name), ["ArkMemory.arkonis.dev"], "{name}");
        }
        assert!(named("Agent").len() > 2, "{:?}", named("Agent"));
        assert_eq!(named("agent.orloj.dev"), ["Agent.orloj.dev"]);
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
            },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "a": {"type": ["integer", "null"], "exclusiveMinimum": 1},
                "b": {"type": ["integer", "string"]},
                "c": {"type": "object", "properties": {}},
                "nullable": {"type": ["string", "null"], "enum": ["x", null]},
            },
            "additionalProperties": false,
        });
        assert_eq!(converted(&schema), expected);
    }
}
