//! Edits carried out on a document that still knows which of its parts stand in the text.
//!
//! ```text
//! edits ──apply──▶ Plan { value: the patched value, piece: what is kept, changed and new }
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use json_patch::Patch;
use serde_json::{Value, json};

use crate::manifest::locate::step;
use crate::manifest::outline::{Id, Kind, Outline};
use crate::manifest::source::Source;
use crate::manifest::value::{is_merge, key_name};
use crate::model::edit::{Edit, Op, Origin};
use crate::model::pointer::Pointer;

/// A document with its edits made.
#[derive(Debug)]
pub(super) struct Plan {
    /// The new value.
    pub(super) value: Value,
    /// Where its parts come from.
    pub(super) piece: Piece,
    /// Whether an edit goes where the text cannot follow, such as behind an alias.
    pub(super) odd: bool,
}

/// Where a part of the value comes from.
#[derive(Debug)]
pub(super) enum Piece {
    /// From the text, unchanged.
    Kept(Id),
    /// From another place of the text, through a merge key, unchanged.
    Merged,
    /// A mapping in the text, something in it changed.
    Map(Id, Vec<(String, Self)>),
    /// A list in the text, something in it changed.
    List(Id, Vec<Self>),
    /// From an edit, in place of something in the text or beside it.
    New(Option<Id>, Fresh),
    /// An entry of a mapping in the text that is taken away.
    Gone(Id),
}

/// The origins of a value: of the whole, or of its parts.
#[derive(Debug, Clone, Default)]
pub(super) struct Fresh {
    origin: Option<usize>,
    parts: Parts,
}

#[derive(Debug, Clone, Default)]
enum Parts {
    #[default]
    Whole,
    Map(BTreeMap<String, Fresh>),
    List(Vec<Fresh>),
}

/// The text that a plan is made on.
#[derive(Clone, Copy)]
pub(super) struct Ground<'s> {
    pub(super) source: &'s Source,
    pub(super) text: &'s str,
    pub(super) outline: &'s Outline,
}

impl Plan {
    pub(super) fn new(root: Id, value: Value) -> Self {
        Self { value, piece: Piece::Kept(root), odd: false }
    }

    /// Makes one edit; `pointer` is from the root of the text's document. `None` when it does not
    /// apply. The origins of the edit go to `origins`.
    pub(super) fn apply(
        &mut self,
        ground: Ground<'_>,
        pointer: &Pointer,
        edit: &Edit,
        origins: &mut Vec<Origin>,
    ) -> Option<()> {
        let written = serde_json::to_value(&edit.value).ok()?;
        let fresh = Fresh::new(&written, edit, origins.len());
        origins.extend(edit.origins.iter().cloned());
        let mut tokens: Vec<String> = pointer.tokens().map(Cow::into_owned).collect();
        let target = tokens.pop()?;
        let (mut cursor, mut value) = (Cursor::Piece(&mut self.piece), &self.value);
        for token in &tokens {
            self.odd |= cursor.open(ground, value);
            cursor = cursor.child(token)?;
            value = match value {
                Value::Array(list) => list.get(token.parse::<usize>().ok()?)?,
                _ => value.get(token)?,
            };
        }
        self.odd |= cursor.open(ground, value);
        match cursor {
            Cursor::Piece(piece) if edit.op == Op::Remove => self.odd |= !piece.take(&target),
            // What an edit has written is not there in the text; the document is written anew.
            Cursor::Fresh(_) if edit.op == Op::Remove => self.odd = true,
            Cursor::Piece(Piece::New(_, whole)) | Cursor::Fresh(whole) => {
                whole.put(&target, edit.op, fresh)?;
            }
            Cursor::Piece(piece) => piece.put(&target, edit.op, fresh)?,
        }
        let patch = json!([{"op": edit.op.name(), "path": pointer.as_str(), "value": written}]);
        let patch: Patch = serde_json::from_value(patch).ok()?;
        json_patch::patch(&mut self.value, &patch).ok()
    }
}

