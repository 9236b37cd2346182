//! Edits carried out on a document that still knows which of its parts stand in the text.
//!
//! ```text
//! edits ──apply──▶ EditedDocument { value: the patched value, tree: what is unchanged, changed, written }
//! ```
//!
//! No text is written here; `block` and `flow` do that from the tree.

use std::borrow::Cow;
use std::collections::BTreeMap;

use json_patch::Patch;
use serde_json::{Value, json};

use crate::manifest::locate::member;
use crate::manifest::outline::{NodeId, NodeKind, Outline};
use crate::manifest::rewrite::origins::ValueOrigins;
use crate::manifest::source::Source;
use crate::manifest::value::{is_merge, key_name};
use crate::model::edit::{Edit, Op, Origin};
use crate::model::pointer::Pointer;

/// A document with its edits made.
#[derive(Debug)]
pub(super) struct EditedDocument {
    /// The new value.
    pub(super) value: Value,
    /// Where its parts come from.
    pub(super) tree: EditedNode,
    /// Whether an edit goes where no change of the text can follow, such as behind an alias: the
    /// document has to be written anew.
    pub(super) needs_reformat: bool,
}

/// Where a part of the value comes from.
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
    /// An entry of a mapping in the text that is taken away.
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

    /// Makes one edit; `pointer` is from the root of the text's document. `None` when it does not
    /// apply. The origins of the edit are added to `all_origins`.
    pub(super) fn apply(
        &mut self,
        parsed: ParsedSource<'_>,
        pointer: &Pointer,
        edit: &Edit,
        all_origins: &mut Vec<Origin>,
    ) -> Option<()> {
        let written = serde_json::to_value(&edit.value).ok()?;
        let origins = ValueOrigins::new(&written, edit, all_origins.len());
        all_origins.extend(edit.origins.iter().cloned());
        let mut tokens: Vec<String> = pointer.tokens().map(Cow::into_owned).collect();
        let target = tokens.pop()?;
        // The value goes down beside the tree: a node is split by what its value holds.
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
            Cursor::Tree(node) if edit.op == Op::Remove => self.needs_reformat |= !node.remove(&target),
            // What an earlier edit wrote has no bytes in the text that could be taken out.
            Cursor::Written(_) if edit.op == Op::Remove => self.needs_reformat = true,
            Cursor::Tree(EditedNode::Written(_, whole)) | Cursor::Written(whole) => {
                whole.write(&target, edit.op, origins)?;
            }
            Cursor::Tree(node) => node.write(&target, edit.op, origins)?,
        }
        let patch = json!([{"op": edit.op.name(), "path": pointer.as_str(), "value": written}]);
        let patch: Patch = serde_json::from_value(patch).ok()?;
        json_patch::patch(&mut self.value, &patch).ok()
    }
}

/// The way down to where an edit is made: through what stands in the text, then through what is new.
enum Cursor<'p> {
    Tree(&'p mut EditedNode),
    Written(&'p mut ValueOrigins),
}

impl Cursor<'_> {
    /// Takes a collection apart. `false` when no change of the text can follow there.
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
    /// Takes a collection apart, so that what is in it can change. `false` when no change of the text
    /// can follow there.
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

    fn write(&mut self, token: &str, op: Op, origins: ValueOrigins) -> Option<()> {
        match self {
            Self::Map(_, entries) => match entries.iter_mut().find(|(key, _)| key == token) {
                Some((_, node)) => *node = Self::Written(node.id(), origins),
                None => entries.push((token.to_owned(), Self::Written(None, origins))),
            },
            Self::List(_, items) => {
                let index = if token == "-" { items.len() } else { token.parse().ok()? };
                match op {
                    Op::Add if index <= items.len() => items.insert(index, Self::Written(None, origins)),
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

    /// Removes an entry. `false` when no change of the text can follow: an entry that was merged in has no
    /// bytes here, and without any entry left the mapping would read as null.
    fn remove(&mut self, token: &str) -> bool {
        let Self::Map(_, entries) = self else { return false };
        let others = entries.iter().any(|(key, node)| key != token && matches!(node, Self::Unchanged(_)));
        let Some((_, node)) = entries.iter_mut().find(|(key, _)| key == token) else { return false };
        let id = node.id().filter(|_| others);
        *node = id.map_or(Self::Merged, Self::Removed);
        id.is_some()
    }

    /// The node of the text that it is, or replaces.
    pub(super) fn id(&self) -> Option<NodeId> {
        match self {
            Self::Unchanged(id) | Self::Map(id, _) | Self::List(id, _) | Self::Removed(id) => Some(*id),
            Self::Written(old, _) => *old,
            Self::Merged => None,
        }
    }

    /// The origins of all that it holds.
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

/// The values of the keys that a mapping itself has.
fn own_entries(parsed: ParsedSource<'_>, id: NodeId) -> BTreeMap<String, NodeId> {
    let NodeKind::Map(_, entries) = &parsed.outline.node(id).kind else { return BTreeMap::new() };
    let own = entries.iter().filter(|(key, _)| !is_merge(parsed.outline.node(*key), parsed.text));
    own.filter_map(|(key, value)| Some((key_name(parsed.outline, *key, parsed.text)?.into_owned(), *value)))
        .collect()
}
