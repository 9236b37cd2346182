//! The walk through an object and its schema.
//! Source: k8s.io/kube-openapi, `validation/validate`, and for `stored` k8s.io/apiextensions-apiserver,
//! `apiserver/validation/ratcheting.go`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::crd::equal::{canonical, equal};
use crate::crd::lists::map_key;
use crate::crd::path::Path;
use crate::crd::scalar;
use crate::model::crd::{JsonTypes, ListRules, ListType, ObjectRules, SchemaNode};
use crate::model::violation::{BrokenRule, Violation};

/// Everything that the schema refuses, as the document has it. `old` is the stored object.
pub(super) fn check(object: &Value, schema: &SchemaNode, old: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    check_value(object, schema, old, Path::Root, &mut found);
    found
}

/// Checks one value; the recursion is bounded by the depth of the schema. What the stored object has too,
/// in the same place and with the same content, is marked.
pub(super) fn check_value(
    value: &Value,
    schema: &SchemaNode,
    old: Option<&Value>,
    here: Path<'_>,
    found: &mut Vec<Violation>,
) {
    let before = found.len();
    check_new_value(value, schema, old, here, found);
    if found.len() > before && old == Some(value) {
        found.iter_mut().skip(before).for_each(|violation| violation.stored = true);
    }
}

fn check_new_value(
    value: &Value,
    schema: &SchemaNode,
    old: Option<&Value>,
    here: Path<'_>,
    found: &mut Vec<Violation>,
) {
    let mut broken = |rule| found.push(Violation::new(here.pointer(), rule));
    if value.is_null() && schema.nullable || schema.types == JsonTypes::Any && value.is_null() {
        if !schema.allowed.is_empty() {
            broken(unsupported(value, &schema.allowed));
        }
        return;
    }
    if let Some(rule) = scalar::wrong_type(value, schema) {
        return broken(rule);
    }
    let is_allowed = |value: &Value| schema.allowed.iter().any(|allowed| equal(allowed, value));
    let own = match value {
        Value::String(text) => scalar::text(text, schema),
        Value::Number(number) => scalar::number(number, schema),
        _ => None,
    };
    if let Some(rule) = own {
        broken(rule);
    } else if !schema.allowed.is_empty() && !is_allowed(value) {
        broken(unsupported(value, &schema.allowed));
    } else if let Some(detail) = wrong_alternative(value, schema, here) {
        broken(BrokenRule::Invalid { value: String::new(), detail, about_field: false });
    }
    for alternative in &schema.all_of {
        check_value(value, alternative, old, here, found);
    }
    match value {
        Value::Array(elements) => check_list(elements, &schema.list, old, here, found),
        Value::Object(map) => check_object(map, &schema.object, old, here, found),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn unsupported(value: &Value, allowed: &[Value]) -> BrokenRule {
    /// More than any enum that people choose from. Each wrong element brings these along.
    const MAX_SHOWN: usize = 100;
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    BrokenRule::Unsupported {
        value: scalar::shown(value),
        supported: allowed.iter().take(MAX_SHOWN).map(shown).collect(),
        more: allowed.len().saturating_sub(MAX_SHOWN),
    }
}

/// What is wrong with the choices that a schema offers.
fn wrong_alternative(value: &Value, schema: &SchemaNode, here: Path<'_>) -> Option<String> {
    let holds = |alternative: &&SchemaNode| {
        let mut found = Vec::new();
        check_value(value, alternative, None, here, &mut found);
        found.is_empty()
    };
    let field = || here.pointer().field();
    if !schema.any_of.is_empty() && !schema.any_of.iter().any(|alternative| holds(&alternative)) {
        return Some(format!("{:?} must validate at least one schema (anyOf)", field()));
    }
    if !schema.one_of.is_empty() {
        let valid = schema.one_of.iter().filter(holds).count();
        let why = match valid {
            1 => None,
            0 => Some("Found none valid".to_owned()),
            many => Some(format!("Found {many} valid alternatives")),
        };
        if let Some(why) = why {
            return Some(format!("{:?} must validate one and only one schema (oneOf). {why}", field()));
        }
    }
    let forbidden = schema.not.as_deref().is_some_and(|not| holds(&not));
    forbidden.then(|| format!("{:?} must not validate the schema (not)", field()))
}

fn check_list(
    elements: &[Value],
    rules: &ListRules,
    old: Option<&Value>,
    here: Path<'_>,
    found: &mut Vec<Violation>,
) {
    let count = elements.len();
    let too_few = rules.min.filter(|min| (count as u64) < *min);
    let too_many = rules.max.filter(|max| count as u64 > *max);
    let duplicates = rules.unique && {
        let mut seen = BTreeSet::new();
        !elements.iter().all(|element| seen.insert(canonical(element)))
    };
    let rule = too_few
        .map(|min| about_count(count, format!("should have at least {min} items")))
        .or_else(|| too_many.map(|max| BrokenRule::TooMany { count, max }))
        .or_else(|| duplicates.then(|| about_field("shouldn't contain duplicates")));
    found.extend(rule.map(|rule| Violation::new(here.pointer(), rule)));
    let Some(items) = &rules.items else { return };
    let old = Stored::of(old, &rules.list_type);
    for (index, element) in elements.iter().enumerate() {
        check_value(element, items, old.get(element), Path::Index(&here, index), found);
    }
}

/// The elements of the stored list by their keys; of a list without keys none is known again.
struct Stored<'v> {
    keys: &'v [String],
    elements: BTreeMap<String, &'v Value>,
}

impl<'v> Stored<'v> {
    fn of(old: Option<&'v Value>, list_type: &'v ListType) -> Self {
        let (ListType::Map(keys), Some(Value::Array(elements))) = (list_type, old) else {
            return Self { keys: &[], elements: BTreeMap::new() };
        };
        let elements = elements.iter().map(|element| (map_key(element, keys), element)).collect();
        Self { keys, elements }
    }

    fn get(&self, element: &Value) -> Option<&'v Value> {
        if self.elements.is_empty() {
            return None;
        }
        self.elements.get(&map_key(element, self.keys)).copied()
    }
}

fn check_object(
    map: &Map<String, Value>,
    rules: &ObjectRules,
    old: Option<&Value>,
    here: Path<'_>,
    found: &mut Vec<Violation>,
) {
    let count = map.len();
    let too_few = rules.min.filter(|min| (count as u64) < *min);
    let too_many = rules.max.filter(|max| count as u64 > *max);
    let rule = too_few
        .map(|min| about_count(count, format!("should have at least {min} properties")))
        .or_else(|| too_many.map(|max| BrokenRule::TooMany { count, max }));
    found.extend(rule.map(|rule| Violation::new(here.pointer(), rule)));
    for (key, value) in map {
        if let Some(schema) = rules.field(key) {
            let old = old.and_then(|old| old.get(key));
            check_value(value, schema, old, Path::Key(&here, key), found);
        }
    }
    let embedded: &[&str] = if rules.embedded { &["apiVersion", "kind"] } else { &[] };
    let required = rules.required.iter().map(String::as_str).chain(embedded.iter().copied());
    let missing = required.filter(|name| !map.contains_key(*name));
    found.extend(
        missing.map(|name| Violation::new(Path::Key(&here, name).pointer(), BrokenRule::Required(""))),
    );
}

fn about_count(count: usize, detail: String) -> BrokenRule {
    BrokenRule::Invalid { value: count.to_string(), detail, about_field: true }
}

fn about_field(detail: &str) -> BrokenRule {
    BrokenRule::Invalid { value: "\"\"".to_owned(), detail: detail.to_owned(), about_field: true }
}