/// The way down to where an edit is made: through what stands in the text, then through what is new.
enum Cursor<'p> {
    Piece(&'p mut Piece),
    Fresh(&'p mut Fresh),
}

impl Cursor<'_> {
    fn open(&mut self, ground: Ground<'_>, value: &Value) -> bool {
        match self {
            Self::Piece(piece) => piece.open(ground, value),
            Self::Fresh(fresh) => {
                fresh.open(value);
                false
            }
        }
    }

    fn child(self, token: &str) -> Option<Self> {
        match self {
            Self::Piece(Piece::New(_, fresh)) | Self::Fresh(fresh) => fresh.child(token).map(Self::Fresh),
            Self::Piece(piece) => piece.child(token).map(Self::Piece),
        }
    }
}

impl Piece {
    /// Takes a collection apart, so that what is in it can change. Gives whether the text cannot
    /// follow there.
    fn open(&mut self, ground: Ground<'_>, value: &Value) -> bool {
        match (&mut *self, value) {
            (Self::New(_, fresh), _) => fresh.open(value),
            (Self::Merged, _) => {
                let mut fresh = Fresh::default();
                fresh.open(value);
                *self = Self::New(None, fresh);
                return true;
            }
            (Self::Kept(id), Value::Object(map)) => {
                let id = *id;
                let own = own_entries(ground, id);
                let piece = |key: &String| own.get(key).map_or(Self::Merged, |value| Self::Kept(*value));
                *self = Self::Map(id, map.keys().map(|key| (key.clone(), piece(key))).collect());
                return matches!(ground.outline.node(id).kind, Kind::Alias(_));
            }
            (Self::Kept(id), Value::Array(list)) => {
                let id = *id;
                let found = |index: usize| step(ground.text, ground.outline, id, &index.to_string());
                let piece = |index| found(index).map_or(Self::Merged, |step| Self::Kept(step.value));
                *self = Self::List(id, (0..list.len()).map(piece).collect());
                return matches!(ground.outline.node(id).kind, Kind::Alias(_));
            }
            _ => {}
        }
        false
    }

    fn child(&mut self, token: &str) -> Option<&mut Self> {
        match self {
            Self::Map(_, entries) => entries.iter_mut().find(|(key, _)| key == token).map(|(_, piece)| piece),
            Self::List(_, items) => items.get_mut(token.parse::<usize>().ok()?),
            _ => None,
        }
    }

