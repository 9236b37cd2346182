//! Prunes the JSON of an object to what [`Tree`](crate::tree::Tree) keeps when it reads the object, for
//! writing it to a file.

use serde_json::{Map, Value};

use crate::schema::{Field, Schema};
use crate::tree::masked;

/// The parts of a value that the schema reads. Reading the result gives the same tree as reading the value,
/// except for the names of fields that the schema does not have. For a Secret's data the result has the keys,
/// each with an empty string.
///
/// The recursion goes no deeper than the schema.
pub fn pruned(value: &Value, schema: &Schema) -> Value {
    match (schema, value) {
        (Schema::Whole(_) | Schema::Compared(_), value) => value.clone(),
        (Schema::Object(fields) | Schema::Open(fields) | Schema::Pruned(fields), Value::Object(entries)) => {
            Value::Object(pruned_fields(entries, fields))
        }
        (Schema::List(element), Value::Array(elements)) => {
            elements.iter().map(|value| pruned(value, element)).collect()
        }
        (Schema::Named(named), Value::Array(elements)) => {
            let kept = |value: &Value| {
                let name = value.get("name")?.as_str()?;
                let (_, schema) = named.iter().find(|(known, _)| *known == name)?;
                Some(pruned(value, schema))
            };
            elements.iter().filter_map(kept).collect()
        }
        (Schema::Texts, Value::Object(entries)) => {
            entries.iter().map(|(key, value)| (key.clone(), pruned(value, &Schema::Text))).collect()
        }
        (Schema::Keys, Value::Object(entries)) => {
            entries.keys().map(|key| (key.clone(), Value::from(""))).collect()
        }
        (Schema::Any, Value::String(_)) => Value::from(""),
        (Schema::Credential, Value::String(text)) => Value::from(masked(text)),
        // If a value does not have the expected type, only its type is read.
        (_, Value::Object(_)) => Value::Object(Map::new()),
        (_, Value::Array(_)) => Value::Array(Vec::new()),
        (_, scalar) => scalar.clone(),
    }
}

fn pruned_fields(entries: &Map<String, Value>, fields: &[Field]) -> Map<String, Value> {
    let known = |name: &str| fields.iter().find(|field| field.name == name);
    let read = entries.iter().filter_map(|(name, value)| Some((name, value, known(name)?)));
    read.map(|(name, value, field)| (name.clone(), pruned(value, &field.schema))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::{MEMORY_POLICY, NAMESPACE, SECRET, SERVICE};
    use crate::tree::Tree;

    #[test]
    fn keeps_what_is_read() {
        let secret = json!({"kind": "Secret", "metadata": {"name": "a", "uid": "u"}, "type": "Opaque",
            "data": {"KEY": "c2VjcmV0"}, "stringData": ["x"]});
        let kept = json!({"metadata": {"name": "a"}, "data": {"KEY": ""}, "stringData": []});
        assert_eq!(pruned(&secret, &SECRET.schema), kept);
        let policy = json!({"metadata": {"name": "a"}, "spec": {"any": [{"thing": 1}]}, "status": {}});
        assert_eq!(pruned(&policy, &MEMORY_POLICY.schema)["spec"], policy["spec"]);
        assert_eq!(pruned(&policy, &MEMORY_POLICY.schema).get("status"), None);
    }

    #[test]
    fn reads_as_the_whole_object_does() {
        let service = json!({"metadata": {"name": "a", "labels": {"b": "c"}}, "spec": {"type": "ClusterIP",
            "ports": [{"name": "http", "port": 80.0, "targetPort": {"x": 1}}, null, "odd"]}});
        let namespace =
            json!({"metadata": {"name": "a", "labels": {"b": "c", "d": 4, "e": null}, "annotations": []}});
        for (value, kind) in [(service, &SERVICE), (namespace, &NAMESPACE)] {
            let read = |value: &Value| Tree::read(value, &kind.schema).expect("a tree").content_hash();
            assert_eq!(read(&value), read(&pruned(&value, &kind.schema)), "{value}");
        }
    }
}
