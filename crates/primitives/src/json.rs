//! Reads JSON of any form: one visitor for several readers. Each says what it makes of a scalar, a list and an object.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// A value without others in it.
#[derive(Debug, Clone)]
pub enum Scalar<'de> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number.
    Number(Number),
    /// A string, borrowed unless it holds an escape.
    Text(Cow<'de, str>),
}

impl From<Scalar<'_>> for Value {
    fn from(scalar: Scalar<'_>) -> Self {
        match scalar {
            Scalar::Null => Self::Null,
            Scalar::Boolean(value) => value.into(),
            Scalar::Number(number) => number.into(),
            Scalar::Text(text) => text.into(),
        }
    }
}

/// Reads the value at one place.
pub trait Reader<'de>: Sized {
    /// What it makes of the value.
    type Value;

    /// Takes a scalar.
    ///
    /// # Errors
    /// When the value is refused.
    fn scalar<E: Error>(self, scalar: Scalar<'de>) -> Result<Self::Value, E>;

    /// Reads a list to its end.
    ///
    /// # Errors
    /// Those of the list; when the value is refused.
    fn list<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error>;

    /// Reads an object to its end.
    ///
    /// # Errors
    /// Those of the object; when the value is refused.
    fn object<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error>;

    /// Reads any value.
    ///
    /// # Errors
    /// Those of the deserializer; when the value is refused.
    fn read<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(Seed(self))
    }
}

/// Reads a whole text.
///
/// # Errors
/// When the text is not JSON, or the value is refused.
pub fn parse<'de, S: DeserializeSeed<'de>>(text: &'de str, seed: S) -> serde_json::Result<S::Value> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut json)?;
    json.end().map(|()| value)
}

/// A reader as serde calls it.
#[derive(Debug, Clone, Copy)]
pub struct Seed<R>(pub R);

impl<'de, R: Reader<'de>> DeserializeSeed<'de> for Seed<R> {
    type Value = R::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<R::Value, D::Error> {
        self.0.read(deserializer)
    }
}

impl<'de, R: Reader<'de>> Visitor<'de> for Seed<R> {
    type Value = R::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    #[inline]
    fn visit_unit<E: Error>(self) -> Result<R::Value, E> {
        self.0.scalar(Scalar::Null)
    }

    #[inline]
    fn visit_bool<E: Error>(self, value: bool) -> Result<R::Value, E> {
        self.0.scalar(Scalar::Boolean(value))
    }

    #[inline]
    fn visit_i64<E: Error>(self, value: i64) -> Result<R::Value, E> {
        self.0.scalar(Scalar::Number(value.into()))
    }

    #[inline]
    fn visit_u64<E: Error>(self, value: u64) -> Result<R::Value, E> {
        self.0.scalar(Scalar::Number(value.into()))
    }

    #[inline]
    fn visit_f64<E: Error>(self, value: f64) -> Result<R::Value, E> {
        self.0.scalar(Number::from_f64(value).map_or(Scalar::Null, Scalar::Number))
    }

    #[inline]
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<R::Value, E> {
        self.0.scalar(Scalar::Text(text.into()))
    }

    #[inline]
    fn visit_str<E: Error>(self, text: &str) -> Result<R::Value, E> {
        self.0.scalar(Scalar::Text(text.to_owned().into()))
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<R::Value, A::Error> {
        self.0.list(list)
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<R::Value, A::Error> {
        self.0.object(object)
    }
}
