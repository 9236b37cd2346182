//! Edits made in a document that still knows which of its parts are in the text.
//!
//! ```text
//! edits ──apply──▶ EditedDocument { value: the patched value, tree: its parts, unchanged, changed or written }
//! ```
//!
//! `block` and `flow` write the text from the tree.

use std::borrow::Cow;
use std::collections::BTreeMap;

use json_patch::Patch;
use serde_json::{Value, json};

use crate::outline::{NodeId, NodeKind, Outline};
use crate::place::member;
use crate::rewrite::origins::ValueOrigins;
use crate::rewrite::{Action, TextEdit};
use crate::source::Source;
use crate::value::{is_merge, key_name};
use memgate_primitives::pointer::Pointer;

/// A document with its edits made.
#[derive(Debug)]
pub(super) struct EditedDocument {
    /// The new value.
    pub(super) value: Value,
    /// The origin of each of its parts.
    pub(super) tree: EditedNode,
    /// Whether an edit is at a place where the text cannot be changed, such as behind an alias: the
    /// document has to be written anew.
    pub(super) needs_reformat: bool,
}

/// The origin of a part of the value.
#[derive(Debug)]
pub(super) enum EditedNode {
    /// From the text, unchanged.
    Unchanged(NodeId),
    /// From another place of the text, through a merge key, unchanged.
    Merged,
    /// A mapping in the text, something in it changed.
    Map(NodeId, Vec<(String, Self)>),
    /// A list in the text, something in it changed.
    List(NodeId, Vec<Self>),
    /// From an edit, in place of something in the text or beside it.
    Written(Option<NodeId>, ValueOrigins),
    /// An entry of a mapping in the text that is removed.
    Removed(NodeId),
}

/// The text that is edited, with its outline.
#[derive(Clone, Copy)]
pub(super) struct ParsedSource<'s> {
    pub(super) source: &'s Source,
    pub(super) text: &'s str,
    pub(super) outline: &'s Outline,
}

impl EditedDocument {
    pub(super) fn new(root: NodeId, value: Value) -> Self {
        Self { value, tree: EditedNode::Unchanged(root), needs_reformat: false }
    }

    /// Makes one edit; `pointer` is from the root of the text's document, and `first_origin` the number of the first
    /// origin of the edit. `None` when the edit does not apply.
    pub(super) fn apply(
        &mut self,
        parsed: ParsedSource<'_>,
        pointer: &Pointer,
        edit: &TextEdit,
        first_origin: usize,
    ) -> Option<()> {
        let TextEdit { action, value: written, .. } = edit;
        let origins = ValueOrigins::new(written, edit.origins, first_origin);
        let mut tokens: Vec<String> = pointer.tokens().map(Cow::into_owned).collect();
        let target = tokens.pop()?;
        // A node is split by the members of its value, so the loop walks down the value beside the tree.
        let (mut cursor, mut value) = (Cursor::Tree(&mut self.tree), &self.value);
        for token in &tokens {
            self.needs_reformat |= !cursor.split(parsed, value);
            cursor = cursor.child(token)?;
            value = match value {
                Value::Array(list) => list.get(token.parse::<usize>().ok()?)?,
                _ => value.get(token)?,
            };
        }
        self.needs_reformat |= !cursor.split(parsed, value);
        match cursor {
            Cursor::Tree(node) if *action == Action::Remove => self.needs_reformat |= !node.remove(&target),
            // A value of an earlier edit has no bytes in the text yet.
            Cursor::Written(_) if *action == Action::Remove => self.needs_reformat = true,
            Cursor::Tree(EditedNode::Written(_, whole)) | Cursor::Written(whole) => {
                whole.write(&target, *action, origins)?;
            }
            Cursor::Tree(node) => node.write(&target, *action, origins)?,
        }
        let op = match action {
            Action::Add => "add",
            Action::Replace => "replace",
            Action::Remove => "remove",
        };
        let patch = json!([{"op": op, "path": pointer.as_str(), "value": written}]);
        let patch: Patch = serde_json::from_value(patch).ok()?;
        json_patch::patch(&mut self.value, &patch).ok()
    }
}

/// A node on the way to the place of an edit: first in the text, then in values of earlier edits.
enum Cursor<'p> {
    Tree(&'p mut EditedNode),
    Written(&'p mut ValueOrigins),
}

impl Cursor<'_> {
    /// Splits a collection into its members. `false` when the text cannot be changed there.
    fn split(&mut self, parsed: ParsedSource<'_>, value: &Value) -> bool {
        match self {
            Self::Tree(node) => node.split(parsed, value),
            Self::Written(origins) => {
                origins.split(value);
                true
            }
        }
    }

    fn child(self, token: &str) -> Option<Self> {
        match self {
            Self::Tree(EditedNode::Written(_, origins)) | Self::Written(origins) => {
                origins.child(token).map(Self::Written)
            }
            Self::Tree(node) => node.child(token).map(Self::Tree),
        }
    }
}

