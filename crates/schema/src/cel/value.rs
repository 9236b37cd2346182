//! The values of rules. Objects and lists of the judged object are not copied.
//!
//! Each step, and each byte that is compared or made, counts in the budget.
//! Source: Kubernetes documentation, "Validation rules", types; k8s.io/apiserver, `pkg/cel/common/values.go`.

use std::cmp::Ordering;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::{Number, Value as Json};

use crate::cel::program::{Field, Literal};
use crate::crd::{FormatRule, JsonTypes, ListType, SchemaNode};
use crate::node::{Node, identity};
use memgate_primitives::budget::{BYTES_PER_STEP, Budget};
use memgate_primitives::duration;
use memgate_primitives::members::{ByKey, Members};

/// Why a rule has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It cannot be evaluated for these values.
    Error,
    /// The budget has ended.
    Stop,
}

/// A value, or none.
pub(super) type Outcome<'v> = Result<Value<'v>, Fault>;

/// How many bytes of a text count as much as a step of a rule.
const BYTES_PER_VALUE: usize = BYTES_PER_STEP / 8;

/// Counts so many values.
pub(super) fn spend(budget: &Budget<'_>, values: usize) -> Result<(), Fault> {
    spend_bytes(budget, values.saturating_mul(BYTES_PER_VALUE))
}

/// Counts so many bytes of texts.
pub(super) fn spend_bytes(budget: &Budget<'_>, bytes: usize) -> Result<(), Fault> {
    if budget.bytes(bytes) { Ok(()) } else { Err(Fault::Stop) }
}

/// A text of the object or rule, or one that a rule made.
#[derive(Debug, Clone)]
pub(super) enum Text<'v> {
    Borrowed(&'v str),
    Made(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Made(text) => text,
        }
    }
}

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Value<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'v>),
    /// Nanoseconds.
    Duration(i64),
    /// Nanoseconds since 1970.
    Timestamp(i128),
    /// A quantity in billionths.
    Quantity(i128),
    Optional(Option<Rc<Self>>),
    /// A list or object of the judged object.
    Stored(&'v Node<'v>, Option<&'v SchemaNode>),
    List(Rc<[Self]>),
    Map(Rc<[(Self, Self)]>),
}

