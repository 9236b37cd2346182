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
use std::cmp::Ordering;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::model::edit::{Edit, Op, Value};
use crate::model::pointer::list_index;
use crate::model::view::Text;
use crate::patch::PatchError;

/// Whether the edits apply to the object, in their order.
///
/// # Errors
/// The first edit that does not apply.
pub fn check(object: &str, edits: &[Edit]) -> Result<(), PatchError> {
    let pointers: Vec<Vec<Cow<'_, str>>> = edits.iter().map(|edit| edit.pointer.tokens().collect()).collect();
    let mut paths = Trie::default();
    for (edit, tokens) in edits.iter().zip(&pointers) {
        paths.add(tokens, edit.op);
    }
    let mut deserializer = serde_json::Deserializer::from_str(object);
    let mut tree = SparseReader(&paths).deserialize(&mut deserializer).map_err(|_| PatchError::Unreadable)?;
    for (edit, tokens) in edits.iter().zip(&pointers) {
        tree.apply(tokens, edit.op, &edit.value).ok_or_else(|| PatchError::At(edit.pointer.clone()))?;
    }
    Ok(())
}

/// The tokens of all pointers, by their common starts, as the object has them before the first edit.
#[derive(Default)]
struct Trie<'t> {
    children: Vec<Branch<'t>>,
    /// Where elements were inserted, if this is a list, in the order of the edits.
    inserts: Vec<usize>,
}

struct Branch<'t> {
    token: Cow<'t, str>,
    /// The token as the index of a list, if it is one.
    index: Option<usize>,
    below: Trie<'t>,
}

impl<'t> Trie<'t> {
    fn add(&mut self, tokens: &'t [Cow<'_, str>], op: Op) {
        let Some((token, rest)) = tokens.split_first() else { return };
        let mut token = Cow::Borrowed(token.as_ref());
        let index = list_index(&token);
        if let Some(index) = index.filter(|_| !rest.is_empty() && !self.inserts.is_empty()) {
            // What an earlier edit inserted is not in the object.
            let Some(before) = self.before_inserts(index) else { return };
            token = Cow::Owned(before.to_string());
        }
        if op == Op::Add && rest.is_empty() {
            self.inserts.extend(index);
        }
        match self.children.iter_mut().find(|branch| branch.token == token) {
            Some(branch) => branch.below.add(rest, op),
            None => {
                let mut below = Self::default();
                below.add(rest, op);
                let index = list_index(&token);
                self.children.push(Branch { token, index, below });
            }
        }
    }

    /// Where an element was before the inserts; `None` for one that was inserted.
    fn before_inserts(&self, index: usize) -> Option<usize> {
        self.inserts.iter().rev().try_fold(index, |index, inserted| match index.cmp(inserted) {
            Ordering::Less => Some(index),
            Ordering::Equal => None,
            Ordering::Greater => Some(index - 1),
        })
    }

    fn child(&self, token: &str) -> Option<&Self> {
        self.children.iter().find(|branch| branch.token == token).map(|branch| &branch.below)
    }

    fn element(&self, position: usize) -> Option<&Self> {
        self.children.iter().find(|branch| branch.index == Some(position)).map(|branch| &branch.below)
    }
}

/// The part of an object that the pointers lead through.
#[derive(Debug, Clone, PartialEq)]
enum Sparse {
    Leaf,
    Map(Vec<(String, Self)>),
    /// Only the elements that a pointer leads through, with their indexes; the length is that of all.
    List {
        len: usize,
        kept: Vec<(usize, Self)>,
    },
}

impl Sparse {
    fn of(value: &Value) -> Self {
        match value {
            Value::Text(_) | Value::Integer(_) | Value::Env(_) | Value::Nothing => Self::Leaf,
            Value::Tree(tree) => Self::of_tree(tree),
            Value::EnvList(list) => Self::List { len: list.len(), kept: Vec::new() },
            Value::Entry(entry) => Self::Map(vec![(entry.0.clone(), Self::Leaf)]),
        }
    }

