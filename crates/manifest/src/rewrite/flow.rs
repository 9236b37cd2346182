//! Changes in flow collections, as in all of JSON. New entries and elements get lines of their own
//! if the existing ones have, else they go into the same line. A comment above an entry or behind it stays with that
//! entry.

use serde_json::{Map, Value};

use crate::outline::{Node, NodeId, NodeKind};
use crate::rewrite::edited::EditedNode;
use crate::rewrite::emit::{self, Line};
use crate::rewrite::origins::ValueOrigins;
use crate::rewrite::splice::{Context, Splice, Splicer, entry_key};

/// A new element, or with a key an entry.
struct Member<'m> {
    key: Option<&'m str>,
    value: &'m Value,
    origins: &'m ValueOrigins,
}

impl Splicer<'_> {
    pub(super) fn edit_flow_map(
        &mut self,
        node: &Node,
        entries: &[(String, EditedNode)],
        map: &Map<String, Value>,
        context: Context,
    ) -> Option<()> {
        let NodeKind::Map(_, own) = &node.kind else { return None };
        // A pair inside of `[a: b]` is a mapping without braces, which cannot have a second entry.
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
                    self.edit(edited, value, Context { key, block_at: None, ..context })?;
                }
            }
        }
        self.append(last_key.start, last_value.end.max(last_key.end), &new)
    }

    /// Adds members behind the last one, which has the bytes `start..end`.
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

    /// Removes an entry with one comma: the one before it, since a comma behind the last entry is an error in JSON, or
    /// for the first entry the one behind it.
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

    /// Removes the lines of an entry with its comment. `None` when it shares its lines, or when neither it nor its
    /// neighbour has a comment. Only YAML has comments, and there a comma behind the last entry is allowed.
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
        // New elements wait for the next one in the text, which shows where and how they are written.
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
            self.edit(edited, value, Context { key: None, block_at: None, ..context })?;
            previous = Some(old);
        }
        let old = previous.filter(|_| node.content < node.end)?;
        self.append(old.start, old.end, &waiting)
    }

    /// Inserts an element before the one at `start`, and above the comments above that one.
    fn insert_before(&mut self, start: usize, member: &Member<'_>) {
        let (margin, comma) = (self.line_margin(start), self.inline.comma());
        let mut lines = Vec::new();
        self.push_member(&mut lines, member, margin);
        if let Some(last) = lines.last_mut() {
            last.text.push_str(if margin.is_some() { "," } else { &comma });
        }
        let mut at = start;
        if margin.is_some() {
            // The lines have their margin, and an empty last one ends in front of the next line.
            at = self.above_comments(start);
            lines.push(Line::default());
        }
        self.splices.push(Splice { start: at, end: at, lines });
    }

    /// The start of the line of `at`, or of the first of the comments right above it.
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
            None => vec![Line::new(self.inline.comma(), origins.all())],
        }
    }

    /// Adds a member: on lines of its own where there is a margin, else at the end of the last line.
    fn push_member(&self, lines: &mut Vec<Line>, member: &Member<'_>, margin: Option<&str>) {
        let Member { key, value, origins } = *member;
        if let Some(margin) = margin.filter(|_| self.is_json()) {
            let head = key.map_or_else(String::new, |key| format!("{}: ", emit::double_quoted(key)));
            let (head, unit) = (format!("{margin}{head}"), self.indent_unit(margin));
            return emit::pretty(lines, &head, value, origins, margin, unit);
        }
        let member = match key {
            Some(key) => self.inline.entry(key, value),
            None => self.inline.value(value),
        };
        match (margin, lines.last_mut()) {
            (None, Some(line)) => line.text.push_str(&member),
            (margin, _) => {
                lines.push(Line::new(format!("{}{member}", margin.unwrap_or_default()), origins.all()));
            }
        }
    }
}
