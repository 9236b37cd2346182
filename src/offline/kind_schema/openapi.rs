//! Schemas of OpenAPI 3.0, as definitions have them, in JSON Schema.

use serde_json::{Map, Value, json};

/// A schema of OpenAPI 3.0, as definitions have it, in JSON Schema.
pub(super) fn converted(schema: &Value) -> Value {
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
    fn says_in_json_schema_what_openapi_says() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer", "minimum": 1, "exclusiveMinimum": true, "nullable": true},
                "b": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "c": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {}},
                "nullable": {"type": "string", "enum": ["x"], "nullable": true},
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
                "d": {"type": "boolean", "default": true},
            },
            "required": ["a"],
            "additionalProperties": false,
        });
        assert_eq!(converted(&schema), expected);
    }
}
