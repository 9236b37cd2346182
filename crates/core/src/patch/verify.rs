//! The check of every patch before it is sent: a second, independent reading of the object.
//!
//! In go the text of the object and the edits; out comes whether they apply, nothing else. The object is
//! read again along the pointers of the patch: what they lead through becomes a sparse tree, to which each
//! edit is applied, and everything else is skipped. An edit that finds no parent, or an index beyond its
//! list, is a [`PatchError`].
//!
//! A pointer names an element by where it is when the edit is made; the reading keeps the element that was
//! there before the inserts of earlier edits.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::patch::PatchError;
use crate::patch::positions::{Element, Positions};
use memgate_model::edit::{Edit, Op, Value};
use memgate_model::view::Text;
use memgate_primitives::pointer::list_index;

/// Whether the edits apply to the object, in their order.
///
/// # Errors
/// The first edit that does not apply.
pub fn check(object: &str, edits: &[Edit]) -> Result<(), PatchError> {
    let mut paths = Trie::default();
    for edit in edits {
        paths.add(edit.pointer.tokens(), edit.op);
    }
    let mut deserializer = serde_json::Deserializer::from_str(object);
    let mut tree = SparseReader(&paths).deserialize(&mut deserializer).map_err(|_| PatchError::Unreadable)?;
    for edit in edits {
        let applied = tree.apply(edit.pointer.tokens(), edit.op, &edit.value);
        applied.ok_or_else(|| PatchError::At(edit.pointer.clone()))?;
    }
    Ok(())
}

/// The tokens of all pointers, by their common starts, as the object has them before the first edit.
#[derive(Default)]
struct Trie<'t> {
    /// Whether a pointer goes on from here.
    is_parent: bool,
    below: Vec<Self>,
    /// Which of those is below a token.
    by_token: BTreeMap<Cow<'t, str>, usize>,
    /// The same for tokens that can be the index of a list.
    by_index: BTreeMap<usize, usize>,
    /// Where elements were inserted, if this is a list.
    positions: Positions,
}

impl<'t> Trie<'t> {
    fn add(&mut self, tokens: impl Iterator<Item = Cow<'t, str>>, op: Op) {
        let (mut node, mut tokens) = (self, tokens.peekable());
        while let Some(mut token) = tokens.next() {
            node.is_parent = true;
            let mut index = list_index(&token);
            if tokens.peek().is_none() {
                if op == Op::Add {
                    // What has been there is not asked for: it moves up, or another value takes its place.
                    index.map(|index| node.positions.insert(index));
                    return;
                }
            } else if let Some(now) = index.filter(|_| !node.positions.is_original()) {
                // What an earlier edit inserted is not in the object.
                let Element::Original(before) = node.positions.at(now) else { return };
                token = Cow::Owned(before.to_string());
                index = Some(before);
            }
            let Some(below) = node.below_or_new(token, index) else { return };
            node = below;
        }
    }

    fn below_or_new(&mut self, token: Cow<'t, str>, index: Option<usize>) -> Option<&mut Self> {
        let at = match self.by_token.get(&token) {
            Some(known) => *known,
            None => {
                let new = self.below.len();
                self.below.push(Self::default());
                self.by_token.insert(token, new);
                self.by_index.extend(index.map(|index| (index, new)));
                new
            }
        };
        self.below.get_mut(at)
    }

    fn child(&self, token: &str) -> Option<&Self> {
        self.below.get(*self.by_token.get(token)?)
    }
}

/// The part of an object that the pointers lead through.
#[derive(Debug)]
enum Sparse<'a> {
    Leaf,
    Map(BTreeMap<Cow<'a, str>, Self>),
    List(SparseList<'a>),
}

/// Only the elements that a pointer leads through; the length is that of all.
#[derive(Debug)]
struct SparseList<'a> {
    len: usize,
    kept: BTreeMap<Element, Sparse<'a>>,
    positions: Positions,
}

impl<'a> Sparse<'a> {
    fn list(len: usize, kept: impl IntoIterator<Item = (usize, Self)>) -> Self {
        let kept = kept.into_iter().map(|(index, value)| (Element::Original(index), value)).collect();
        Self::List(SparseList { len, kept, positions: Positions::default() })
    }