impl EditedNode {
    /// Splits a collection into its members, so that one of them can change. `false` when the text cannot be
    /// changed there.
    fn split(&mut self, parsed: ParsedSource<'_>, value: &Value) -> bool {
        let id = match self {
            Self::Unchanged(id) => *id,
            Self::Written(_, origins) => {
                origins.split(value);
                return true;
            }
            Self::Merged => {
                // The bytes belong to another mapping, which must not change.
                let mut origins = ValueOrigins::default();
                origins.split(value);
                *self = Self::Written(None, origins);
                return false;
            }
            Self::Map(..) | Self::List(..) | Self::Removed(_) => return true,
        };
        match value {
            Value::Object(map) => {
                let own = own_entries(parsed, id);
                let node = |key: &String| own.get(key).map_or(Self::Merged, |value| Self::Unchanged(*value));
                *self = Self::Map(id, map.keys().map(|key| (key.clone(), node(key))).collect());
            }
            Value::Array(list) => {
                let found = |index: usize| member(parsed.text, parsed.outline, id, &index.to_string());
                let node = |index| found(index).map_or(Self::Merged, |found| Self::Unchanged(found.value));
                *self = Self::List(id, (0..list.len()).map(node).collect());
            }
            _ => return true,
        }
        // Behind an alias every other use of the anchor would change too.
        !matches!(parsed.outline.node(id).kind, NodeKind::Alias(_))
    }

    fn child(&mut self, token: &str) -> Option<&mut Self> {
        match self {
            Self::Map(_, entries) => entries.iter_mut().find(|(key, _)| key == token).map(|(_, node)| node),
            Self::List(_, items) => items.get_mut(token.parse::<usize>().ok()?),
            _ => None,
        }
    }

    fn write(&mut self, token: &str, action: Action, origins: ValueOrigins) -> Option<()> {
        match self {
            Self::Map(_, entries) => match entries.iter_mut().find(|(key, _)| key == token) {
                Some((_, node)) => *node = Self::Written(node.id(), origins),
                None => entries.push((token.to_owned(), Self::Written(None, origins))),
            },
            Self::List(_, items) => {
                let index = if token == "-" { items.len() } else { token.parse().ok()? };
                match action {
                    Action::Add if index <= items.len() => items.insert(index, Self::Written(None, origins)),
                    _ => {
                        let node = items.get_mut(index)?;
                        *node = Self::Written(node.id(), origins);
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Removes an entry. `false` when the text cannot be changed: a merged entry has no bytes here, and a mapping
    /// without entries would read as null.
    fn remove(&mut self, token: &str) -> bool {
        let Self::Map(_, entries) = self else { return false };
        let others = entries.iter().any(|(key, node)| key != token && matches!(node, Self::Unchanged(_)));
        let Some((_, node)) = entries.iter_mut().find(|(key, _)| key == token) else { return false };
        let id = node.id().filter(|_| others);
        *node = id.map_or(Self::Merged, Self::Removed);
        id.is_some()
    }

    /// The node in the text, or the one that is replaced.
    pub(super) fn id(&self) -> Option<NodeId> {
        match self {
            Self::Unchanged(id) | Self::Map(id, _) | Self::List(id, _) | Self::Removed(id) => Some(*id),
            Self::Written(old, _) => *old,
            Self::Merged => None,
        }
    }

    /// The origins of its parts.
    pub(super) fn origins(&self) -> ValueOrigins {
        match self {
            Self::Unchanged(_) | Self::Merged | Self::Removed(_) => ValueOrigins::default(),
            Self::Written(_, origins) => origins.clone(),
            Self::Map(_, entries) => ValueOrigins::of_entries(
                entries.iter().map(|(key, node)| (key.clone(), node.origins())).collect(),
            ),
            Self::List(_, items) => ValueOrigins::of_elements(items.iter().map(Self::origins).collect()),
        }
    }
}

/// The values of a mapping's own keys.
fn own_entries(parsed: ParsedSource<'_>, id: NodeId) -> BTreeMap<String, NodeId> {
    let NodeKind::Map(_, entries) = &parsed.outline.node(id).kind else { return BTreeMap::new() };
    let own = entries.iter().filter(|(key, _)| !is_merge(parsed.outline.node(*key), parsed.text));
    own.filter_map(|(key, value)| Some((key_name(parsed.outline, *key, parsed.text)?.into_owned(), *value)))
        .collect()
}