impl<'v> Value<'v> {
    /// A text that a rule made.
    pub(super) fn made(budget: &Budget<'_>, text: impl Into<Rc<str>>) -> Outcome<'v> {
        let text = text.into();
        spend_bytes(budget, text.len())?;
        Ok(Self::Text(Text::Made(text)))
    }

    /// A list that a rule made.
    pub(super) fn list(budget: &Budget<'_>, elements: Vec<Self>) -> Outcome<'v> {
        spend(budget, elements.len())?;
        Ok(Self::List(elements.into()))
    }

    pub(super) fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    pub(super) fn written(literal: &'v Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Bool(value) => Self::Bool(*value),
            Literal::Int(value) => Self::Int(*value),
            Literal::Uint(value) => Self::Uint(*value),
            Literal::Double(value) => Self::Double(*value),
            Literal::Text(text) => Self::Text(Text::Borrowed(text)),
        }
    }

    /// A value of the judged object, of the type that its schema gives it.
    pub(super) fn stored(node: &'v Node<'v>, schema: Option<&'v SchemaNode>) -> Outcome<'v> {
        Ok(match node {
            Node::Null => Self::Null,
            Node::Boolean(value) => Self::Bool(*value),
            Node::Number(number) => stored_number(number, schema.map(|schema| schema.types)),
            Node::Text(text) => {
                match schema.and_then(|schema| schema.format).map(|format| (format.name, format.rule)) {
                    Some(("date-time", FormatRule::Text(_))) => {
                        Self::Timestamp(timestamp(text).ok_or(Fault::Error)?)
                    }
                    Some(("date", FormatRule::Text(_))) => {
                        Self::Timestamp(timestamp(&format!("{text}T00:00:00Z")).ok_or(Fault::Error)?)
                    }
                    Some(("duration", FormatRule::Text(_))) => {
                        Self::Duration(duration::nanoseconds(text).ok_or(Fault::Error)?)
                    }
                    _ => Self::Text(Text::Borrowed(text)),
                }
            }
            Node::Raw(_) | Node::List(_) | Node::Map(_) => Self::Stored(node, schema),
        })
    }

    /// A field, if it is there.
    pub(super) fn field(&self, field: &Field) -> Result<Option<Self>, Fault> {
        match self {
            Self::Stored(Node::Map(_), Some(schema)) if !schema.object.properties.is_empty() => {
                self.entry(&field.property)
            }
            _ => self.entry(&field.written),
        }
    }

    /// The value of a key that is a text, if it is there.
    fn entry(&self, name: &str) -> Result<Option<Self>, Fault> {
        match self {
            Self::Stored(node @ Node::Map(_), schema) => {
                let schema = schema.and_then(|schema| schema.object.field(name));
                node.get(name).map(|node| Self::stored(node, schema)).transpose()
            }
            Self::Map(entries) => {
                let is_key = |key: &Self| matches!(key, Self::Text(text) if **text == *name);
                Ok(entries.iter().find(|(key, _)| is_key(key)).map(|(_, value)| value.clone()))
            }
            _ => Err(Fault::Error),
        }
    }

    /// An element of a list, or the value of a key, if it is there.
    pub(super) fn at(&self, budget: &Budget<'_>, index: &Self) -> Result<Option<Self>, Fault> {
        match (self, index) {
            (Self::Stored(Node::Map(_), _), Self::Text(name)) => self.entry(name),
            (Self::Map(entries), _) => {
                for (key, value) in entries.iter() {
                    if equal(budget, key, index)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
            (Self::List(_) | Self::Stored(Node::List(_), _), _) => {
                let index = match index {
                    Self::Int(index) => usize::try_from(*index).ok(),
                    Self::Uint(index) => usize::try_from(*index).ok(),
                    _ => return Err(Fault::Error),
                };
                index.map_or(Ok(None), |index| Ok(self.nth(index)?.map(|(_, value)| value)))
            }
            _ => Err(Fault::Error),
        }
    }

    /// How many elements or entries there are; `None` for any other value.
    pub(super) fn len(&self) -> Option<usize> {
        match self {
            Self::Stored(Node::List(elements), _) => Some(elements.len()),
            Self::Stored(Node::Map(fields), _) => Some(fields.len()),
            Self::List(elements) => Some(elements.len()),
            Self::Map(entries) => Some(entries.len()),
            _ => None,
        }
    }

    pub(super) const fn is_map(&self) -> bool {
        matches!(self, Self::Map(_) | Self::Stored(Node::Map(_), _))
    }

    /// The element of this index with its index, or the entry with its key.
    pub(super) fn nth(&self, index: usize) -> Result<Option<(Self, Self)>, Fault> {
        let with_index = |value| (i64::try_from(index).map_or(Self::Null, Self::Int), value);
        Ok(match self {
            Self::Stored(Node::List(elements), schema) => {
                let schema = schema.and_then(|schema| schema.list.items.as_deref());
                elements.get(index).map(|node| Self::stored(node, schema)).transpose()?.map(with_index)
            }
            Self::Stored(Node::Map(fields), schema) => {
                let Some((key, node)) = fields.get(index) else { return Ok(None) };
                let schema = schema.and_then(|schema| schema.object.field(key));
                Some((Self::Text(Text::Borrowed(key)), Self::stored(node, schema)?))
            }
            Self::List(elements) => elements.get(index).cloned().map(with_index),
            Self::Map(entries) => entries.get(index).cloned(),
            _ => None,
        })
    }

    /// The elements of a list.
    pub(super) fn elements(&self, budget: &Budget<'_>) -> Result<Vec<Self>, Fault> {
        let count = self.len().filter(|_| !self.is_map()).ok_or(Fault::Error)?;
        spend(budget, count)?;
        let element = |index| Ok(self.nth(index)?.ok_or(Fault::Error)?.1);
        (0..count).map(element).collect()
    }

    /// The number, and whether it is whole.
    const fn number(&self) -> Option<Numeric> {
        match self {
            Self::Int(value) => Some(Numeric::Whole(*value as i128)),
            Self::Uint(value) => Some(Numeric::Whole(*value as i128)),
            Self::Double(value) => Some(Numeric::Double(*value)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Numeric {
    Whole(i128),
    Double(f64),
}

impl Numeric {
    #[expect(clippy::cast_precision_loss, reason = "a whole number is compared with a double as CEL does")]
    const fn double(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Double(value) => value,
        }
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(one), Self::Whole(two)) => Some(one.cmp(&two)),
            _ => self.double().partial_cmp(&other.double()),
        }
    }
}

fn stored_number<'v>(number: &Number, types: Option<JsonTypes>) -> Value<'v> {
    let double = || Value::Double(number.as_f64().unwrap_or_default());
    match (number.as_i64(), types) {
        (Some(whole), Some(JsonTypes::Number)) => Value::Double(number.as_f64().unwrap_or(whole as f64)),
        (Some(whole), _) => Value::Int(whole),
        // 3.0 is an integer for an apiserver.
        (None, Some(JsonTypes::Integer | JsonTypes::IntOrString)) => {
            number.as_f64().map_or_else(double, |value| Value::Int(value as i64))
        }
        (None, _) => double(),
    }
}

/// A time of RFC 3339 in nanoseconds since 1970.
pub(super) fn timestamp(text: &str) -> Option<i128> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_nanosecond)
}

/// The order of two values.
pub(super) fn compare(budget: &Budget<'_>, one: &Value<'_>, two: &Value<'_>) -> Result<Ordering, Fault> {
    let order = match (one, two) {
        (Value::Text(one), Value::Text(two)) => {
            spend_bytes(budget, one.len().min(two.len()))?;
            Some((**one).cmp(&**two))
        }
        (Value::Bool(one), Value::Bool(two)) => Some(one.cmp(two)),
        (Value::Duration(one), Value::Duration(two)) => Some(one.cmp(two)),
        (Value::Timestamp(one), Value::Timestamp(two)) | (Value::Quantity(one), Value::Quantity(two)) => {
            Some(one.cmp(two))
        }
        _ => one.number().zip(two.number()).and_then(|(one, two)| one.compare(two)),
    };
    order.ok_or(Fault::Error)
}

/// Whether two values are the same. Values of different types are not.
pub(super) fn equal(budget: &Budget<'_>, one: &Value<'_>, two: &Value<'_>) -> Result<bool, Fault> {
    spend(budget, 1)?;
    match (one, two) {
        (Value::Null, Value::Null) | (Value::Optional(None), Value::Optional(None)) => Ok(true),
        (Value::Optional(Some(one)), Value::Optional(Some(two))) => equal(budget, one, two),
        (Value::Stored(one, schema), Value::Stored(two, _)) => equal_nodes(budget, one, two, *schema),
        _ if one.len().is_some() && one.len() == two.len() && one.is_map() == two.is_map() => {
            equal_entries(budget, one, two)
        }
        _ => Ok(compare(budget, one, two).or_else(|fault| match fault {
            Fault::Error => Ok(Ordering::Less),
            Fault::Stop => Err(fault),
        })? == Ordering::Equal),
    }
}

/// Whether lists or maps of the same length have the same entries.
fn equal_entries(budget: &Budget<'_>, one: &Value<'_>, two: &Value<'_>) -> Result<bool, Fault> {
    let mut index = 0;
    while let Some((key, value)) = one.nth(index)? {
        let other =
            if one.is_map() { two.at(budget, &key)? } else { two.nth(index)?.map(|(_, value)| value) };
        let is_same = other.map_or(Ok(false), |other| equal(budget, &value, &other))?;
        if !is_same {
            return Ok(false);
        }
        index += 1;
    }
    Ok(true)
}

/// Whether two values of the judged object are the same. The order of a set does not count, nor that of a list with keys.
fn equal_nodes(
    budget: &Budget<'_>,
    one: &Node<'_>,
    two: &Node<'_>,
    schema: Option<&SchemaNode>,
) -> Result<bool, Fault> {
    spend(budget, 1)?;
    let all =
        |mut pairs: Box<dyn Iterator<Item = (&Node<'_>, Option<&Node<'_>>, Option<&SchemaNode>)> + '_>| {
            pairs.try_fold(true, |same, (one, two, schema)| match two {
                Some(two) if same => equal_nodes(budget, one, two, schema),
                _ => Ok(false),
            })
        };
    match (one, two) {
        (Node::Text(one), Node::Text(two)) => {
            spend_bytes(budget, one.len().min(two.len()))?;
            Ok(one == two)
        }
        (Node::Number(one), Node::Number(two)) => {
            let whole = one.is_i64() && two.is_i64();
            Ok(one == two || !whole && one.as_f64() == two.as_f64())
        }
        (Node::Raw(one), Node::Raw(two)) => {
            spend_bytes(budget, one.len() + two.len())?;
            let read = |text| serde_json::from_str::<Json>(text).ok();
            Ok(one == two || read(one).is_some_and(|one| read(two) == Some(one)))
        }
        (Node::Map(fields), Node::Map(others)) => {
            if fields.len() != others.len() {
                return Ok(false);
            }
            let of = |key: &str| schema.and_then(|schema| schema.object.field(key));
            all(Box::new(fields.iter().map(|(key, value)| (value, two.get(key), of(key)))))
        }
        (one @ Node::List(elements), two @ Node::List(others)) => {
            if elements.len() != others.len() {
                return Ok(false);
            }
            let items = schema.and_then(|schema| schema.list.items.as_deref());
            match schema.map_or(&ListType::Atomic, |schema| &schema.list.list_type) {
                ListType::Atomic => {
                    all(Box::new(elements.iter().zip(others).map(|(one, two)| (one, Some(two), items))))
                }
                ListType::Set => {
                    spend_node(budget, one)?;
                    spend_node(budget, two)?;
                    let others: Members<_> = others.iter().collect();
                    Ok(elements.iter().all(|element| others.contains(element)))
                }
                ListType::Map(keys) => {
                    spend_node(budget, one)?;
                    spend_node(budget, two)?;
                    let key = |element| identity(element, Some(keys));
                    let others: ByKey<_, _> = others.iter().map(|other| (key(other), other)).collect();
                    all(Box::new(elements.iter().map(|one| (one, others.get(&key(one)).copied(), items))))
                }
            }
        }
        _ => Ok(one == two),
    }
}

/// Counts a value and all that is in it.
fn spend_node(budget: &Budget<'_>, node: &Node<'_>) -> Result<(), Fault> {
    match node {
        Node::Text(text) => spend_bytes(budget, text.len())?,
        Node::Raw(text) => spend_bytes(budget, text.len())?,
        Node::Null | Node::Boolean(_) | Node::Number(_) | Node::List(_) | Node::Map(_) => {}
    }
    spend(budget, 1)?;
    node.elements()
        .iter()
        .chain(node.fields().iter().map(|(_, value)| value))
        .try_for_each(|node| spend_node(budget, node))
}
