//! Changes in flow collections, as in all of JSON. New entries and elements get lines of their own if the existing ones
//! have, else they go into the same line.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::outline::{Node, NodeId, NodeKind};
use crate::rewrite::splicer::{Context, OwnEntries, Splicer, align};
use crate::rewrite::{Splice, emit};

impl Splicer<'_> {
    pub(super) fn edit_flow_map(
        &mut self,
        node: &Node,
        own: &OwnEntries<'_>,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        context: Context,
    ) -> Option<()> {
        // A pair inside of `[a: b]` is a mapping without braces, which cannot have a second entry.
        if !self.text.get(node.content..)?.starts_with('{') {
            return None;
        }
        let NodeKind::Map(_, entries) = &node.kind else { return None };
        let gone = own.iter().filter(|(name, _)| !new.contains_key(&***name));
        let gone: BTreeSet<NodeId> = gone.map(|(_, (key, _))| *key).collect();
        let place = |(key, value): &(NodeId, NodeId)| {
            let (start, end) = (self.node(*key).start, self.node(*value).end.max(self.node(*key).end));
            (start, end, !gone.contains(key))
        };
        let places: Vec<_> = entries.iter().map(place).collect();
        self.remove_members(node, &places)?;
        for (name, (key, value)) in own {
            if let Some(new) = new.get(&**name) {
                let inside = Context { key: Some(*key), block_at: None, ..context };
                self.edit(*value, old.get(&**name)?, new, inside)?;
            }
        }
        let (start, end, _) = *places.last()?;
        for (name, value) in new {
            if !own.contains_key(name.as_str()) && old.get(name) != Some(value) {
                self.append(start, end, Some(name), value);
            }
        }
        Some(())
    }

    /// Removes those that do not stay, each with one comma: that before it, since a comma behind the last entry is an error
    /// in JSON, but in front of the first that stays the one behind it. `None` when a comment would go with it.
    fn remove_members(&mut self, node: &Node, places: &[(usize, usize, bool)]) -> Option<()> {
        let first = places.iter().position(|(.., stays)| *stays)?;
        for (at, (start, end, _)) in places.iter().enumerate().filter(|(_, (.., stays))| !stays) {
            let (start, end) =
                if at < first { (*start, places.get(at + 1)?.0) } else { (places.get(at - 1)?.1, *end) };
            if self.has_comment(node, start, end) {
                return None;
            }
            self.splices.push(Splice { start, end, text: String::new() });
        }
        Some(())
    }

    pub(super) fn edit_flow_list(
        &mut self,
        node: &Node,
        items: &[NodeId],
        old: &[Value],
        new: &[Value],
        context: Context,
    ) -> Option<()> {
        let Some(found) = align(old, new) else {
            return self.write_anew(node, &Value::from(new.to_vec()), context);
        };
        // New elements wait for the next one in the text, which shows where and how they are written.
        let mut waiting = Vec::new();
        for (value, from) in new.iter().zip(found) {
            let Some(index) = from else {
                waiting.push(value);
                continue;
            };
            let id = *items.get(index)?;
            let start = self.node(id).start;
            for value in waiting.drain(..) {
                let (member, gap) = (self.member(None, value, start), self.gap(start));
                self.splices.push(Splice { start, end: start, text: format!("{member},{gap}") });
            }
            self.edit(id, old.get(index)?, value, Context { key: None, block_at: None, ..context })?;
        }
        let last = self.node(*items.last()?);
        for value in waiting {
            self.append(last.start, last.end, None, value);
        }
        Some(())
    }

    /// Adds a member behind the last one, which has the bytes `start..end`.
    fn append(&mut self, start: usize, end: usize, key: Option<&str>, value: &Value) {
        let text = format!(",{}{}", self.gap(start), self.member(key, value, start));
        self.splices.push(Splice { start: end, end, text });
    }

    /// The blanks between a comma and a member like the one at `start`.
    fn gap(&self, start: usize) -> String {
        match self.line_margin(start) {
            Some(margin) => format!("\n{margin}"),
            None => self.inline.gap().to_owned(),
        }
    }

    /// An element, or with a key an entry, written like the member at `start`.
    fn member(&self, key: Option<&str>, value: &Value, start: usize) -> String {
        if let Some(margin) = self.line_margin(start).filter(|_| self.is_json()) {
            let head = key.map_or_else(String::new, |key| format!("{}: ", emit::double_quoted(key)));
            return emit::pretty(&head, value, margin, self.indent_unit(margin));
        }
        key.map_or_else(|| self.inline.value(value), |key| self.inline.entry(key, value))
    }
}
