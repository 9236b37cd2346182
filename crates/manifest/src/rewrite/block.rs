//! Turns an edited document into changes of its text, each as small as possible.
//!
//! New lines go behind the line that they follow, and behind its comment; a comment above a list element stays
//! with that element. Where this is not possible the result is `None`, and the caller writes the document anew
//! ([`whole_document`]).

use serde_json::{Map, Value};

use crate::outline::{Form, Node, NodeId, NodeKind};
use crate::rewrite::edited::{EditedDocument, EditedNode, ParsedSource};
use crate::rewrite::emit::{self, Indents, Inline, Line};
use crate::rewrite::origins::ValueOrigins;
use crate::rewrite::splice::{Context, Splice, Splicer, entry_key, is_empty, is_flow};

/// The changes of the text for an edited document, not sorted; of two at one place the first comes first.
pub(super) fn splices(
    parsed: ParsedSource<'_>,
    root: NodeId,
    document: &EditedDocument,
) -> Option<Vec<Splice>> {
    if document.needs_reformat {
        return None;
    }
    let node = parsed.outline.node(root);
    let own = parsed.text.get(node.content..node.end).unwrap_or_default();
    let inline = match is_flow(node) {
        false => Inline::Yaml,
        true if own.contains(": ") || own.contains(", ") => Inline::Json,
        true => Inline::Minified,
    };
    let mut splicer = Splicer { parsed, inline, splices: Vec::new() };
    let indents = Indents { map: map_indent(parsed, node), list: 2 };
    splicer.edit(&document.tree, &document.value, Context { key: None, indents, block_at: None })?;
    Some(splicer.splices)
}

/// The document written anew, as YAML blocks or, where it is one JSON value, as JSON.
pub(super) fn whole_document(parsed: ParsedSource<'_>, root: NodeId, document: &EditedDocument) -> Splice {
    let node = parsed.outline.node(root);
    let text = parsed.text;
    let line = parsed.source.line_start(node.start);
    let before = text.get(line..node.start).unwrap_or_default();
    let indentation = before.trim_start_matches('\u{feff}');
    let alone = indentation.trim().is_empty();
    let start = if alone { node.start - indentation.len() } else { node.start };
    let rest = text.get(node.end..parsed.source.line_end(node.end)).unwrap_or_default().trim_start();
    let end = if rest.starts_with('#') { parsed.source.line_end(node.end) } else { node.end };
    let mut lines = if alone { Vec::new() } else { vec![Line::default()] };
    let indents = Indents { map: 2, list: 0 };
    if is_flow(node) {
        lines.clear();
        emit::pretty(&mut lines, "", &document.value, &document.tree.origins(), "", "  ");
        return Splice { start: node.start, end, lines };
    }
    emit::block(&mut lines, &document.value, &document.tree.origins(), 0, indents);
    Splice { start, end, lines }
}

