//! Values as Go compares them, and the hashes by which equal ones are found among many.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use crate::cursor::{Content, Cursor, Fields};

/// Whether two values are the same, however their fields are ordered.
pub(super) fn same(one: Cursor<'_>, two: Cursor<'_>) -> bool {
    if one.raw().is_some() || two.raw().is_some() {
        return one.raw() == two.raw();
    }
    match (one.content(), two.content()) {
        (Content::Null, Content::Null) => true,
        (Content::Boolean(one), Content::Boolean(two)) => one == two,
        (Content::Number(one), Content::Number(two)) => one == two,
        (Content::Text(one), Content::Text(two)) => one == two,
        (Content::List, Content::List) => {
            one.count() == two.count() && one.elements().zip(two.elements()).all(|(one, two)| same(one, two))
        }
        (Content::Map, Content::Map) => one.count() == two.count() && same_fields(one, two),
        _ => false,
    }
}

/// Whether two objects with as many fields have the same ones.
fn same_fields(one: Cursor<'_>, two: Cursor<'_>) -> bool {
    let mut fields = one.fields().zip(two.fields());
    // Mostly they stand in the same order.
    let unordered = loop {
        match fields.next() {
            None => return true,
            Some(((one, _), (two, _))) if one != two => break true,
            Some(((_, one), (_, two))) if !same(one, two) => break false,
            Some(_) => {}
        }
    };
    let others = Fields::of(two);
    unordered && one.fields().all(|(key, value)| others.get(key).is_some_and(|other| same(value, other)))
}

/// Whether a value is one of a definition; a number is what it stands for, however it is written.
pub(super) fn equals(value: Cursor<'_>, wanted: &Value) -> bool {
    match (value.content(), wanted) {
        (Content::Number(one), Value::Number(two)) => one == *two || one.as_f64() == two.as_f64(),
        (Content::Text(one), Value::String(two)) => one == two,
        (Content::Boolean(one), Value::Bool(two)) => one == *two,
        (Content::Null, Value::Null) => true,
        (Content::List, Value::Array(wanted)) => {
            value.count() == wanted.len()
                && value.elements().zip(wanted).all(|(value, wanted)| equals(value, wanted))
        }
        (Content::Map, Value::Object(wanted)) => {
            let found = |(key, value): (&str, Cursor<'_>)| {
                wanted.get(key).is_some_and(|wanted| equals(value, wanted))
            };
            value.count() == wanted.len() && value.fields().all(found)
        }
        _ => false,
    }
}

/// A number that two values share when they are the same.
pub(super) fn hash(value: Cursor<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    if let Some(raw) = value.raw() {
        raw.hash(&mut hasher);
        return hasher.finish();
    }
    match value.content() {
        Content::Null => 0_u8.hash(&mut hasher),
        Content::Boolean(value) => value.hash(&mut hasher),
        Content::Number(value) => value.hash(&mut hasher),
        Content::Text(text) => text.hash(&mut hasher),
        Content::List => {
            1_u8.hash(&mut hasher);
            value.elements().for_each(|element| hash(element).hash(&mut hasher));
        }
        Content::Map => {
            2_u8.hash(&mut hasher);
            let mut fields: Vec<_> = value.fields().map(|(key, value)| (key, hash(value))).collect();
            fields.sort_unstable();
            fields.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// The fields that tell an element of a list apart.
pub(super) fn key<'d>(
    element: Cursor<'d>,
    names: &'d [String],
) -> impl Iterator<Item = (&'d str, Cursor<'d>)> {
    names.iter().filter_map(move |name| element.get(name).map(|value| (name.as_str(), value)))
}

/// Values by what tells them apart: all of them, or some of their fields.
pub(super) struct Known<'d, V> {
    /// Nothing for the whole value.
    names: Option<&'d [String]>,
    by_hash: BTreeMap<u64, (Cursor<'d>, V)>,
}

impl<'d, V> Known<'d, V> {
    /// No value yet.
    pub(super) fn by(names: Option<&'d [String]>) -> Self {
        Self { names, by_hash: BTreeMap::new() }
    }

    /// Notes what is known of a value, in the place of what was known of an equal one.
    pub(super) fn insert(&mut self, value: Cursor<'d>, known: V) {
        self.by_hash.insert(self.hash(value), (value, known));
    }

    /// What is known of a value.
    pub(super) fn get_mut(&mut self, value: Cursor<'d>) -> Option<&mut V> {
        let names = self.names;
        let hash = self.hash(value);
        let (found, known) = self.by_hash.get_mut(&hash)?;
        let is_same = match names {
            None => same(*found, value),
            Some(names) => names.iter().all(|name| match (found.get(name), value.get(name)) {
                (Some(one), Some(two)) => same(one, two),
                (one, two) => one.is_none() && two.is_none(),
            }),
        };
        is_same.then_some(known)
    }

    fn hash(&self, value: Cursor<'d>) -> u64 {
        let Some(names) = self.names else { return hash(value) };
        let mut hasher = DefaultHasher::new();
        for (name, value) in key(value, names) {
            (name, hash(value)).hash(&mut hasher);
        }
        hasher.finish()
    }
}