    fn put(&mut self, token: &str, op: Op, fresh: Fresh) -> Option<()> {
        match self {
            Self::Map(_, entries) => match entries.iter_mut().find(|(key, _)| key == token) {
                Some((_, piece)) => {
                    let old = piece.node();
                    *piece = Self::New(old, fresh);
                }
                None => entries.push((token.to_owned(), Self::New(None, fresh))),
            },
            Self::List(_, items) => {
                let index = if token == "-" { items.len() } else { token.parse().ok()? };
                match op {
                    Op::Add if index <= items.len() => items.insert(index, Self::New(None, fresh)),
                    _ => {
                        let piece = items.get_mut(index)?;
                        *piece = Self::New(piece.node(), fresh);
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Takes an entry away. Gives whether the text can follow: not where nothing would be left.
    fn take(&mut self, token: &str) -> bool {
        let Self::Map(_, entries) = self else { return false };
        let others = entries.iter().any(|(key, piece)| key != token && matches!(piece, Self::Kept(_)));
        let Some((_, piece)) = entries.iter_mut().find(|(key, _)| key == token) else { return false };
        let node = piece.node().filter(|_| others);
        *piece = node.map_or(Self::Merged, Self::Gone);
        node.is_some()
    }

    /// What it stands for in the text.
    pub(super) fn node(&self) -> Option<Id> {
        match self {
            Self::Kept(id) | Self::Map(id, _) | Self::List(id, _) | Self::Gone(id) => Some(*id),
            Self::New(old, _) => *old,
            Self::Merged => None,
        }
    }

    /// The origins of all that it holds.
    pub(super) fn fresh(&self) -> Fresh {
        let parts = match self {
            Self::Kept(_) | Self::Merged | Self::Gone(_) => Parts::Whole,
            Self::New(_, fresh) => return fresh.clone(),
            Self::Map(_, entries) => {
                Parts::Map(entries.iter().map(|(key, piece)| (key.clone(), piece.fresh())).collect())
            }
            Self::List(_, items) => Parts::List(items.iter().map(Self::fresh).collect()),
        };
        Fresh { origin: None, parts }
    }
}

/// The values of the keys that a mapping itself has.
fn own_entries(ground: Ground<'_>, id: Id) -> BTreeMap<String, Id> {
    let Kind::Map(_, entries) = &ground.outline.node(id).kind else { return BTreeMap::new() };
    let own = entries.iter().filter(|(key, _)| !is_merge(ground.outline.node(*key), ground.text));
    own.filter_map(|(key, value)| Some((key_name(ground.outline, *key, ground.text)?, *value))).collect()
}

impl Fresh {
    /// The origins of what an edit writes, the first of them with number `number`.
    fn new(written: &Value, edit: &Edit, number: usize) -> Self {
        let one = |index: usize| Self {
            origin: (index < edit.origins.len()).then_some(number + index),
            parts: Parts::Whole,
        };
        match written {
            Value::Array(list) if list.len() == edit.origins.len() => {
                Self { origin: one(0).origin, parts: Parts::List((0..list.len()).map(one).collect()) }
            }
            _ => one(0),
        }
    }

    fn open(&mut self, value: &Value) {
        let part = Self { origin: self.origin, parts: Parts::Whole };
        if let (Parts::Whole, Value::Object(map)) = (&self.parts, value) {
            self.parts = Parts::Map(map.keys().map(|key| (key.clone(), part.clone())).collect());
        } else if let (Parts::Whole, Value::Array(list)) = (&self.parts, value) {
            self.parts = Parts::List(list.iter().map(|_| part.clone()).collect());
        }
    }

    fn child(&mut self, token: &str) -> Option<&mut Self> {
        match &mut self.parts {
            Parts::Map(entries) => entries.get_mut(token),
            Parts::List(items) => items.get_mut(token.parse::<usize>().ok()?),
            Parts::Whole => None,
        }
    }

    fn put(&mut self, token: &str, op: Op, fresh: Self) -> Option<()> {
        match &mut self.parts {
            Parts::Map(entries) => {
                entries.insert(token.to_owned(), fresh);
            }
            Parts::List(items) => {
                let index = if token == "-" { items.len() } else { token.parse().ok()? };
                match op {
                    Op::Add if index <= items.len() => items.insert(index, fresh),
                    _ => *items.get_mut(index)? = fresh,
                }
            }
            Parts::Whole => return None,
        }
        Some(())
    }

    /// The origins of an entry.
    pub(super) fn entry(&self, key: &str) -> Cow<'_, Self> {
        match &self.parts {
            Parts::Map(entries) => entries.get(key).map_or_else(|| self.part(), Cow::Borrowed),
            _ => self.part(),
        }
    }

    /// The origins of a list element.
    pub(super) fn element(&self, index: usize) -> Cow<'_, Self> {
        match &self.parts {
            Parts::List(items) => items.get(index).map_or_else(|| self.part(), Cow::Borrowed),
            _ => self.part(),
        }
    }

    /// A part that has no origin of its own.
    fn part(&self) -> Cow<'_, Self> {
        Cow::Owned(Self { origin: self.origin, parts: Parts::Whole })
    }

    /// The origin of the whole.
    pub(super) fn own(&self) -> Vec<usize> {
        self.origin.into_iter().collect()
    }

    /// The origin of a line that is there for the parts as well as for the whole.
    pub(super) fn any(&self) -> Vec<usize> {
        self.all().into_iter().take(1).collect()
    }

    /// The origin of a line that closes a collection: that of its last part.
    pub(super) fn last(&self) -> Vec<usize> {
        match &self.parts {
            Parts::List(items) => {
                items.last().filter(|_| self.origin.is_some()).map_or_else(Vec::new, Self::own)
            }
            _ => self.own(),
        }
    }

    /// All origins, for a line that holds everything.
    pub(super) fn all(&self) -> Vec<usize> {
        let mut all = self.own();
        match &self.parts {
            Parts::Whole => {}
            Parts::Map(entries) => all.extend(entries.values().flat_map(Self::all)),
            Parts::List(items) => all.extend(items.iter().flat_map(Self::all)),
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}
