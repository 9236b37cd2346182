//! The values of rules.
//! Source: Kubernetes documentation, "Validation rules", types and escaping; k8s.io/apiserver,
//! `pkg/cel/common/values.go`.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube_cel::cel::objects::{Key, Map, OptionalValue};
use kube_cel::cel::{Value, functions, to_value};
use serde_json::{Number, Value as Json};

use crate::crd::{FormatRule, JsonTypes, ListType, SchemaNode};
use crate::node::{Node, identity};
use crate::program::names::{escaped, unescaped};
use crate::violation::may_hold_credential;
use memgate_primitives::members::ByKey;

/// How many bytes of a text weigh as much as a value.
pub(super) const BYTES_PER_VALUE: usize = 16;

/// How many times as long as a character of a key its [escape](escaped) is.
const BYTES_OF_ESCAPE: usize = 9;

/// How many values there are, at a place and below.
pub(super) fn weight(node: &Node<'_>) -> u64 {
    let plain = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let text = match node {
        Node::Text(text) => text.len(),
        Node::Raw(text) => text.len() * BYTES_PER_VALUE,
        Node::Map(fields) => {
            fields.iter().map(|(key, _)| key.len() * if plain(key) { 1 } else { BYTES_OF_ESCAPE }).sum()
        }
        Node::Null | Node::Boolean(_) | Node::Number(_) | Node::List(_) => 0,
    };
    let below = node.elements().iter().chain(node.fields().iter().map(|(_, value)| value));
    1 + (text / BYTES_PER_VALUE) as u64 + below.map(weight).sum::<u64>()
}

/// A value as a rule sees it, of the type that its schema gives it. The order of a set, or of a list with keys, means
/// nothing: where `like` has the same elements, they stand as they do there.
pub(super) fn seen(node: &Node<'_>, schema: Option<&SchemaNode>, like: Option<&Node<'_>>) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Boolean(value) => Value::Bool(*value),
        Node::Number(number) => seen_number(number, schema.map(|schema| schema.types)),
        Node::Text(text) => seen_text(text, schema),
        Node::Raw(text) => serde_json::from_str::<Json>(text).map_or(Value::Null, seen_json),
        Node::List(_) => {
            let items = schema.and_then(|schema| schema.list.items.as_deref());
            let elements = ordered(node, schema, like).into_iter().enumerate();
            let like = |index: usize| like.and_then(|like| like.elements().get(index));
            Value::List(Arc::new(
                elements.map(|(index, element)| seen(element, items, like(index))).collect(),
            ))
        }
        Node::Map(fields) => {
            let has_names = schema.is_some_and(|schema| !schema.object.properties.is_empty());
            let entries = fields.iter().map(|(key, value)| {
                let below = schema.and_then(|schema| schema.object.field(key));
                let name = if has_names { escaped(key) } else { key.to_string() };
                let like = like.and_then(|like| like.get(key));
                (Key::String(Arc::new(name)), seen(value, below, like))
            });
            Value::Map(Map { map: Arc::new(entries.collect()) })
        }
    }
}

/// A value without schema.
fn seen_json(value: Json) -> Value {
    match value {
        Json::Number(number) => seen_number(&number, None),
        Json::Array(list) => Value::List(Arc::new(list.into_iter().map(seen_json).collect())),
        Json::Object(fields) => {
            let entries =
                fields.into_iter().map(|(key, value)| (Key::String(Arc::new(key)), seen_json(value)));
            Value::Map(Map { map: Arc::new(entries.collect()) })
        }
        other => to_value(other).unwrap_or(Value::Null),
    }
}

/// The elements of a list: of a set, or a list with keys, those that another list has in the order of that one.
fn ordered<'n>(
    list: &'n Node<'n>,
    schema: Option<&SchemaNode>,
    like: Option<&'n Node<'n>>,
) -> Vec<&'n Node<'n>> {
    let mut elements: Vec<_> = list.elements().iter().collect();
    let keys = match schema.map(|schema| &schema.list.list_type) {
        Some(ListType::Set) => None,
        Some(ListType::Map(keys)) => Some(keys.as_slice()),
        Some(ListType::Atomic) | None => return elements,
    };
    let others = like.map_or(&[][..], Node::elements).iter().enumerate();
    let places: ByKey<_, _> = others.map(|(index, other)| (identity(other, keys), index)).collect();
    elements
        .sort_by_cached_key(|element| places.get(&identity(element, keys)).copied().unwrap_or(usize::MAX));
    elements
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "3.0 is an integer for an apiserver, and has no more digits"
)]
fn seen_number(number: &Number, types: Option<JsonTypes>) -> Value {
    let double = number.as_f64().unwrap_or_default();
    match (number.as_i64(), types) {
        (Some(whole), Some(types)) if types != JsonTypes::Number => Value::Int(whole),
        (Some(whole), None) => Value::Int(whole),
        (None, Some(JsonTypes::Integer | JsonTypes::IntOrString)) => Value::Int(double as i64),
        _ => Value::Float(double),
    }
}

/// A text, or the time or duration that it stands for.
fn seen_text(text: &str, schema: Option<&SchemaNode>) -> Value {
    let format = schema.and_then(|schema| schema.format);
    let name = format.filter(|format| matches!(format.rule, FormatRule::Text(_))).map(|format| format.name);
    let read = match name {
        Some("date-time") => functions::timestamp(Arc::new(text.to_owned())),
        Some("date") => functions::timestamp(Arc::new(format!("{text}T00:00:00Z"))),
        Some("duration") => functions::duration(Arc::new(text.to_owned())),
        Some("byte") => {
            return BASE64_STANDARD.decode(text).map_or(Value::Null, |bytes| Value::Bytes(Arc::new(bytes)));
        }
        _ => Ok(Value::String(Arc::new(text.to_owned()))),
    };
    read.unwrap_or(Value::Null)
}

/// The same value without the texts of fields that may hold credentials; `name` is the field that it is.
pub(super) fn masked(value: Value, name: &str) -> Value {
    let is_hidden = may_hold_credential(name);
    match value {
        Value::String(_) | Value::Bytes(_) if is_hidden => "***".into(),
        Value::List(list) => {
            Value::List(Arc::new(list.iter().map(|element| masked(element.clone(), name)).collect()))
        }
        Value::Map(Map { map }) => {
            let entries = map.iter().map(|(key, value)| {
                let field = unescaped(&key.to_string());
                let field = if is_hidden && field != "name" { name } else { &field };
                (key.clone(), masked(value.clone(), field))
            });
            Value::Map(Map { map: Arc::new(entries.collect()) })
        }
        Value::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>().map(OptionalValue::value) {
            Some(Some(value)) => Value::Opaque(Arc::new(OptionalValue::of(masked(value.clone(), name)))),
            _ => Value::Opaque(opaque),
        },
        other => other,
    }
}
