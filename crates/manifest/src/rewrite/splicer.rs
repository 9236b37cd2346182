//! Turns the difference of two values into changes of the text, each as small as possible. Where the text cannot be
//! changed in place the result is `None`, and the caller writes the document anew ([`whole_document`]).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::outline::{Form, Node, NodeId, NodeKind, Outline};
use crate::rewrite::Splice;
use crate::rewrite::emit::{self, Indents, is_long};
use crate::source::Source;
use crate::value::{is_merge, key_name};

/// Collects the changes of one document.
pub(super) struct Splicer<'s> {
    pub(super) source: &'s Source,
    pub(super) text: &'s str,
    pub(super) outline: &'s Outline,
    pub(super) splices: Vec<Splice>,
}

/// The surroundings of a node.
#[derive(Clone, Copy)]
pub(super) struct Context {
    /// The key it is the value of.
    pub(super) key: Option<NodeId>,
    /// How the collections around it are indented.
    pub(super) indents: Indents,
    /// The column of the block mapping it is an entry of, when it is.
    pub(super) block_at: Option<usize>,
}

/// The key and the value of each entry that a mapping has itself, by name.
pub(super) type OwnEntries<'s> = BTreeMap<Cow<'s, str>, (NodeId, NodeId)>;

/// The changes that turn the value of a document into a new one, not sorted.
pub(super) fn splices(
    source: &Source,
    outline: &Outline,
    root: NodeId,
    old: &Value,
    new: &Value,
) -> Option<Vec<Splice>> {
    let node = outline.node(root);
    if is_flow(node) {
        let own = source.text().get(node.start..node.end)?;
        return (is_json(own) || !own.contains('\n')).then(|| vec![whole_document(source, node, new)]);
    }
    let mut splicer = Splicer { source, text: source.text(), outline, splices: Vec::new() };
    let indents = Indents { map: splicer.map_indent(node), list: 2 };
    splicer.edit(root, old, new, Context { key: None, indents, block_at: None })?;
    Some(splicer.splices)
}

/// The document written anew: as YAML blocks or, where it is one value in braces, in that form.
pub(super) fn whole_document(source: &Source, node: &Node, value: &Value) -> Splice {
    if is_flow(node) {
        let own = source.text().get(node.start..node.end).unwrap_or_default();
        let text = if is_json(own) { json_like(own, value) } else { emit::inline(value) };
        return Splice { start: node.start, end: node.end, text };
    }
    let text = source.text();
    let before = text.get(source.line_start(node.start)..node.start).unwrap_or_default();
    let indentation = before.trim_start_matches('\u{feff}');
    let alone = indentation.trim().is_empty();
    let start = if alone { node.start - indentation.len() } else { node.start };
    let line_end = source.line_end(node.end);
    let rest = text.get(node.end..line_end).unwrap_or_default().trim_start();
    let end = if rest.starts_with('#') { line_end } else { node.end };
    let mut lines = if alone { Vec::new() } else { vec![String::new()] };
    emit::block(&mut lines, value, 0, Indents { map: 2, list: 0 });
    Splice { start, end, text: lines.join("\n") }
}

