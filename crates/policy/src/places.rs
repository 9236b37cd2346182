//! Which fields an object has, so that findings stand at a field that exists.
//!
//! An object may hold very much that no rule looks at. Of more than [`MAX_PLACES`] fields and elements the first are known.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess};

use memgate_primitives::budget::MAX_STEPS;
use memgate_primitives::json::{Reader, Scalar, Seed, parse};
use memgate_primitives::pointer::{Pointer, list_index, unescape};

/// How many fields and elements of an object are known: as many as a decision reads values.
const MAX_PLACES: u32 = MAX_STEPS;

/// What there is below one place; `null` counts as absent.
#[derive(Debug, Default)]
pub(super) enum ObjectPlaces {
    #[default]
    Nothing,
    Scalar,
    List(Vec<Self>),
    Map(BTreeMap<Box<str>, Self>),
}

impl ObjectPlaces {
    /// Those of a text; nothing of a text that is not JSON.
    pub(super) fn of(text: &str) -> Self {
        let reader = ObjectPlacesReader { left: &Cell::new(MAX_PLACES) };
        parse(text, Seed(reader)).unwrap_or_default()
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
        for token in pointer.as_str().split('/').skip(1) {
            let Some(below) = here.below(token) else { break };
            (here, end) = (below, end + 1 + token.len());
        }
        (here, Pointer::new(pointer.as_str().get(..end).unwrap_or_default()))
    }

    /// The place at this token of a pointer, if it exists.
    fn below(&self, token: &str) -> Option<&Self> {
        let below = match self {
            Self::List(elements) => elements.get(list_index(token)?),
            Self::Map(fields) => fields.get(&*unescape(token)),
            Self::Nothing | Self::Scalar => None,
        };
        below.filter(|below| !matches!(below, Self::Nothing))
    }
}

/// Finds nearest places one after the other: most share all but their ends.
#[derive(Debug)]
pub(super) struct Nearest<'p> {
    places: &'p ObjectPlaces,
    /// The last place that was found, and where each of its tokens ends, with the place there.
    last: RefCell<(String, Vec<(usize, &'p ObjectPlaces)>)>,
}

impl<'p> Nearest<'p> {
    pub(super) fn of(places: &'p ObjectPlaces) -> Self {
        Self { places, last: RefCell::default() }
    }

    /// The same as [`ObjectPlaces::nearest`].
    pub(super) fn find<'t>(&self, pointer: &'t Pointer) -> &'t str {
        let text = pointer.as_str();
        let (last, levels) = &mut *self.last.borrow_mut();
        let same = text.bytes().zip(last.bytes()).take_while(|(one, other)| one == other).count();
        let is_above = |end: usize| end <= same && text.as_bytes().get(end).is_none_or(|next| *next == b'/');
        while levels.pop_if(|(end, _)| !is_above(*end)).is_some() {}
        let (mut end, mut here) = levels.last().copied().unwrap_or((0, self.places));
        for token in text.get(end..).unwrap_or_default().split('/').skip(1) {
            let Some(below) = here.below(token) else { break };
            (end, here) = (end + 1 + token.len(), below);
            levels.push((end, here));
        }
        let found = text.get(..end).unwrap_or_default();
        last.truncate(same.min(end));
        last.push_str(found.get(last.len()..).unwrap_or_default());
        found
    }
}

#[derive(Clone, Copy)]
struct ObjectPlacesReader<'l> {
    left: &'l Cell<u32>,
}

impl ObjectPlacesReader<'_> {
    /// Whether there is room for one more place.
    fn takes(self) -> bool {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }
}

impl<'de> Reader<'de> for ObjectPlacesReader<'_> {
    type Value = ObjectPlaces;

    fn scalar<E: Error>(self, scalar: Scalar<'de>) -> Result<ObjectPlaces, E> {
        Ok(if matches!(scalar, Scalar::Null) { ObjectPlaces::Nothing } else { ObjectPlaces::Scalar })
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<ObjectPlaces, A::Error> {
        let mut elements = Vec::new();
        while self.takes() {
            let Some(element) = list.next_element_seed(Seed(self))? else {
                return Ok(ObjectPlaces::List(elements));
            };
            elements.push(element);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ObjectPlaces::List(elements))
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<ObjectPlaces, A::Error> {
        let mut fields = BTreeMap::new();
        while self.takes() {
            let Some(key) = object.next_key()? else { return Ok(ObjectPlaces::Map(fields)) };
            fields.insert(key, object.next_value_seed(Seed(self))?);
        }
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(ObjectPlaces::Map(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_place_exists() {
        let places = ObjectPlaces::of(r#"{"a": {"b": [1, null, {"c/d": "x"}], "n": null}}"#);
        let finder = Nearest::of(&places);
        for (asked, nearest) in [
            ("/a/b/0", "/a/b/0"),
            ("/a/b/1", "/a/b"),
            ("/a/b/2/c~1d", "/a/b/2/c~1d"),
            ("/a/b/2/c~1d/e", "/a/b/2/c~1d"),
            ("/a/b/3", "/a/b"),
            ("/a/b/0", "/a/b/0"),
            ("/a/b/00", "/a/b"),
            ("/a/n", "/a"),
            ("/x/y", ""),
            ("", ""),
        ] {
            let asked = Pointer::new(asked);
            assert_eq!(places.nearest(&asked).as_str(), nearest, "{asked}");
            assert_eq!(finder.find(&asked), nearest, "{asked}");
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
                let nearest = ObjectPlaces::of(&text).nearest(&Pointer::new("/a/b"));
                assert_eq!(nearest.as_str(), if known { "/a/b" } else { "" }, "{element}");
            }
        }
    }
}
