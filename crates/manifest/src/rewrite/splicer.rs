//! Turns the difference of two values into changes of the text, each as small as possible. Where the text cannot be
//! changed in place the result is `None`, and the caller writes the document anew ([`whole_document`]).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::outline::{Form, Node, NodeId, NodeKind, Outline};
use crate::rewrite::Splice;
use crate::rewrite::emit::{self, Indents, Inline, is_long};
use crate::source::Source;
use crate::value::{is_merge, key_name};
use crate::yaml;

/// Collects the changes of one document.
pub(super) struct Splicer<'s> {
    pub(super) source: &'s Source,
    pub(super) text: &'s str,
    pub(super) outline: &'s Outline,
    /// How values are written in one line.
    pub(super) inline: Inline,
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
    let own = source.text().get(node.content..node.end).unwrap_or_default();
    let inline = match is_flow(node) {
        false => Inline::Yaml,
        true if own.contains(": ") || own.contains(", ") => Inline::Json,
        true => Inline::Minified,
    };
    let mut splicer = Splicer { source, text: source.text(), outline, inline, splices: Vec::new() };
    let indents = Indents { map: splicer.map_indent(node), list: 2 };
    splicer.edit(root, old, new, Context { key: None, indents, block_at: None })?;
    Some(splicer.splices)
}

/// The document written anew, as YAML blocks or, where it is one JSON value, as JSON.
pub(super) fn whole_document(source: &Source, node: &Node, value: &Value) -> Splice {
    if is_flow(node) {
        return Splice { start: node.start, end: node.end, text: emit::pretty("", value, "", "  ") };
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

    /// Makes the changes at a node, in a block or in flow.
    pub(super) fn edit(&mut self, id: NodeId, old: &Value, new: &Value, context: Context) -> Option<()> {
        if old == new {
            return Some(());
        }
        let node = self.node(id);
        match (&node.kind, old, new) {
            (NodeKind::Map(form, entries), Value::Object(before), Value::Object(after))
                if !entries.is_empty() =>
            {
                let own = self.own_entries(entries);
                let lost = before.keys().filter(|name| !after.contains_key(*name));
                let (lost, merged): (Vec<_>, Vec<_>) = lost.partition(|name| own.contains_key(name.as_str()));
                // What is merged cannot go by itself, and a mapping without entries would be read as null.
                if !merged.is_empty() || !lost.is_empty() && lost.len() == own.len() {
                    return self.write_anew(node, new, context);
                }
                match form {
                    Form::Block => self.edit_block_map(node, &own, before, after, context),
                    Form::Flow => self.edit_flow_map(node, &own, before, after, context),
                }
            }
            (NodeKind::List(form, items), Value::Array(before), Value::Array(after)) if !items.is_empty() => {
                match form {
                    Form::Block => self.edit_block_list(node, items, before, after, context),
                    Form::Flow => self.edit_flow_list(node, items, before, after, context),
                }
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
        // The lines of an old block may hold comments; only writing the document anew may drop those.
        if matches!(old.kind, NodeKind::Map(Form::Block, _) | NodeKind::List(Form::Block, _)) {
            return None;
        }
        match context.block_at {
            Some(at) if is_long(value) => self.replace_by_block(old, value, at, context),
            _ => self.replace_in_line(old, value, context),
        }
    }

    /// Writes a collection in braces or brackets anew. `None` for a block, and when a comment would go.
    pub(super) fn write_anew(&mut self, old: &Node, value: &Value, context: Context) -> Option<()> {
        let stays = !is_flow(old) || self.has_comment(old, old.start, old.end);
        if stays { None } else { self.replace_in_line(old, value, context) }
    }

    /// Whether a comment begins in these bytes of a collection in braces or brackets.
    pub(super) fn has_comment(&self, node: &Node, start: usize, end: usize) -> bool {
        let own = self.text.get(node.start..node.end).unwrap_or_default();
        yaml::comments(own).iter().any(|(at, _)| (start..end).contains(&(node.start + at)))
    }

    /// Writes a value in place of an old one, on the line of its key if it has one.
    fn replace_in_line(&mut self, old: &Node, value: &Value, context: Context) -> Option<()> {
        let margin = context.key.and_then(|key| self.line_margin(self.node(key).start));
        let mut new = match margin.filter(|_| self.is_json()) {
            Some(margin) => emit::pretty("", value, margin, self.indent_unit(margin)),
            None if self.is_json() || value.is_object() || value.is_array() => self.inline.value(value),
            None => emit::scalar(value, context.block_at.is_none() && context.key.is_some()),
        };
        let (start, mut end) = (old.start, old.end);
        if start == end {
            // The value is empty: `key:`, `- ` or, in flow, just `key`.
            let lacks_colon = context.key.is_some() && !self.text.get(..start)?.ends_with(':');
            new.insert_str(0, if lacks_colon { ": " } else { " " });
            // In flow, blanks before the comma would end up behind the new value.
            let rest = self.text.get(end..)?;
            if rest.trim_start_matches(' ').starts_with(',') {
                end += rest.find(',')?;
            }
        }
        self.splices.push(Splice { start, end, text: new });
        Some(())
    }

    /// Whether the document is JSON.
    pub(super) const fn is_json(&self) -> bool {
        !matches!(self.inline, Inline::Yaml)
    }

    /// The white space before an element or entry that begins its line. `None` when it does not begin its line, and on
    /// the first line, which does not show how other lines are indented.
    pub(super) fn line_margin(&self, start: usize) -> Option<&'s str> {
        let line = self.source.line_start(start);
        let before = self.text.get(line..start)?;
        (line > 0 && before.bytes().all(|byte| matches!(byte, b' ' | b'\t'))).then_some(before)
    }

    /// One level of JSON indentation: a tab where the margin has one, else as many spaces as the text uses.
    pub(super) fn indent_unit(&self, margin: &'s str) -> &'s str {
        if margin.starts_with('\t') {
            return "\t";
        }
        // The members of the outermost value are indented by one level.
        let indented = self.text.lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or_default();
        let width = indented.len() - indented.trim_start_matches(' ').len();
        indented.get(..width).filter(|unit| !unit.is_empty()).unwrap_or("  ")
    }
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
