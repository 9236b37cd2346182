//! Changes in flow collections, which all of JSON is. New entries and elements go on lines of their own
//! where the others are, else into the same line. A comment above an entry or behind it stays with that
//! entry. YAML allows no block inside of flow, so that this module does without `block`.

use serde_json::{Map, Value};

use crate::manifest::outline::{Node, NodeId, NodeKind};
use crate::manifest::rewrite::edited::EditedNode;
use crate::manifest::rewrite::emit::{self, Line};
use crate::manifest::rewrite::origins::ValueOrigins;
use crate::manifest::rewrite::splice::{Context, Splice, Splicer, entry_key, is_empty};

/// A new element, or with a key an entry.
struct Member<'m> {
    key: Option<&'m str>,
    value: &'m Value,
    origins: &'m ValueOrigins,
}

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
        let mut new = Vec::new();
        for (key, edited) in entries {
            if let EditedNode::Removed(_) = edited {
                self.remove_member(own, edited)?;
                continue;
            }
            let value = map.get(key)?;
            match edited {
                EditedNode::Unchanged(_) | EditedNode::Merged => {}
                EditedNode::Written(None, origins) => new.push(Member { key: Some(key), value, origins }),
                _ => {
                    let key = entry_key(own, edited);
                    self.edit_in_flow(edited, value, Context { key, block_at: None, ..context })?;
                }
            }
        }
        self.append(last_key.start, last_value.end.max(last_key.end), &new)
    }

    /// Adds members behind the last one, which goes from `start` to `end`.
    fn append(&mut self, start: usize, end: usize, new: &[Member<'_>]) -> Option<()> {
        let margin = self.line_margin(start);
        let Some((has_comma, line_end)) = self.comment_behind(end).filter(|_| !new.is_empty()) else {
            for member in new {
                let mut lines = self.separator(member.origins, margin);
                self.push_member(&mut lines, member, margin);
                self.splices.push(Splice { start: end, end, lines });
            }
            return Some(());
        };
        if !has_comma {
            self.splices.push(Splice { start: end, end, lines: vec![Line::new(",", Vec::new())] });
        }
        let line = self.parsed.source.line_start(start);
        let column = self.parsed.text.get(line..start)?.chars().count();
        let margin = margin.map_or_else(|| " ".repeat(column), str::to_owned);
        let mut lines = vec![Line::default()];
        for (index, member) in new.iter().enumerate() {
            self.push_member(&mut lines, member, Some(&margin));
            if let Some(line) = lines.last_mut().filter(|_| has_comma || index + 1 < new.len()) {
                line.text.push(',');
            }
        }
        self.splices.push(Splice { start: line_end, end: line_end, lines });
        Some(())
    }

    /// For a member that ends at `end` and has a comment behind it: whether a comma is in between, and where
    /// the comment ends.
    fn comment_behind(&self, end: usize) -> Option<(bool, usize)> {
        let line_end = self.parsed.source.line_end(end);
        let rest = self.parsed.text.get(end..line_end)?.trim_start();
        let behind_comma = rest.strip_prefix(',');
        behind_comma
            .unwrap_or(rest)
            .trim_start()
            .starts_with('#')
            .then_some((behind_comma.is_some(), line_end))
    }

    /// Removes an entry, with the comma between it and its neighbour: the one before it, since a comma
    /// behind the last entry is an error in JSON, or for the first entry the one behind it.
    fn remove_member(&mut self, entries: &[(NodeId, NodeId)], edited: &EditedNode) -> Option<()> {
        let id = edited.id()?;
        let at = entries.iter().position(|(_, value)| *value == id)?;
        if let Some(lines) = self.lines_with_comments(*entries.get(at)?) {
            self.splices.push(lines);
            return Some(());
        }
        let end_of = |(key, value): &(NodeId, NodeId)| self.node(*value).end.max(self.node(*key).end);
        let (start, end) = match at.checked_sub(1) {
            Some(before) => (end_of(entries.get(before)?), end_of(entries.get(at)?)),
            None => (self.node(entries.first()?.0).start, self.node(entries.get(1)?.0).start),
        };
        self.splices.push(Splice { start, end, lines: Vec::new() });
        Some(())
    }

    /// The lines of an entry, to be taken away with its comment; `None` when it shares them with something
    /// else, or has no comment behind it or behind its neighbour. Comments are in YAML only, where a comma
    /// behind the last entry is no error.
    fn lines_with_comments(&self, (key, value): (NodeId, NodeId)) -> Option<Splice> {
        let (text, source) = (self.parsed.text, self.parsed.source);
        let (start, end) = (self.node(key).start, self.node(value).end.max(self.node(key).end));
        self.line_margin(start)?;
        let (line, line_end) = (source.line_start(start), source.line_end(end));
        let above = text.get(source.line_start(line.checked_sub(1)?)..line)?;
        let rest = text.get(end..line_end)?.trim_start().trim_start_matches(',').trim_start();
        let has_comments = rest.starts_with('#') || above.contains('#') && rest.is_empty();
        let newline = text.get(line_end..)?.find('\n')? + 1;
        has_comments.then(|| Splice { start: line, end: line_end + newline, lines: Vec::new() })
    }

    pub(super) fn edit_flow_list(
        &mut self,
        node: &Node,
        items: &[EditedNode],
        list: &[Value],
        context: Context,
    ) -> Option<()> {
        // New elements wait for the next one that is in the text: it says where and how they are written.
        let mut waiting: Vec<Member<'_>> = Vec::new();
        let mut previous = None;
        for (edited, value) in items.iter().zip(list) {
            if let EditedNode::Written(None, origins) = edited {
                waiting.push(Member { key: None, value, origins });
                continue;
            }
            let old = self.node(edited.id()?);
            for member in waiting.drain(..) {
                self.insert_before(old.start, &member);
            }
            self.edit_in_flow(edited, value, Context { key: None, block_at: None, ..context })?;
            previous = Some(old);
        }
        let old = previous.filter(|_| node.content < node.end)?;
        self.append(old.start, old.end, &waiting)
    }

    /// Inserts an element before the one at `start`, and above the comments that stand above that one.
    fn insert_before(&mut self, start: usize, member: &Member<'_>) {
        let margin = self.line_margin(start);
        let mut lines = Vec::new();
        self.push_member(&mut lines, member, margin);
        if let Some(last) = lines.last_mut() {
            last.text.push_str(if margin.is_some() { "," } else { self.comma });
        }
        let mut at = start;
        if margin.is_some() {
            // The lines bring their margin along, and end in front of the line that follows.
            at = self.above_comments(start);
            lines.push(Line::default());
        }
        self.splices.push(Splice { start: at, end: at, lines });
    }

    /// The start of the line that `at` is on, or of the first of the comments right above it.
    fn above_comments(&self, at: usize) -> usize {
        let mut line = self.parsed.source.line_start(at);
        while let Some(above) = line.checked_sub(1).map(|end| self.parsed.source.line_start(end)) {
            let text = self.parsed.text.get(above..line).unwrap_or_default();
            if !text.trim_start().starts_with('#') {
                break;
            }
            line = above;
        }
        line
    }

    /// The comma between the element before and a new one, which starts a line of its own where there is
    /// a margin.
    fn separator(&self, origins: &ValueOrigins, margin: Option<&str>) -> Vec<Line> {
        match margin {
            Some(_) => vec![Line::new(",", origins.own())],
            None => vec![Line::new(self.comma, origins.all())],
        }
    }

    /// Adds a member: on lines of its own where there is a margin, else at the end of the last line.
    fn push_member(&self, lines: &mut Vec<Line>, member: &Member<'_>, margin: Option<&str>) {
        let Member { key, value, origins } = *member;
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