    /// The recursion is bounded: what memgate writes is no deeper than the few levels of a container.
    fn of_tree(tree: &serde_json::Value) -> Self {
        match tree {
            serde_json::Value::Array(list) => {
                Self::List { len: list.len(), kept: list.iter().map(Self::of_tree).enumerate().collect() }
            }
            serde_json::Value::Object(fields) => {
                Self::Map(fields.iter().map(|(key, value)| (key.clone(), Self::of_tree(value))).collect())
            }
            _ => Self::Leaf,
        }
    }

    /// Applies one edit below this node; `None` when it does not fit.
    fn apply(&mut self, tokens: &[Cow<'_, str>], op: Op, value: &Value) -> Option<()> {
        let (first, rest) = tokens.split_first()?;
        if rest.is_empty() {
            return self.set(first, op, Self::of(value));
        }
        let below = match self {
            Self::Leaf => None,
            Self::Map(fields) => fields.iter_mut().find(|(key, _)| key == first).map(|(_, child)| child),
            Self::List { kept, .. } => {
                let position = list_index(first)?;
                kept.iter_mut().find(|(known, _)| *known == position).map(|(_, child)| child)
            }
        };
        below?.apply(rest, op, value)
    }

    fn set(&mut self, token: &str, op: Op, new: Self) -> Option<()> {
        match self {
            Self::Leaf => None,
            Self::Map(fields) => {
                let known = fields.iter().position(|(key, _)| key == token);
                match (known, op) {
                    (Some(known), Op::Remove) => {
                        fields.remove(known);
                    }
                    (Some(known), Op::Add | Op::Replace) => fields.get_mut(known)?.1 = new,
                    (None, Op::Add) => fields.push((token.to_owned(), new)),
                    (None, Op::Replace | Op::Remove) => return None,
                }
                Some(())
            }
            Self::List { len, kept } => set_element(len, kept, list_index(token)?, op, new),
        }
    }
}

fn set_element(
    len: &mut usize,
    kept: &mut Vec<(usize, Sparse)>,
    position: usize,
    op: Op,
    new: Sparse,
) -> Option<()> {
    match op {
        Op::Add if position <= *len => {
            // Everything from there on moves up by one, as in the list that the apiserver patches.
            for (known, _) in kept.iter_mut().filter(|(known, _)| *known >= position) {
                *known += 1;
            }
            *len += 1;
            kept.push((position, new));
            Some(())
        }
        Op::Replace if position < *len => {
            kept.retain(|(known, _)| *known != position);
            kept.push((position, new));
            Some(())
        }
        // Nothing that a user wrote is ever taken out of a list.
        Op::Add | Op::Replace | Op::Remove => None,
    }
}

struct SparseReader<'w, 't>(&'w Trie<'t>);

impl<'de> DeserializeSeed<'de> for SparseReader<'_, '_> {
    type Value = Sparse;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Sparse, D::Error> {
        if self.0.children.is_empty() {
            // A pointer ends here: that there is a value is all that matters.
            return deserializer.deserialize_ignored_any(IgnoredAny).map(|_| Sparse::Leaf);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SparseReader<'_, '_> {
    type Value = Sparse;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Sparse, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Sparse, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Sparse, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Sparse, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Sparse, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Sparse, E> {
        Ok(Sparse::Leaf)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sparse, A::Error> {
        let mut fields: Vec<(String, Sparse)> = Vec::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match self.0.child(&key) {
                Some(wanted) => {
                    let value = map.next_value_seed(SparseReader(wanted))?;
                    // The last of several equal keys counts, as for the apiserver.
                    fields.retain(|(known, _)| *known != *key);
                    fields.push((key.to_string(), value));
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Sparse::Map(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Sparse, A::Error> {
        let mut kept = Vec::new();
        let mut len = 0;
        loop {
            let more = match self.0.element(len) {
                Some(wanted) => {
                    list.next_element_seed(SparseReader(wanted))?.map(|value| kept.push((len, value)))
                }
                None => list.next_element::<IgnoredAny>()?.map(|_| ()),
            };
            if more.is_none() {
                return Ok(Sparse::List { len, kept });
            }
            len += 1;
        }
    }
}
