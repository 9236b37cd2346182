//! Which fields an object has, so that findings stand at a field that exists.
//!
//! An object may hold very much that no rule looks at. Of more than [`MAX_PLACES`] fields and elements the first are known.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess};

use memgate_primitives::budget::MAX_STEPS;
use memgate_primitives::json::{Reader, Scalar, Seed};
use memgate_primitives::pointer::{Pointer, list_index};

/// How many fields and elements of an object are known: as many as a decision reads values.
const MAX_PLACES: u32 = MAX_STEPS;

/// What there is below one place; `null` counts as absent.
#[derive(Debug, Default)]
pub(super) enum Places {
    #[default]
    Nothing,
    Scalar,
    List(Vec<Self>),
    Map(BTreeMap<Box<str>, Self>),
}

impl Places {
    /// Those of a text; nothing of a text that is not JSON.
    pub(super) fn of(text: &str) -> Self {
        let reader = PlacesReader { left: &Cell::new(MAX_PLACES) };
        reader.read(&mut serde_json::Deserializer::from_str(text)).unwrap_or_default()
    }

    /// The place, or its nearest parent that exists.
    pub(super) fn nearest(&self, pointer: &Pointer) -> Pointer {
        self.find(pointer).1
    }

    /// Whether a text, a number or a flag stands at the place.
    pub(super) fn has_scalar(&self, pointer: &Pointer) -> bool {
        let (found, place) = self.find(pointer);
        matches!(found, Self::Scalar) && place == *pointer
    }

    fn find(&self, pointer: &Pointer) -> (&Self, Pointer) {
        let (mut here, mut end) = (self, 0);
        for (token, text) in pointer.tokens().zip(pointer.as_str().split('/').skip(1)) {
            let below = match here {
                Self::List(elements) => list_index(&token).and_then(|index| elements.get(index)),
                Self::Map(fields) => fields.get(&*token),
                Self::Nothing | Self::Scalar => None,
            };
            let Some(below) = below.filter(|below| !matches!(below, Self::Nothing)) else { break };
            (here, end) = (below, end + 1 + text.len());
        }
        (here, Pointer::new(pointer.as_str().get(..end).unwrap_or_default()))
    }
}

#[derive(Clone, Copy)]
struct PlacesReader<'l> {
    left: &'l Cell<u32>,
}

impl PlacesReader<'_> {
    /// Whether there is room for one more place.
    fn takes(self) -> bool {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }
}

impl<'de> Reader<'de> for PlacesReader<'_> {
    type Value = Places;

    fn scalar<E: Error>(self, scalar: Scalar<'de>) -> Result<Places, E> {
        Ok(if matches!(scalar, Scalar::Null) { Places::Nothing } else { Places::Scalar })
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<Places, A::Error> {
        let mut elements = Vec::new();
        while self.takes() {
            let Some(element) = list.next_element_seed(Seed(self))? else {
                return Ok(Places::List(elements));
            };
            elements.push(element);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Places::List(elements))
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<Places, A::Error> {
        let mut fields = BTreeMap::new();
        while self.takes() {
            let Some(key) = object.next_key()? else { return Ok(Places::Map(fields)) };
            fields.insert(key, object.next_value_seed(Seed(self))?);
        }
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Places::Map(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_place_exists() {
        let places = Places::of(r#"{"a": {"b": [1, null, {"c/d": "x"}], "n": null}}"#);
        for (asked, nearest) in [
            ("/a/b/0", "/a/b/0"),
            ("/a/b/1", "/a/b"),
            ("/a/b/2/c~1d", "/a/b/2/c~1d"),
            ("/a/b/2/c~1d/e", "/a/b/2/c~1d"),
            ("/a/b/3", "/a/b"),
            ("/a/n", "/a"),
            ("/x/y", ""),
            ("", ""),
        ] {
            assert_eq!(places.nearest(&Pointer::new(asked)).as_str(), nearest, "{asked}");
        }
    }

    #[test]
    fn of_very_many_the_first_are_known() {
        for element in ["{}", "0", r#"{"ip":""}"#, "[]", "null"] {
            let list = vec![element; 300_000].join(",");
            for (text, known) in [
                (format!(r#"{{"a": {{"b": 1}}, "list": [{list}]}}"#), true),
                (format!(r#"{{"list": [{list}], "a": {{"b": 1}}}}"#), false),
            ] {
                let nearest = Places::of(&text).nearest(&Pointer::new("/a/b"));
                assert_eq!(nearest.as_str(), if known { "/a/b" } else { "" }, "{element}");
            }
        }
    }
}
