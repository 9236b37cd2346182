//! Changes in flow collections, which all of JSON is. New entries and elements go on lines of their own
//! where the others are, else into the same line. YAML allows no block inside of flow, so that this module
//! does without `block`.

use serde_json::{Map, Value};

use crate::manifest::outline::{Node, NodeId, NodeKind};
use crate::manifest::rewrite::edited::EditedNode;
use crate::manifest::rewrite::emit::{self, Line};
use crate::manifest::rewrite::origins::ValueOrigins;
use crate::manifest::rewrite::splice::{Context, Splice, Splicer, entry_key, is_empty};

impl Splicer<'_> {
    /// The changes at a node that stands in flow. `None` when the text cannot be changed in place.
    fn edit_in_flow(&mut self, edited: &EditedNode, value: &Value, context: Context) -> Option<()> {
        match (edited, value) {
            (EditedNode::Unchanged(_) | EditedNode::Merged, _) => Some(()),
            (EditedNode::Written(Some(old), origins), _) => {
                self.replace_in_line(self.node(*old), value, origins, context)
            }
            (EditedNode::Map(id, entries), Value::Object(map)) => match self.node(*id) {
                node if is_empty(node) => self.replace_in_line(node, value, &edited.origins(), context),
                node => self.edit_flow_map(node, entries, map, context),
            },
            (EditedNode::List(id, items), Value::Array(list)) => match self.node(*id) {
                node if is_empty(node) => self.replace_in_line(node, value, &edited.origins(), context),
                node => self.edit_flow_list(node, items, list, context),
            },
            _ => None,
        }
    }

    pub(super) fn edit_flow_map(
        &mut self,
        node: &Node,
        entries: &[(String, EditedNode)],
        map: &Map<String, Value>,
        context: Context,
    ) -> Option<()> {
        let NodeKind::Map(_, own) = &node.kind else { return None };
        // A pair inside of `[a: b]` is a mapping without braces, into which nothing more can go.
        if !self.parsed.text.get(node.content..)?.starts_with('{') {
            return None;
        }
        let (last_key, last_value) = own.last().map(|(key, value)| (self.node(*key), self.node(*value)))?;
        let margin = self.line_margin(last_key.start);
        let end = last_value.end.max(last_key.end);
        for (key, edited) in entries {
            if let EditedNode::Removed(_) = edited {
                self.remove_member(own, edited)?;
                continue;
            }
            let value = map.get(key)?;
            match edited {
                EditedNode::Unchanged(_) | EditedNode::Merged => {}
                EditedNode::Written(None, origins) => {
                    let mut lines = self.separator(origins, margin);
                    self.push_member(&mut lines, Some(key), value, origins, margin);
                    self.splices.push(Splice { start: end, end, lines });
                }
                _ => {
                    let key = entry_key(own, edited);
                    self.edit_in_flow(edited, value, Context { key, block_at: None, ..context })?;
                }
            }
        }
        Some(())
    }

    /// Removes an entry, with the comma between it and its neighbour: the one before it, since a comma
    /// behind the last entry is an error in JSON, or for the first entry the one behind it.
    fn remove_member(&mut self, entries: &[(NodeId, NodeId)], edited: &EditedNode) -> Option<()> {
        let id = edited.id()?;
        let at = entries.iter().position(|(_, value)| *value == id)?;
        let end_of = |(key, value): &(NodeId, NodeId)| self.node(*value).end.max(self.node(*key).end);
        let (start, end) = match at.checked_sub(1) {
            Some(before) => (end_of(entries.get(before)?), end_of(entries.get(at)?)),
            None => (self.node(entries.first()?.0).start, self.node(entries.get(1)?.0).start),
        };
        self.splices.push(Splice { start, end, lines: Vec::new() });
        Some(())
    }

    pub(super) fn edit_flow_list(
        &mut self,
        node: &Node,
        items: &[EditedNode],
        list: &[Value],
        context: Context,
    ) -> Option<()> {
        // New elements wait for the next one that is in the text: it says where and how they are written.
        let mut waiting: Vec<(&Value, &ValueOrigins)> = Vec::new();
        let mut previous = None;
        for (edited, value) in items.iter().zip(list) {
            if let EditedNode::Written(None, origins) = edited {
                waiting.push((value, origins));
                continue;
            }
            let old = self.node(edited.id()?);
            let margin = self.line_margin(old.start);
            for (value, origins) in waiting.drain(..) {
                self.insert_before(old.start, value, origins, margin);
            }
            self.edit_in_flow(edited, value, Context { key: None, block_at: None, ..context })?;
            previous = Some(old);
        }
        let old = previous.filter(|_| node.content < node.end)?;
        let margin = self.line_margin(old.start);
        for (value, origins) in waiting {
            let mut lines = self.separator(origins, margin);
            self.push_member(&mut lines, None, value, origins, margin);
            self.splices.push(Splice { start: old.end, end: old.end, lines });
        }
        Some(())
    }

    /// Inserts an element before the one at `start`.
    fn insert_before(&mut self, start: usize, value: &Value, origins: &ValueOrigins, margin: Option<&str>) {
        let mut lines = Vec::new();
        self.push_member(&mut lines, None, value, origins, margin);
        // The margin of the old element is in the text already, in front of `start`; the old element then
        // needs one of its own.
        if let (Some(first), Some(margin)) = (lines.first_mut(), margin) {
            first.text = first.text.strip_prefix(margin).unwrap_or(&first.text).to_owned();
        }
        if let Some(last) = lines.last_mut() {
            last.text.push_str(if margin.is_some() { "," } else { self.comma });
        }
        if let Some(margin) = margin {
            lines.push(Line::new(margin, Vec::new()));
        }
        self.splices.push(Splice { start, end: start, lines });
    }

    /// The comma between the element before and a new one, which starts a line of its own where there is
    /// a margin.
    fn separator(&self, origins: &ValueOrigins, margin: Option<&str>) -> Vec<Line> {
        match margin {
            Some(_) => vec![Line::new(",", origins.own())],
            None => vec![Line::new(self.comma, origins.all())],
        }
    }

    /// Adds a new element, or with a key an entry: on lines of its own where there is a margin, else at
    /// the end of the last line.
    fn push_member(
        &self,
        lines: &mut Vec<Line>,
        key: Option<&str>,
        value: &Value,
        origins: &ValueOrigins,
        margin: Option<&str>,
    ) {
        if let (Some(margin), true) = (margin, self.json) {
            let head = key.map_or_else(String::new, |key| format!("{}: ", emit::json(&key.into(), "")));
            return emit::pretty(
                lines,
                &format!("{margin}{head}"),
                value,
                origins,
                margin,
                self.indent_unit(margin),
            );
        }
        let gap = self.comma.trim_start_matches(',');
        let member = match (key, self.json) {
            (Some(key), true) => emit::json_entry(key, value, gap),
            (None, true) => emit::json(value, gap),
            (Some(key), false) => emit::flow_entry(key, value),
            (None, false) => emit::flow(value),
        };
        match (margin, lines.last_mut()) {
            (None, Some(line)) => line.text.push_str(&member),
            (margin, _) => {
                lines.push(Line::new(format!("{}{member}", margin.unwrap_or_default()), origins.all()));
            }
        }
    }
}
