//! The origins of each part of a written value, for the notes beside the lines of a diff.
//!
//! An origin is a number in a list of the caller.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::rewrite::Action;

/// The origins of a value: of the whole, or of its parts.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueOrigins {
    origin: Option<usize>,
    parts: PartOrigins,
}

#[derive(Debug, Clone, Default)]
enum PartOrigins {
    #[default]
    Whole,
    Map(BTreeMap<String, ValueOrigins>),
    List(Vec<ValueOrigins>),
}

impl ValueOrigins {
    /// The origins of a value that was in the text, from those of its entries.
    pub(super) fn of_entries(entries: BTreeMap<String, Self>) -> Self {
        Self { origin: None, parts: PartOrigins::Map(entries) }
    }

    /// The origins of a list that was in the text, from those of its elements.
    pub(super) fn of_elements(elements: Vec<Self>) -> Self {
        Self { origin: None, parts: PartOrigins::List(elements) }
    }

    /// The origins of the value of an edit, which has `count` origins from number `first` on.
    pub(super) fn new(written: &Value, count: usize, first: usize) -> Self {
        let one = |index: usize| Self {
            origin: (index < count).then_some(first + index),
            parts: PartOrigins::Whole,
        };
        match written {
            Value::Array(list) if list.len() == count => {
                Self { origin: one(0).origin, parts: PartOrigins::List((0..list.len()).map(one).collect()) }
            }
            _ => one(0),
        }
    }

    /// Gives each part of a value origins of its own, so that one of them can change.
    pub(super) fn split(&mut self, value: &Value) {
        let part = Self { origin: self.origin, parts: PartOrigins::Whole };
        if let (PartOrigins::Whole, Value::Object(map)) = (&self.parts, value) {
            self.parts = PartOrigins::Map(map.keys().map(|key| (key.clone(), part.clone())).collect());
        } else if let (PartOrigins::Whole, Value::Array(list)) = (&self.parts, value) {
            self.parts = PartOrigins::List(list.iter().map(|_| part.clone()).collect());
        }
    }

    /// The origins of one part, to change them.
    pub(super) fn child(&mut self, token: &str) -> Option<&mut Self> {
        match &mut self.parts {
            PartOrigins::Map(entries) => entries.get_mut(token),
            PartOrigins::List(items) => items.get_mut(token.parse::<usize>().ok()?),
            PartOrigins::Whole => None,
        }
    }

    /// Sets the origins of a part that an edit writes.
    pub(super) fn write(&mut self, token: &str, action: Action, origins: Self) -> Option<()> {
        match &mut self.parts {
            PartOrigins::Map(entries) => {
                entries.insert(token.to_owned(), origins);
            }
            PartOrigins::List(items) => {
                let index = if token == "-" { items.len() } else { token.parse().ok()? };
                match action {
                    Action::Add if index <= items.len() => items.insert(index, origins),
                    _ => *items.get_mut(index)? = origins,
                }
            }
            PartOrigins::Whole => return None,
        }
        Some(())
    }

    /// The origins of an entry.
    pub(super) fn entry(&self, key: &str) -> Cow<'_, Self> {
        match &self.parts {
            PartOrigins::Map(entries) => entries.get(key).map_or_else(|| self.part(), Cow::Borrowed),
            _ => self.part(),
        }
    }

    /// The origins of a list element.
    pub(super) fn element(&self, index: usize) -> Cow<'_, Self> {
        match &self.parts {
            PartOrigins::List(items) => items.get(index).map_or_else(|| self.part(), Cow::Borrowed),
            _ => self.part(),
        }
    }

    /// The origins of a part without origins of its own: that of the whole.
    fn part(&self) -> Cow<'_, Self> {
        Cow::Owned(Self { origin: self.origin, parts: PartOrigins::Whole })
    }

    /// The origin of the whole.
    pub(super) fn own(&self) -> Vec<usize> {
        self.origin.into_iter().collect()
    }

    /// The origin of a line that belongs to the whole and to its parts.
    pub(super) fn first(&self) -> Vec<usize> {
        self.all().into_iter().take(1).collect()
    }

    /// The origin of a line that closes a collection: that of its last part.
    pub(super) fn last(&self) -> Vec<usize> {
        match &self.parts {
            PartOrigins::List(items) => {
                items.last().filter(|_| self.origin.is_some()).map_or_else(Vec::new, Self::own)
            }
            _ => self.own(),
        }
    }

    /// All origins, for a line that holds everything.
    pub(super) fn all(&self) -> Vec<usize> {
        let mut all = self.own();
        match &self.parts {
            PartOrigins::Whole => {}
            PartOrigins::Map(entries) => all.extend(entries.values().flat_map(Self::all)),
            PartOrigins::List(items) => all.extend(items.iter().flat_map(Self::all)),
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}
