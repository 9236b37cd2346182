//! Walks over a document: its values, their elements and fields.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use serde_json::Number;

use crate::document::{Document, Extent, Item};

/// How many fields of an object are looked through one by one. More of them get an index.
const MAX_SCANNED: u32 = 16;

/// A value of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'d> {
    document: &'d Document<'d>,
    at: usize,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(super) enum Content<'d> {
    Null,
    Boolean(bool),
    Number(Number),
    Text(&'d str),
    List,
    Map,
}

impl<'d> Cursor<'d> {
    /// The whole object.
    pub(super) const fn root(document: &'d Document<'d>) -> Self {
        Self { document, at: 0 }
    }

    /// Which item it is.
    pub(super) const fn at(self) -> usize {
        self.at
    }

    /// The value at another place of the same document.
    pub(super) const fn moved(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// What the value is. One that was kept as it was written shows its type, and no content.
    pub(super) fn content(self) -> Content<'d> {
        match self.document.item(self.at) {
            Item::Null | Item::Absent => Content::Null,
            Item::Boolean(value) => Content::Boolean(value),
            Item::Signed(value) => Content::Number(value.into()),
            Item::Unsigned(value) => Content::Number(value.into()),
            Item::Float(value) => Number::from_f64(value).map_or(Content::Null, Content::Number),
            Item::Text(span) | Item::Key(span) | Item::Replaced(span) => {
                Content::Text(self.document.string(span))
            }
            Item::List(_) => Content::List,
            Item::Map(_) => Content::Map,
            Item::Raw(span) => raw_content(self.document.string(span)),
        }
    }

    /// The text as it was written, of a value into which no schema looks.
    pub(super) fn raw(self) -> Option<&'d str> {
        match self.document.item(self.at) {
            Item::Raw(span) => Some(self.document.string(span)),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub(super) fn text(self) -> Option<&'d str> {
        match self.document.item(self.at) {
            Item::Text(span) => Some(self.document.string(span)),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub(super) fn is_null(self) -> bool {
        match self.document.item(self.at) {
            Item::Null | Item::Absent => true,
            Item::Raw(span) => self.document.string(span) == "null",
            _ => false,
        }
    }

    /// Whether it is an object.
    pub(super) fn is_map(self) -> bool {
        matches!(self.content(), Content::Map)
    }

    /// How many elements or fields there are.
    pub(super) fn count(self) -> usize {
        self.extent().count as usize
    }

    fn extent(self) -> Extent {
        match self.document.item(self.at) {
            Item::List(extent) | Item::Map(extent) => extent,
            _ => Extent::default(),
        }
    }

    /// The elements of a list; nothing for any other value.
    pub(super) fn elements(self) -> impl Iterator<Item = Self> {
        let end = match self.document.item(self.at) {
            Item::List(extent) => extent.end as usize,
            _ => 0,
        };
        let mut next = self.at + 1;
        std::iter::from_fn(move || {
            let at = next;
            next = self.document.behind(at);
            (at < end).then_some(Self { at, ..self })
        })
    }

    /// The fields of an object; nothing for any other value.
    pub(super) fn fields(self) -> impl Iterator<Item = (&'d str, Self)> {
        let end = match self.document.item(self.at) {
            Item::Map(extent) => extent.end as usize,
            _ => 0,
        };
        let mut next = self.at + 1;
        std::iter::from_fn(move || {
            while next < end {
                let at = next + 1;
                let key = self.document.item(next);
                next = self.document.behind(at);
                match (key, self.document.item(at)) {
                    (Item::Replaced(_), _) | (_, Item::Absent) => {}
                    (Item::Key(span), _) => return Some((self.document.string(span), Self { at, ..self })),
                    _ => return None,
                }
            }
            None
        })
    }

    /// A field of an object.
    pub(super) fn get(self, name: &str) -> Option<Self> {
        self.fields().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// What a value is of which only the text is known.
fn raw_content(text: &str) -> Content<'_> {
    match text.as_bytes().first() {
        Some(b'{') => Content::Map,
        Some(b'[') => Content::List,
        Some(b'"') => Content::Text(text),
        Some(b't') => Content::Boolean(true),
        Some(b'f') => Content::Boolean(false),
        Some(b'n') | None => Content::Null,
        Some(_) => Number::from_str(text).map_or(Content::Null, Content::Number),
    }
}

/// The fields of an object that is asked for many of them.
pub(super) enum Fields<'d> {
    /// Those of a small one.
    Few(Cursor<'d>),
    /// Those of a large one, by name.
    Many(BTreeMap<&'d str, Cursor<'d>>),
}

impl<'d> Fields<'d> {
    /// The fields of an object; none for any other value.
    pub(super) fn of(object: Cursor<'d>) -> Self {
        if object.extent().count > MAX_SCANNED {
            return Self::Many(object.fields().collect());
        }
        Self::Few(object)
    }

    /// A field.
    pub(super) fn get(&self, name: &str) -> Option<Cursor<'d>> {
        match self {
            Self::Few(object) => object.get(name),
            Self::Many(fields) => fields.get(name).copied(),
        }
    }
}
