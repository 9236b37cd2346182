//! An object as it would be stored. Texts without escapes stay in the sent text.

use std::borrow::Cow;

use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::crd::SchemaNode;
use memgate_primitives::pointer::Pointer;

/// An object, or what of it a schema knows.
#[derive(Debug)]
pub struct Document<'d> {
    pub(super) root: Node<'d>,
    /// The length of the sent text in bytes.
    pub(super) bytes: usize,
    /// The fields that the schema does not have, in document order.
    pub(super) unknown: Vec<UnknownField<'d>>,
    /// How many more there are.
    pub(super) more_unknown: usize,
}

/// A field that the schema does not have: an apiserver drops it.
#[derive(Debug)]
pub struct UnknownField<'d> {
    /// The field.
    pub pointer: Pointer,
    /// The schema of the object in which it stands.
    pub holder: &'d SchemaNode,
}

impl<'d> Document<'d> {
    /// The first fields that the schema does not have, in document order; nothing below them, in metadata or in a status
    /// that is dropped.
    pub fn unknown_fields(&self) -> &[UnknownField<'d>] {
        &self.unknown
    }

    /// How many more there are.
    pub const fn more_unknown_fields(&self) -> usize {
        self.more_unknown
    }
}

/// One value. Two are equal if an apiserver takes them for the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Node<'d> {
    Null,
    Boolean(bool),
    Number(Number),
    Text(Cow<'d, str>),
    /// A value without a schema, as it was written.
    Raw(&'d str),
    List(Vec<Self>),
    /// The fields, sorted by name, each name once.
    Map(Vec<(Cow<'d, str>, Self)>),
}

impl<'d> Node<'d> {
    /// Whether it is `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::Raw("null"))
    }

    /// The string, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of a list; nothing for any other value.
    pub(super) fn elements(&self) -> &[Self] {
        match self {
            Self::List(elements) => elements,
            _ => &[],
        }
    }

    /// The fields of an object; nothing for any other value.
    pub(super) fn fields(&self) -> &[(Cow<'d, str>, Self)] {
        match self {
            Self::Map(fields) => fields,
            _ => &[],
        }
    }

    /// A field of an object.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let fields = self.fields();
        let at = fields.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        fields.get(at).map(|(_, value)| value)
    }

    /// The name of the JSON type, where whole numbers have their own.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Number(number) if number.is_i64() => "integer",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) => "object",
            Self::Raw(text) => match text.as_bytes().first() {
                Some(b'{') => "object",
                Some(b'[') => "array",
                Some(b'"') => "string",
                Some(b't' | b'f') => "boolean",
                Some(b'n') | None => "null",
                Some(_) if text.parse::<i64>().is_ok() => "integer",
                Some(_) => "number",
            },
        }
    }

    /// Whether it is a value of a definition; a number is what it stands for, however it is written.
    pub(super) fn equals(&self, wanted: &Value) -> bool {
        match (self, wanted) {
            (Self::Number(one), Value::Number(two)) => one == two || one.as_f64() == two.as_f64(),
            (Self::Text(one), Value::String(two)) => one == two,
            (Self::Boolean(one), Value::Bool(two)) => one == two,
            (Self::Null, Value::Null) => true,
            (Self::List(list), Value::Array(wanted)) => {
                list.len() == wanted.len() && list.iter().zip(wanted).all(|(one, two)| one.equals(two))
            }
            (Self::Map(fields), Value::Object(wanted)) => {
                let found = |(key, value): &(Cow<'_, str>, Self)| {
                    wanted.get(&**key).is_some_and(|wanted| value.equals(wanted))
                };
                fields.len() == wanted.len() && fields.iter().all(found)
            }
            _ => false,
        }
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Raw(text) => {
                serde_json::from_str::<&RawValue>(text).map_err(S::Error::custom)?.serialize(serializer)
            }
            Self::List(elements) => serializer.collect_seq(elements),
            Self::Map(fields) => serializer.collect_map(fields.iter().map(|(key, value)| (key, value))),
        }
    }
}

/// What tells an element of a list apart: all of it, or the values of some fields.
pub(super) fn identity<'d>(element: &'d Node<'d>, names: Option<&[String]>) -> Vec<Option<&'d Node<'d>>> {
    match names {
        None => vec![Some(element)],
        Some(names) => names.iter().map(|name| element.get(name)).collect(),
    }
}