impl<'s> Splicer<'s> {
    pub(super) fn node(&self, id: NodeId) -> &'s Node {
        self.outline.node(id)
    }

    /// Makes the changes at a node: inside of a block, else the node as a whole.
    pub(super) fn edit(&mut self, id: NodeId, old: &Value, new: &Value, context: Context) -> Option<()> {
        if old == new {
            return Some(());
        }
        let node = self.node(id);
        match (&node.kind, old, new) {
            (NodeKind::Map(Form::Block, entries), Value::Object(before), Value::Object(after)) => {
                let own = self.own_entries(entries);
                let lost = before.keys().filter(|name| !after.contains_key(*name));
                let (merged, lost): (Vec<_>, Vec<_>) =
                    lost.partition(|name| !own.contains_key(name.as_str()));
                if !merged.is_empty() {
                    return None;
                }
                // A mapping without entries would be read as null.
                if !lost.is_empty() && lost.len() == own.len() {
                    return self.replace(node, new, context);
                }
                self.edit_block_map(node, &own, before, after, context)
            }
            (NodeKind::List(Form::Block, items), Value::Array(before), Value::Array(after)) => {
                self.edit_block_list(node, items, before, after, context)
            }
            _ => self.replace(node, new, context),
        }
    }

    fn own_entries(&self, entries: &[(NodeId, NodeId)]) -> OwnEntries<'s> {
        let (outline, text) = (self.outline, self.text);
        let own = entries.iter().filter(|(key, _)| !is_merge(outline.node(*key), text));
        own.filter_map(|(key, value)| Some((key_name(outline, *key, text)?, (*key, *value)))).collect()
    }

    /// Writes a value in place of an old one: as a block below its key where it needs several lines.
    pub(super) fn replace(&mut self, old: &Node, value: &Value, context: Context) -> Option<()> {
        let (is_block, is_filled) = match &old.kind {
            NodeKind::Map(form, entries) => (*form == Form::Block, !entries.is_empty()),
            NodeKind::List(form, items) => (*form == Form::Block, !items.is_empty()),
            _ => (false, false),
        };
        // Its lines may hold comments; only writing the document anew may drop those.
        if is_block || is_filled && self.text.get(old.start..old.end)?.contains('\n') {
            return None;
        }
        match context.block_at {
            Some(at) if is_long(value) && !is_filled => self.replace_by_block(old, value, at, context),
            _ => {
                self.replace_in_line(old, value);
                Some(())
            }
        }
    }

    /// Writes a value in place of an old one, on the line of its key if it has one.
    fn replace_in_line(&mut self, old: &Node, value: &Value) {
        let is_empty = old.start == old.end;
        let new = if value.is_string() { emit::scalar(value, false) } else { emit::inline(value) };
        let text = if is_empty { format!(" {new}") } else { new };
        self.splices.push(Splice { start: old.start, end: old.end, text });
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// A value as JSON in the form of another one: in one line, or indented as that is.
fn json_like(other: &str, value: &Value) -> String {
    let Some((_, lines)) = other.split_once('\n') else { return value.to_string() };
    // The members of the outermost value are indented by one level.
    let first = lines.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let unit = first.get(..first.len() - first.trim_start().len()).filter(|unit| !unit.is_empty());
    let mut json = Vec::new();
    let formatter = PrettyFormatter::with_indent(unit.unwrap_or("  ").as_bytes());
    let _infallible = value.serialize(&mut Serializer::with_formatter(&mut json, formatter));
    String::from_utf8(json).unwrap_or_default()
}

/// Whether a collection is written in brackets or braces.
fn is_flow(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Map(Form::Flow, _) | NodeKind::List(Form::Flow, _))
}

/// For each new element the index of the old one that it was, or `None` for an inserted one. `None` when an old element
/// is gone.
pub(super) fn align(old: &[Value], new: &[Value]) -> Option<Vec<Option<usize>>> {
    let mut inserted = new.len().checked_sub(old.len())?;
    let mut found = Vec::with_capacity(new.len());
    let mut left = new.iter();
    for (index, element) in old.iter().enumerate() {
        // An element that has changed is the next one that cannot be another.
        let skipped = left.clone().take(inserted + 1).position(|it| is_same(element, it)).unwrap_or(0);
        found.extend(std::iter::repeat_n(None, skipped));
        found.push(Some(index));
        inserted -= skipped;
        left.nth(skipped)?;
    }
    found.resize(new.len(), None);
    Some(found)
}

/// Whether two elements are equal, or objects of one name.
fn is_same(one: &Value, other: &Value) -> bool {
    let name = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    one == other || name(one).is_some_and(|of_one| name(other) == Some(of_one))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_elements_behind_inserted_ones() {
        for (old, new, expected) in [
            (json!([1, 2]), json!([0, 1, 5, 2, 3]), Some(vec![None, Some(0), None, Some(1), None])),
            (
                json!([{"name": "a"}]),
                json!([{"name": "b"}, {"name": "a", "x": 1}]),
                Some(vec![None, Some(0)]),
            ),
            (json!([{"name": "a"}]), json!([{"name": "b"}, {"name": "c"}]), Some(vec![Some(0), None])),
            (json!([1, 2, 3]), json!([1, 9, 3]), Some(vec![Some(0), Some(1), Some(2)])),
            (json!([1, 2]), json!([2]), None),
        ] {
            let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
            assert_eq!(align(&list(&old), &list(&new)), expected, "{old} {new}");
        }
    }
}
