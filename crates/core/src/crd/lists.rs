//! Lists whose elements must differ: sets, and maps by some of their fields.
//! Source: k8s.io/apiextensions-apiserver, `schema/listtype`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::crd::equal::canonical;
use crate::crd::path::Path;
use crate::crd::scalar;
use crate::model::crd::{ListType, SchemaNode};
use crate::model::violation::{BrokenRule, Violation};

/// Every element that occurred before. None counts while the stored object has some.
pub(super) fn check(object: &Value, schema: &SchemaNode, old: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    check_value(object, schema, Path::Root, &mut found);
    if !found.is_empty()
        && let Some(old) = old
    {
        let mut stored = Vec::new();
        check_value(old, schema, Path::Root, &mut stored);
        for violation in &mut found {
            violation.stored = !stored.is_empty();
        }
    }
    found
}

fn check_value(value: &Value, schema: &SchemaNode, here: Path<'_>, found: &mut Vec<Violation>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if let Some(schema) = schema.object.field(key) {
                    check_value(value, schema, Path::Key(&here, key), found);
                }
            }
        }
        Value::Array(elements) => {
            match &schema.list.list_type {
                ListType::Atomic => {}
                ListType::Set => {
                    let values = elements.iter().map(|element| (canonical(element), scalar::shown(element)));
                    report_repeated(values, here, found);
                }
                ListType::Map(keys) => check_map(elements, keys, here, found),
            }
            let Some(items) = &schema.list.items else { return };
            for (index, element) in elements.iter().enumerate() {
                check_value(element, items, Path::Index(&here, index), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_map(elements: &[Value], keys: &[String], here: Path<'_>, found: &mut Vec<Violation>) {
    let is_good = |element: &Value| element.is_null() || element.is_object();
    if let Some((index, element)) = elements.iter().enumerate().find(|(_, element)| !is_good(element)) {
        let detail = "must be an object for an array of list-type map".to_owned();
        let rule = BrokenRule::Invalid { value: scalar::shown(element), detail, about_field: false };
        found.push(Violation::new(Path::Index(&here, index).pointer(), rule));
        return;
    }
    let shown = |element: &Value| scalar::shown(&key_of(element, keys));
    report_repeated(elements.iter().map(|element| (map_key(element, keys), shown(element))), here, found);
}

/// What tells an element of a map apart, as a text.
pub(super) fn map_key(element: &Value, keys: &[String]) -> String {
    canonical(&key_of(element, keys))
}

fn key_of(element: &Value, keys: &[String]) -> Value {
    let mut key = json!({});
    for name in keys {
        if let (Some(value), Value::Object(map)) = (element.get(name), &mut key) {
            map.insert(name.clone(), value.clone());
        }
    }
    key
}

/// Reports the second of equal elements, and no third.
fn report_repeated(
    elements: impl Iterator<Item = (String, String)>,
    here: Path<'_>,
    found: &mut Vec<Violation>,
) {
    let mut times = BTreeMap::new();
    for (index, (key, shown)) in elements.enumerate() {
        let times = times.entry(key).or_insert(0_usize);
        *times += 1;
        if *times == 2 {
            let pointer = Path::Index(&here, index).pointer();
            found.push(Violation::new(pointer, BrokenRule::Duplicate(shown)));
        }
    }
}
