//! Reads a text within the limits of a decision: limits how many elements of a list are kept, and tracks the
//! path of each.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use memgate_primitives::budget::{Budget, Limit, MAX_CONTAINERS, MAX_ENTRIES, MAX_VARIABLES, MAX_VOLUMES};
use memgate_primitives::json;
use memgate_primitives::pointer::Path;

/// How many fields an object may have before they are counted. An object of a pod that an apiserver sends
/// never has more.
const UNCOUNTED_FIELDS: usize = 64;

/// A type that can be read from JSON text, within the limits of a decision.
pub trait View<'de>: Sized {
    /// How many values of this type one list keeps.
    const QUOTA: Quota = Quota { most: MAX_ENTRIES, limit: Limit::Entries, overall: false };

    /// Reads one value.
    ///
    /// # Errors
    /// Those of the deserializer; when the value has another JSON type.
    fn read<D: Deserializer<'de>>(deserializer: D, place: &Place<'_>) -> Result<Self, D::Error>;
}

/// How many elements a list keeps.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    pub(super) most: usize,
    pub(super) limit: Limit,
    /// Whether the number holds for all lists of one text together.
    overall: bool,
}

impl Quota {
    /// Containers of a pod, or its init containers.
    pub const CONTAINERS: Self = Self { most: MAX_CONTAINERS, limit: Limit::Containers, overall: false };
    /// Volumes of a pod.
    pub const VOLUMES: Self = Self { most: MAX_VOLUMES, limit: Limit::Volumes, overall: false };
    /// Environment variables of a pod.
    pub const VARIABLES: Self = Self { most: MAX_VARIABLES, limit: Limit::Variables, overall: true };
}

/// One reading of a text.
#[derive(Debug, Default)]
pub struct Reading<'w> {
    /// Counts the values that are kept. Without it there is no limit.
    budget: Option<&'w Budget<'w>>,
    /// How many elements are kept so far in the lists with an overall quota.
    overall: Cell<usize>,
    /// Whether a repeated field is an error.
    is_strict: bool,
}

impl<'w> Reading<'w> {
    /// A reading within the limits of a decision.
    pub const fn within(budget: &'w Budget<'w>) -> Self {
        Self { budget: Some(budget), overall: Cell::new(0), is_strict: false }
    }

    /// The same, in which a repeated field is an error.
    #[must_use]
    pub const fn strictly(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Reads a text that is at `path` of the object under review.
    ///
    /// # Errors
    /// When the text is not JSON or has another form.
    pub fn read<'a, T: View<'a>>(&self, text: &'a str, path: Path<'_>) -> serde_json::Result<T> {
        let reading = Self { overall: Cell::new(0), ..*self };
        json::parse(text, Element::at(&Place { reading: &reading, path }))
    }
}

/// Reads a text without limits: for views without lists, and for texts that were read before.
///
/// # Errors
/// When the text is not JSON or has another form.
pub fn read<'a, T: View<'a>>(text: &'a str) -> serde_json::Result<T> {
    Reading::default().read(text, Path::Root)
}

/// A place in a text that is being read.
#[derive(Debug, Clone, Copy)]
pub struct Place<'w> {
    reading: &'w Reading<'w>,
    path: Path<'w>,
}

impl<'w> Place<'w> {
    /// The whole text.
    pub const fn root(reading: &'w Reading<'w>) -> Self {
        Self { reading, path: Path::Root }
    }

    /// A field of the object here.
    pub const fn key<'p>(&'p self, key: &'static str) -> Place<'p> {
        Place { reading: self.reading, path: Path::Key(&self.path, key) }
    }

    /// An element of the list here.
    const fn index(&self, index: usize) -> Place<'_> {
        Place { reading: self.reading, path: Path::Index(&self.path, index) }
    }

    /// Whether a repeated field of the object here is an error.
    pub const fn is_strict(&self) -> bool {
        self.reading.is_strict
    }

    /// Whether the list here, which has `kept` elements so far, may keep another one.
    pub(super) fn has_room(&self, quota: Quota, kept: usize) -> bool {
        let kept = if quota.overall { self.reading.overall.get() } else { kept };
        kept < quota.most || self.reading.budget.is_none()
    }

    /// Counts an element that is kept.
    pub(super) fn keep(&self, quota: Quota) {
        if quota.overall {
            self.reading.overall.set(self.reading.overall.get() + 1);
        }
        self.reading.budget.map(Budget::step);
    }

    /// Ends the decision, since the text holds more here than the limit.
    pub(super) fn end(&self, limit: Limit) {
        if let Some(budget) = self.reading.budget {
            budget.over_limit(|| self.path.pointer(), limit);
        }
    }

    /// Counts the fields of the object here, if there are many.
    #[inline]
    pub fn count_fields(&self, fields: usize) {
        if fields > UNCOUNTED_FIELDS {
            self.count_many_fields(fields);
        }
    }

    #[cold]
    fn count_many_fields(&self, fields: usize) {
        if fields > MAX_ENTRIES {
            self.end(Limit::Entries);
        }
        self.reading.budget.map(|budget| budget.steps(u32::try_from(fields).unwrap_or(u32::MAX)));
    }
}

/// Reads a value that may be `null`.
struct Optional<'p, T>(&'p Place<'p>, PhantomData<T>);

impl<'de, T: View<'de>> View<'de> for Option<T> {
    fn read<D: Deserializer<'de>>(deserializer: D, place: &Place<'_>) -> Result<Self, D::Error> {
        deserializer.deserialize_option(Optional(place, PhantomData))
    }
}

impl<'de, T: View<'de>> Visitor<'de> for Optional<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        T::read(deserializer, self.0).map(Some)
    }
}

/// Reads a list, up to its quota.
struct List<'p, T>(&'p Place<'p>, PhantomData<T>);

impl<'de, T: View<'de>> View<'de> for Vec<T> {
    fn read<D: Deserializer<'de>>(deserializer: D, place: &Place<'_>) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(List(place, PhantomData))
    }
}

impl<'de, T: View<'de>> Visitor<'de> for List<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut elements = Vec::new();
        while self.0.has_room(T::QUOTA, elements.len()) {
            let place = self.0.index(elements.len());
            let Some(element) = list.next_element_seed(Element::at(&place))? else {
                return Ok(elements);
            };
            self.0.keep(T::QUOTA);
            elements.push(element);
        }
        if list.next_element::<IgnoredAny>()?.is_some() {
            self.0.end(T::QUOTA.limit);
            while list.next_element::<IgnoredAny>()?.is_some() {}
        }
        Ok(elements)
    }
}

/// Reads a value at a place.
pub struct Element<'p, T>(&'p Place<'p>, PhantomData<T>);

impl<'p, T> Element<'p, T> {
    /// The value at this place.
    pub const fn at(place: &'p Place<'p>) -> Self {
        Self(place, PhantomData)
    }
}

impl<'de, T: View<'de>> DeserializeSeed<'de> for Element<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::read(deserializer, self.0)
    }
}