    fn of(value: &'a Value) -> Self {
        match value {
            Value::Text(_) | Value::Integer(_) | Value::Env(_) | Value::Nothing => Self::Leaf,
            Value::Tree(tree) => Self::of_tree(tree),
            Value::EnvList(list) => Self::list(list.len(), []),
            Value::Entry(entry) => Self::Map(BTreeMap::from([(entry.0.as_str().into(), Self::Leaf)])),
        }
    }

    /// The recursion is bounded: memgate writes at most the few levels of a container.
    fn of_tree(tree: &'a serde_json::Value) -> Self {
        match tree {
            serde_json::Value::Array(list) => {
                Self::list(list.len(), list.iter().map(Self::of_tree).enumerate())
            }
            serde_json::Value::Object(fields) => Self::Map(
                fields.iter().map(|(key, value)| (key.as_str().into(), Self::of_tree(value))).collect(),
            ),
            _ => Self::Leaf,
        }
    }

    /// Applies one edit below this node; `None` when it does not fit.
    fn apply(&mut self, tokens: impl Iterator<Item = Cow<'a, str>>, op: Op, value: &'a Value) -> Option<()> {
        let (mut node, mut tokens) = (self, tokens.peekable());
        loop {
            let token = tokens.next()?;
            if tokens.peek().is_none() {
                return node.set(token, op, Self::of(value));
            }
            node = match node {
                Self::Leaf => return None,
                Self::Map(fields) => fields.get_mut(&token)?,
                Self::List(list) => list.kept.get_mut(&list.positions.at(list_index(&token)?))?,
            };
        }
    }

    fn set(&mut self, token: Cow<'a, str>, op: Op, new: Self) -> Option<()> {
        match self {
            Self::Leaf => None,
            Self::Map(fields) => match op {
                Op::Remove => fields.remove(&token).map(drop),
                Op::Replace => fields.get_mut(&token).map(|field| *field = new),
                Op::Add => {
                    fields.insert(token, new);
                    Some(())
                }
            },
            Self::List(list) => list.set(list_index(&token)?, op, new),
        }
    }
}

impl<'a> SparseList<'a> {
    fn set(&mut self, position: usize, op: Op, new: Sparse<'a>) -> Option<()> {
        let element = match op {
            Op::Add if position <= self.len => {
                // Everything from there on moves up by one, as in the list that the apiserver patches.
                self.len += 1;
                self.positions.insert(position)
            }
            Op::Replace if position < self.len => self.positions.at(position),
            // Nothing that a user wrote is ever taken out of a list.
            Op::Add | Op::Replace | Op::Remove => return None,
        };
        self.kept.insert(element, new);
        Some(())
    }
}

struct SparseReader<'w, 't>(&'w Trie<'t>);

impl<'de> DeserializeSeed<'de> for SparseReader<'_, '_> {
    type Value = Sparse<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Sparse<'de>, D::Error> {
        if !self.0.is_parent {
            // A pointer ends here: that there is a value is all that matters.
            return deserializer.deserialize_ignored_any(IgnoredAny).map(|_| Sparse::Leaf);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SparseReader<'_, '_> {
    type Value = Sparse<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Sparse<'de>, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Sparse<'de>, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Sparse<'de>, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Sparse<'de>, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Sparse<'de>, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Sparse<'de>, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sparse<'de>, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match self.0.child(&key) {
                Some(wanted) => {
                    let value = map.next_value_seed(SparseReader(wanted))?;
                    // The last of several equal keys counts, as for the apiserver.
                    fields.insert(key.0, value);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Sparse::Map(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Sparse<'de>, A::Error> {
        let mut wanted = self.0.by_index.iter().peekable();
        let mut kept = Vec::new();
        let mut len = 0;
        loop {
            let below = wanted.next_if(|(index, _)| **index == len).and_then(|(_, at)| self.0.below.get(*at));
            let more = match below {
                Some(below) => {
                    list.next_element_seed(SparseReader(below))?.map(|value| kept.push((len, value)))
                }
                None => list.next_element::<IgnoredAny>()?.map(|_| ()),
            };
            if more.is_none() {
                return Ok(Sparse::list(len, kept));
            }
            len += 1;
        }
    }
}
