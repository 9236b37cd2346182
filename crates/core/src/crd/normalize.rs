//! An object as it would be stored: without unknown fields, with `null` as nothing, and with defaults.
//! Source: k8s.io/apiextensions-apiserver, `schema/pruning` and `schema/defaulting`.

use serde_json::{Map, Value};

use crate::model::crd::SchemaNode;

/// What every Kubernetes object has, whatever its schema says.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes a field; the others keep their order.
pub(super) fn remove(object: &mut Value, field: &str) {
    if let Value::Object(map) = object {
        map.retain(|key, _| key != field);
    }
}

/// Prunes and defaults a value. The recursion is bounded by the depth of the schema.
pub(super) fn normalize(value: &mut Value, schema: &SchemaNode) {
    match value {
        Value::Object(map) => normalize_object(map, schema),
        Value::Array(elements) => {
            let Some(items) = &schema.list.items else {
                // Elements of which nothing is known keep no fields, unless all are kept.
                if !schema.object.preserves_unknown {
                    elements.iter_mut().for_each(clear);
                }
                return;
            };
            for element in elements {
                if element.is_null()
                    && !items.nullable
                    && let Some(default) = &items.default
                {
                    element.clone_from(default);
                }
                normalize(element, items);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn clear(element: &mut Value) {
    match element {
        Value::Object(map) => map.clear(),
        Value::Array(elements) => elements.iter_mut().for_each(clear),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn normalize_object(map: &mut Map<String, Value>, schema: &SchemaNode) {
    let rules = &schema.object;
    map.retain(|key, value| {
        let meta = rules.embedded && META_FIELDS.contains(&key.as_str());
        match rules.field(key) {
            Some(field) => !value.is_null() || field.nullable || field.default.is_some(),
            None => rules.preserves_unknown || meta,
        }
    });
    for (name, field) in &rules.properties {
        let Some(default) = &field.default else { continue };
        match map.get_mut(name) {
            Some(value) if value.is_null() && !field.nullable => value.clone_from(default),
            Some(_) => {}
            None => {
                map.insert(name.clone(), default.clone());
            }
        }
    }
    for (key, value) in map.iter_mut() {
        if let Some(field) = rules.field(key) {
            if value.is_null()
                && !field.nullable
                && let Some(default) = &field.default
            {
                value.clone_from(default);
            }
            normalize(value, field);
        }
    }
}