impl Splicer<'_> {
    /// Makes the changes at a node, in a block or in flow. `None` when the text cannot be changed in place.
    pub(super) fn edit(&mut self, edited: &EditedNode, value: &Value, context: Context) -> Option<()> {
        match (edited, value) {
            (EditedNode::Unchanged(_) | EditedNode::Merged, _) => Some(()),
            (EditedNode::Written(Some(old), origins), _) => {
                self.replace(self.node(*old), value, origins, context)
            }
            (EditedNode::Map(id, entries), Value::Object(map)) => match self.node(*id) {
                node if is_empty(node) => self.replace(node, value, &edited.origins(), context),
                node if is_flow(node) => self.edit_flow_map(node, entries, map, context),
                node => self.edit_block_map(node, entries, map, context),
            },
            (EditedNode::List(id, items), Value::Array(list)) => match self.node(*id) {
                node if is_empty(node) => self.replace(node, value, &edited.origins(), context),
                node if is_flow(node) => self.edit_flow_list(node, items, list, context),
                node => self.edit_block_list(node, items, list, context),
            },
            _ => None,
        }
    }

    fn edit_block_map(
        &mut self,
        node: &Node,
        entries: &[(String, EditedNode)],
        map: &Map<String, Value>,
        context: Context,
    ) -> Option<()> {
        let NodeKind::Map(_, own) = &node.kind else { return None };
        let at = self.column(node.content)?;
        let indents = self.indents_of(own, at, context.indents)?;
        // The first line stays empty: it continues the line behind which the new entries go.
        let mut lines = vec![Line::default()];
        for (key, edited) in entries {
            if let EditedNode::Removed(_) = edited {
                self.remove_line(own, edited)?;
                continue;
            }
            let value = map.get(key)?;
            match edited {
                EditedNode::Unchanged(_) | EditedNode::Merged => {}
                EditedNode::Written(None, origins) => {
                    emit::entry(&mut lines, key, value, origins, at, indents);
                }
                _ => {
                    let key = entry_key(own, edited);
                    self.edit(edited, value, Context { key, indents, block_at: Some(at) })?;
                }
            }
        }
        self.insert_lines(node.end, lines);
        Some(())
    }

    /// Removes the line of an entry, with a comment behind it. `None` when the entry shares its line or
    /// has several.
    fn remove_line(&mut self, entries: &[(NodeId, NodeId)], edited: &EditedNode) -> Option<()> {
        let (key, value) = (self.node(entry_key(entries, edited)?), self.node(edited.id()?));
        let (text, source) = (self.parsed.text, self.parsed.source);
        let (start, end) = (source.line_start(key.start), source.line_end(value.end.max(key.end)));
        let alone = text.get(start..key.start)?.trim().is_empty();
        let end = end + text.get(end..)?.find('\n').map_or(0, |at| at + 1);
        let one_line = text.get(start..end)?.trim_end().lines().count() == 1;
        (alone && one_line).then(|| self.splices.push(Splice { start, end, lines: Vec::new() }))
    }

    fn edit_block_list(
        &mut self,
        node: &Node,
        items: &[EditedNode],
        list: &[Value],
        context: Context,
    ) -> Option<()> {
        let dash = self.first_dash(node, context)?;
        let text = self.parsed.text;
        let margin = text.get(self.parsed.source.line_start(dash)..dash)?;
        let alone = margin.bytes().all(|byte| byte == b' ');
        let at = self.column(dash)?;
        // A comment above the first element is its own, so lines in front of it go above the comment.
        let mut behind = alone.then(|| self.end_of_line_above(dash)).flatten();
        let mut lines = vec![Line::default()];
        for (edited, value) in items.iter().zip(list) {
            if let EditedNode::Written(None, origins) = edited {
                emit::element(&mut lines, value, origins, at, context.indents);
                continue;
            }
            self.insert_lines_at(behind, &mut lines)?;
            let inside = Context { key: None, block_at: None, ..context };
            self.edit(edited, value, inside)?;
            behind = edited.id().map(|id| self.parsed.source.line_end(self.node(id).end));
        }
        self.insert_lines_at(behind, &mut lines)
    }

    /// Inserts the lines collected so far at `at`, the end of a line; the first of them is empty.
    fn insert_lines_at(&mut self, at: Option<usize>, lines: &mut Vec<Line>) -> Option<()> {
        if lines.len() > 1 {
            let at = at?;
            let lines = std::mem::replace(lines, vec![Line::default()]);
            self.splices.push(Splice { start: at, end: at, lines });
        }
        Some(())
    }

    /// Inserts lines behind the line of `at`; the first of them is empty.
    fn insert_lines(&mut self, at: usize, lines: Vec<Line>) {
        if lines.len() > 1 {
            let at = self.parsed.source.line_end(at);
            self.splices.push(Splice { start: at, end: at, lines });
        }
    }

    /// Writes a value in place of an old one: as a block below its key where it needs several lines.
    fn replace(&mut self, old: &Node, value: &Value, origins: &ValueOrigins, context: Context) -> Option<()> {
        let needs_lines = match value {
            Value::Object(map) => !map.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => false,
        };
        // The lines of an old block may hold comments; only writing the document anew may drop those.
        if old.is_collection() && !is_empty(old) && !is_flow(old) {
            return None;
        }
        match context.block_at {
            Some(at) if needs_lines => self.replace_by_block(old, value, origins, at, context),
            _ => self.replace_in_line(old, value, origins, context),
        }
    }

    fn replace_by_block(
        &mut self,
        old: &Node,
        value: &Value,
        origins: &ValueOrigins,
        at: usize,
        context: Context,
    ) -> Option<()> {
        let text = self.parsed.text;
        let key = self.node(context.key?);
        // The old value goes; a comment behind it stays on the line of the key.
        if old.start < old.end {
            let colon = self.behind_colon(key.end)?;
            if text.get(colon..old.end)?.contains('\n') {
                return None;
            }
            let lines = vec![Line::new("", origins.first())];
            self.splices.push(Splice { start: colon, end: old.end, lines });
        }
        let below = if value.is_array() { context.indents.list } else { context.indents.map };
        let mut lines = vec![Line::default()];
        emit::block(&mut lines, value, origins, at + below, context.indents);
        self.insert_lines(old.end.max(key.end), lines);
        Some(())
    }

    /// The column of a byte: the number of characters before it on its line. `None` behind a tab, whose
    /// width is not defined.
    fn column(&self, at: usize) -> Option<usize> {
        let before = self.parsed.text.get(self.parsed.source.line_start(at)..at)?;
        let before = before.trim_start_matches('\u{feff}');
        (!before.contains('\t')).then(|| before.chars().count())
    }

    /// The first dash of a block list. The outline starts a list that is a value at its first element, so
    /// the dash is looked for behind the key.
    fn first_dash(&self, node: &Node, context: Context) -> Option<usize> {
        let Some(key) = context.key else { return Some(node.content) };
        let mut at = self.behind_colon(self.node(key).end)?;
        loop {
            let rest = self.parsed.text.get(at..)?;
            at += match rest.chars().next()? {
                '-' => return Some(at),
                '#' => rest.find('\n')?,
                '&' | '!' => rest.find(char::is_whitespace)?,
                blank if blank.is_whitespace() => blank.len_utf8(),
                _ => return None,
            };
        }
    }

    /// The end of the line above, past comments and blank lines.
    fn end_of_line_above(&self, at: usize) -> Option<usize> {
        let text = self.parsed.text;
        let mut start = self.parsed.source.line_start(at);
        loop {
            let end = start.checked_sub(1)?;
            start = self.parsed.source.line_start(end);
            let line = text.get(start..end)?.trim();
            if !line.is_empty() && !line.starts_with('#') {
                return Some(self.parsed.source.line_end(start));
            }
        }
    }

    /// The byte behind the colon of a key that ends at `end`.
    fn behind_colon(&self, end: usize) -> Option<usize> {
        let rest = self.parsed.text.get(end..)?;
        let blanks = rest.len() - rest.trim_start().len();
        rest.trim_start().starts_with(':').then_some(end + blanks + 1)
    }

    /// How collections below a block mapping are indented: like its existing ones, else like those around it.
    fn indents_of(&self, entries: &[(NodeId, NodeId)], at: usize, around: Indents) -> Option<Indents> {
        let mut indents = around;
        for (key, value) in entries {
            let node = self.node(*value);
            match &node.kind {
                NodeKind::List(Form::Block, _) => {
                    let context = Context { key: Some(*key), indents, block_at: None };
                    indents.list = self.column(self.first_dash(node, context)?)?.checked_sub(at)?;
                }
                NodeKind::Map(Form::Block, _) => indents.map = self.column(node.content)?.checked_sub(at)?,
                _ => {}
            }
        }
        Some(indents)
    }
}

/// The indentation of the mappings inside a mapping, in columns; usually two.
fn map_indent(parsed: ParsedSource<'_>, node: &Node) -> usize {
    let NodeKind::Map(Form::Block, entries) = &node.kind else { return 2 };
    let inner = entries.iter().map(|(_, value)| parsed.outline.node(*value));
    let inner = inner.filter(|value| matches!(value.kind, NodeKind::Map(Form::Block, _)));
    let column = |at: usize| at - parsed.source.line_start(at);
    let indents = inner.map(|value| column(value.content).saturating_sub(column(node.content)));
    indents.filter(|indent| *indent > 0).min().unwrap_or(2)
}
