//! Changes in block collections. New lines go behind the line that they follow, and behind its comment; a comment above
//! a list element stays with that element.

use serde_json::{Map, Value};

use crate::outline::{Form, Node, NodeId, NodeKind};
use crate::rewrite::Splice;
use crate::rewrite::emit::{self, Indents};
use crate::rewrite::splicer::{Context, OwnEntries, Splicer, align};

impl Splicer<'_> {
    pub(super) fn edit_block_map(
        &mut self,
        node: &Node,
        own: &OwnEntries<'_>,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        context: Context,
    ) -> Option<()> {
        let NodeKind::Map(_, entries) = &node.kind else { return None };
        let at = self.column(node.content)?;
        let indents = self.indents_of(entries, at, context.indents)?;
        for (name, (key, value)) in own {
            match new.get(&**name) {
                Some(new) => {
                    let inside = Context { key: Some(*key), indents, block_at: Some(at) };
                    self.edit(*value, old.get(&**name)?, new, inside)?;
                }
                None => self.remove_line(self.node(*key), self.node(*value))?,
            }
        }
        let mut lines = Vec::new();
        for (name, value) in new {
            if !own.contains_key(name.as_str()) && old.get(name) != Some(value) {
                emit::entry(&mut lines, name, value, at, indents);
            }
        }
        self.insert_lines(self.source.line_end(node.end), &mut lines);
        Some(())
    }

    /// Removes the line of an entry, with a comment behind it. `None` when the entry shares its line or
    /// has several.
    fn remove_line(&mut self, key: &Node, value: &Node) -> Option<()> {
        let (text, source) = (self.text, self.source);
        let (start, end) = (source.line_start(key.start), source.line_end(value.end.max(key.end)));
        let alone = text.get(start..key.start)?.trim().is_empty();
        let end = end + text.get(end..)?.find('\n').map_or(0, |at| at + 1);
        let one_line = text.get(start..end)?.trim_end().lines().count() == 1;
        (alone && one_line).then(|| self.splices.push(Splice { start, end, text: String::new() }))
    }

    pub(super) fn edit_block_list(
        &mut self,
        node: &Node,
        items: &[NodeId],
        old: &[Value],
        new: &[Value],
        context: Context,
    ) -> Option<()> {
        let found = align(old, new)?;
        let dash = self.first_dash(node, context)?;
        let margin = self.text.get(self.source.line_start(dash)..dash)?;
        let alone = margin.bytes().all(|byte| byte == b' ');
        let at = self.column(dash)?;
        // A comment above the first element is its own, so lines in front of it go above the comment.
        let mut behind = alone.then(|| self.end_of_line_above(dash)).flatten();
        let mut lines = Vec::new();
        for (value, from) in new.iter().zip(found) {
            let Some(index) = from else {
                emit::element(&mut lines, value, at, context.indents);
                continue;
            };
            if !lines.is_empty() {
                self.insert_lines(behind?, &mut lines);
            }
            let id = *items.get(index)?;
            self.edit(id, old.get(index)?, value, Context { key: None, block_at: None, ..context })?;
            behind = Some(self.source.line_end(self.node(id).end));
        }
        self.insert_lines(behind?, &mut lines);
        Some(())
    }

    /// Inserts lines at the end of a line.
    fn insert_lines(&mut self, at: usize, lines: &mut Vec<String>) {
        let text: String = lines.drain(..).flat_map(|line| ["\n".to_owned(), line]).collect();
        if !text.is_empty() {
            self.splices.push(Splice { start: at, end: at, text });
        }
    }

    /// Writes a value that needs several lines below its key, in place of an old one.
    pub(super) fn replace_by_block(
        &mut self,
        old: &Node,
        value: &Value,
        at: usize,
        context: Context,
    ) -> Option<()> {
        let key = self.node(context.key?);
        // The old value goes; a comment behind it stays on the line of the key.
        if old.start < old.end {
            let start = self.behind_colon(key.end)?;
            if self.text.get(start..old.end)?.contains('\n') {
                return None;
            }
            self.splices.push(Splice { start, end: old.end, text: String::new() });
        }
        let below = if value.is_array() { context.indents.list } else { context.indents.map };
        let mut lines = Vec::new();
        emit::block(&mut lines, value, at + below, context.indents);
        self.insert_lines(self.source.line_end(old.end.max(key.end)), &mut lines);
        Some(())
    }

    /// The column of a byte: the number of characters before it on its line. `None` behind a tab, whose
    /// width is not defined.
    fn column(&self, at: usize) -> Option<usize> {
        let before = self.text.get(self.source.line_start(at)..at)?;
        let before = before.trim_start_matches('\u{feff}');
        (!before.contains('\t')).then(|| before.chars().count())
    }

    /// The first dash of a block list. The outline starts a list that is a value at its first element, so
    /// the dash is looked for behind the key.
    fn first_dash(&self, node: &Node, context: Context) -> Option<usize> {
        let Some(key) = context.key else { return Some(node.content) };
        let mut at = self.behind_colon(self.node(key).end)?;
        loop {
            let rest = self.text.get(at..)?;
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
        let text = self.text;
        let mut start = self.source.line_start(at);
        loop {
            let end = start.checked_sub(1)?;
            start = self.source.line_start(end);
            let line = text.get(start..end)?.trim();
            if !line.is_empty() && !line.starts_with('#') {
                return Some(self.source.line_end(start));
            }
        }
    }

    /// The byte behind the colon of a key that ends at `end`.
    fn behind_colon(&self, end: usize) -> Option<usize> {
        let rest = self.text.get(end..)?;
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

    /// The indentation of the mappings inside a mapping, in columns; usually two.
    pub(super) fn map_indent(&self, node: &Node) -> usize {
        let NodeKind::Map(Form::Block, entries) = &node.kind else { return 2 };
        let inner = entries.iter().map(|(_, value)| self.node(*value));
        let inner = inner.filter(|value| matches!(value.kind, NodeKind::Map(Form::Block, _)));
        let column = |at: usize| at - self.source.line_start(at);
        let indents = inner.map(|value| column(value.content).saturating_sub(column(node.content)));
        indents.filter(|indent| *indent > 0).min().unwrap_or(2)
    }
}
