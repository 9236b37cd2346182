//! Changes of the text, and the steps that `block` and `flow` share to make them. `rewrite` applies the changes.

use serde_json::Value;

use crate::outline::{Form, Node, NodeId, NodeKind};
use crate::rewrite::edited::{EditedNode, ParsedSource};
use crate::rewrite::emit::{self, Indents, Inline, Line};
use crate::rewrite::origins::ValueOrigins;

/// A change of the text: lines take the place of the bytes from `start` to `end`. The first of them
/// continues the line that `start` is on, and the text behind `end` continues the last.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Splice {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) lines: Vec<Line>,
}

/// Collects the changes of one document.
pub(super) struct Splicer<'s> {
    pub(super) parsed: ParsedSource<'s>,
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

impl<'s> Splicer<'s> {
    pub(super) fn node(&self, id: NodeId) -> &'s Node {
        self.parsed.outline.node(id)
    }

    /// Whether the document is JSON.
    pub(super) const fn is_json(&self) -> bool {
        !matches!(self.inline, Inline::Yaml)
    }

    /// Writes a value in place of an old one, on the line of its key if it has one.
    pub(super) fn replace_in_line(
        &mut self,
        old: &Node,
        value: &Value,
        origins: &ValueOrigins,
        context: Context,
    ) -> Option<()> {
        let mut lines = Vec::new();
        let margin = context.key.and_then(|key| self.line_margin(self.node(key).start));
        if let (true, Some(margin)) = (self.is_json(), margin) {
            emit::pretty(&mut lines, "", value, origins, margin, self.indent_unit(margin));
        } else {
            let in_flow = context.block_at.is_none() && context.key.is_some();
            let written = match value {
                Value::Object(_) | Value::Array(_) => self.inline.value(value),
                _ if self.is_json() => self.inline.value(value),
                _ => emit::scalar(value, in_flow),
            };
            lines.push(Line::new(written, origins.all()));
        }
        let (start, mut end) = (old.start, old.end);
        let text = self.parsed.text;
        if start == end {
            // The value is empty: `key:`, `- ` or, in flow, just `key`.
            let lacks_colon = context.key.is_some() && !text.get(..start)?.ends_with(':');
            if let Some(first) = lines.first_mut() {
                first.text.insert_str(0, if lacks_colon { ": " } else { " " });
            }
        }
        // In flow, blanks before the comma would end up behind the new value.
        let rest = text.get(end..)?;
        if start == end && rest.trim_start_matches(' ').starts_with(',') {
            end += rest.find(',')?;
        }
        self.splices.push(Splice { start, end, lines });
        Some(())
    }

    /// The white space before an element or entry that begins its line. `None` when it does not begin its line, and on
    /// the first line, which does not show how other lines are indented.
    pub(super) fn line_margin(&self, start: usize) -> Option<&'s str> {
        let text = self.parsed.text;
        let line = self.parsed.source.line_start(start);
        let before = text.get(line..start)?;
        (line > 0 && before.bytes().all(|byte| matches!(byte, b' ' | b'\t'))).then_some(before)
    }

    /// One level of JSON indentation: a tab where the margin has one, else as many spaces as the text uses.
    pub(super) fn indent_unit(&self, margin: &'s str) -> &'s str {
        if margin.starts_with('\t') {
            return "\t";
        }
        // The members of the outermost value are indented by one level.
        let text = self.parsed.text;
        let indented = text.lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or_default();
        let width = indented.len() - indented.trim_start_matches(' ').len();
        indented.get(..width).filter(|unit| !unit.is_empty()).unwrap_or("  ")
    }
}

/// The key of the entry that an edited node is the value of.
pub(super) fn entry_key(entries: &[(NodeId, NodeId)], edited: &EditedNode) -> Option<NodeId> {
    let id = edited.id()?;
    entries.iter().find(|(_, value)| *value == id).map(|(key, _)| *key)
}

/// Whether a collection is written in brackets or braces.
pub(super) fn is_flow(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Map(Form::Flow, _) | NodeKind::List(Form::Flow, _))
}

/// Whether this is `{}` or `[]`.
pub(super) fn is_empty(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Map(_, entries) => entries.is_empty(),
        NodeKind::List(_, items) => items.is_empty(),
        _ => false,
    }
}
