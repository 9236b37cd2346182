//! A plan to changes of the text, each as small as it can be.
//!
//! Lines go in behind the line they follow, comments of that line included; a comment above a list
//! element stays with it. What does not fit these ways gives `None`, and the document is written
//! anew.

use serde_json::{Map, Value};

use crate::manifest::outline::{Form, Id, Kind, Node};
use crate::manifest::rewrite::emit::{self, Indents, Line};
use crate::manifest::rewrite::plan::{Fresh, Ground, Piece, Plan};

/// A change of the text: the bytes from `start` to `end` give way to lines. The first of them goes
/// on where the text before `start` ends, the text behind `end` goes on behind the last.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Splice {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) lines: Vec<Line>,
}

/// The changes that a plan asks for, in no order; at one place the first comes first.
pub(super) fn splices(ground: Ground<'_>, root: Id, plan: &Plan) -> Option<Vec<Splice>> {
    if plan.odd {
        return None;
    }
    let node = ground.outline.node(root);
    let json = is_flow(node);
    let own = ground.text.get(node.content..node.end).unwrap_or_default();
    let comma = if json && !own.contains(": ") && !own.contains(", ") { "," } else { ", " };
    let mut changes = Changes { ground, json, comma, splices: Vec::new() };
    let indents = Indents { map: map_indent(ground, node), list: 2 };
    changes.piece(&plan.piece, &plan.value, Context { key: None, indents, block_at: None })?;
    Some(changes.splices)
}

/// The document written anew, as YAML blocks or, where it is one JSON value, as JSON.
pub(super) fn whole(ground: Ground<'_>, root: Id, plan: &Plan) -> Splice {
    let node = ground.outline.node(root);
    let text = ground.text;
    let line = ground.source.line_start(node.start);
    let before = text.get(line..node.start).unwrap_or_default();
    let indentation = before.trim_start_matches('\u{feff}');
    let alone = indentation.trim().is_empty();
    let start = if alone { node.start - indentation.len() } else { node.start };
    let rest = text.get(node.end..ground.source.line_end(node.end)).unwrap_or_default().trim_start();
    let end = if rest.starts_with('#') { ground.source.line_end(node.end) } else { node.end };
    let mut lines = if alone { Vec::new() } else { vec![Line::default()] };
    let indents = Indents { map: 2, list: 0 };
    if is_flow(node) {
        lines.clear();
        emit::pretty(&mut lines, "", &plan.value, &plan.piece.fresh(), "", "  ");
        return Splice { start: node.start, end, lines };
    }
    emit::block(&mut lines, &plan.value, &plan.piece.fresh(), 0, indents);
    Splice { start, end, lines }
}

/// The changes of one document.
pub(super) struct Changes<'s> {
    pub(super) ground: Ground<'s>,
    /// Whether flow is JSON, with all keys in quotes.
    pub(super) json: bool,
    /// The comma between elements of one line; minified JSON has no space behind it.
    pub(super) comma: &'static str,
    pub(super) splices: Vec<Splice>,
}

/// Where a piece stands.
#[derive(Clone, Copy)]
pub(super) struct Context {
    /// The key it is the value of.
    pub(super) key: Option<Id>,
    /// How the collections around it are indented.
    pub(super) indents: Indents,
    /// The column of the block mapping it is an entry of, when it is.
    pub(super) block_at: Option<usize>,
}

impl<'s> Changes<'s> {
    pub(super) fn node(&self, id: Id) -> &'s Node {
        self.ground.outline.node(id)
    }

    pub(super) fn piece(&mut self, piece: &Piece, value: &Value, context: Context) -> Option<()> {
        match (piece, value) {
            (Piece::Kept(_) | Piece::Merged, _) => Some(()),
            (Piece::New(Some(old), fresh), _) => self.replace(self.node(*old), value, fresh, context),
            (Piece::Map(id, entries), Value::Object(map)) => match self.node(*id) {
                node if is_empty(node) => self.replace(node, value, &piece.fresh(), context),
                node if is_flow(node) => self.flow_map(node, entries, map, context),
                node => self.block_map(node, entries, map, context),
            },
            (Piece::List(id, items), Value::Array(list)) => match self.node(*id) {
                node if is_empty(node) => self.replace(node, value, &piece.fresh(), context),
                node if is_flow(node) => self.flow_list(node, items, list, context),
                node => self.block_list(node, items, list, context),
            },
            _ => None,
        }
    }

    fn block_map(
        &mut self,
        node: &Node,
        entries: &[(String, Piece)],
        map: &Map<String, Value>,
        context: Context,
    ) -> Option<()> {
        let Kind::Map(_, own) = &node.kind else { return None };
        let at = self.column(node.content)?;
        let indents = self.indents_of(own, at, context.indents)?;
        let mut lines = vec![Line::default()];
        for (key, piece) in entries {
            if let Piece::Gone(_) = piece {
                self.take_line(own, piece)?;
                continue;
            }
            let value = map.get(key)?;
            match piece {
                Piece::Kept(_) | Piece::Merged => {}
                Piece::New(None, fresh) => emit::entry(&mut lines, key, value, fresh, at, indents),
                _ => {
                    let key = piece_key(own, piece);
                    self.piece(piece, value, Context { key, indents, block_at: Some(at) })?;
                }
            }
        }
        self.insert_lines(node.end, lines);
        Some(())
    }

    /// Takes away the line of an entry, with a comment behind it.
    fn take_line(&mut self, entries: &[(Id, Id)], piece: &Piece) -> Option<()> {
        let (key, value) = (self.node(piece_key(entries, piece)?), self.node(piece.node()?));
        let (text, source) = (self.ground.text, self.ground.source);
        let (start, end) = (source.line_start(key.start), source.line_end(value.end.max(key.end)));
        let alone = text.get(start..key.start)?.trim().is_empty();
        let end = end + text.get(end..)?.find('\n').map_or(0, |at| at + 1);
        let one_line = text.get(start..end)?.trim_end().lines().count() == 1;
        (alone && one_line).then(|| self.splices.push(Splice { start, end, lines: Vec::new() }))
    }

    fn block_list(&mut self, node: &Node, items: &[Piece], list: &[Value], context: Context) -> Option<()> {
        let dash = self.dash(node, context)?;
        let text = self.ground.text;
        let margin = text.get(self.ground.source.line_start(dash)..dash)?;
        let alone = margin.bytes().all(|byte| byte == b' ');
        let at = self.column(dash)?;
        let mut behind = alone.then(|| self.above(dash)).flatten();
        let mut lines = vec![Line::default()];
        for (piece, value) in items.iter().zip(list) {
            if let Piece::New(None, fresh) = piece {
                emit::element(&mut lines, value, fresh, at, context.indents);
                continue;
            }
            self.insert_lines_at(behind, &mut lines)?;
            let inside = Context { key: None, block_at: None, ..context };
            self.piece(piece, value, inside)?;
            behind = piece.node().map(|id| self.ground.source.line_end(self.node(id).end));
        }
        self.insert_lines_at(behind, &mut lines)
    }

    fn insert_lines_at(&mut self, at: Option<usize>, lines: &mut Vec<Line>) -> Option<()> {
        if lines.len() > 1 {
            let at = at?;
            let lines = std::mem::replace(lines, vec![Line::default()]);
            self.splices.push(Splice { start: at, end: at, lines });
        }
        Some(())
    }

    /// Inserts lines behind the line in which `at` stands; the first of them is empty.
    fn insert_lines(&mut self, at: usize, lines: Vec<Line>) {
        if lines.len() > 1 {
            let at = self.ground.source.line_end(at);
            self.splices.push(Splice { start: at, end: at, lines });
        }
    }

    /// Writes a value in place of an old one.
    fn replace(&mut self, old: &Node, value: &Value, fresh: &Fresh, context: Context) -> Option<()> {
        let long = match value {
            Value::Object(map) => !map.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => false,
        };
        if old.is_collection() && !is_empty(old) && !is_flow(old) {
            return None;
        }
        match context.block_at {
            Some(at) if long => self.replace_by_block(old, value, fresh, at, context),
            _ => self.replace_in_line(old, value, fresh, context),
        }
    }

    fn replace_by_block(
        &mut self,
        old: &Node,
        value: &Value,
        fresh: &Fresh,
        at: usize,
        context: Context,
    ) -> Option<()> {
        let text = self.ground.text;
        let key = self.node(context.key?);
        if old.start < old.end {
            let colon = self.behind_colon(key.end)?;
            if text.get(colon..old.end)?.contains('\n') {
                return None;
            }
            let lines = vec![Line::new("", fresh.any())];
            self.splices.push(Splice { start: colon, end: old.end, lines });
        }
        let below = if value.is_array() { context.indents.list } else { context.indents.map };
        let mut lines = vec![Line::default()];
        emit::block(&mut lines, value, fresh, at + below, context.indents);
        self.insert_lines(old.end.max(key.end), lines);
        Some(())
    }

    fn replace_in_line(&mut self, old: &Node, value: &Value, fresh: &Fresh, context: Context) -> Option<()> {
        let mut lines = Vec::new();
        let row = context.key.and_then(|key| self.row(self.node(key).start));
        if let (true, Some(margin)) = (self.json, row) {
            emit::pretty(&mut lines, "", value, fresh, margin, self.unit(margin));
        } else {
            let in_flow = context.block_at.is_none() && context.key.is_some();
            let written = match value {
                _ if self.json => emit::json(value, self.comma.trim_start_matches(',')),
                Value::Object(_) | Value::Array(_) => emit::flow(value),
                _ => emit::scalar(value, in_flow),
            };
            lines.push(Line::new(written, fresh.all()));
        }
        let (start, mut end) = (old.start, old.end);
        let text = self.ground.text;
        if start == end {
            // Nothing stands there: `key:`, `- ` or, in flow, just `key`.
            let lacks_colon = context.key.is_some() && !text.get(..start)?.ends_with(':');
            if let Some(first) = lines.first_mut() {
                first.text.insert_str(0, if lacks_colon { ": " } else { " " });
            }
        }
        let rest = text.get(end..)?;
        if start == end && rest.trim_start_matches(' ').starts_with(',') {
            end += rest.find(',')?;
        }
        self.splices.push(Splice { start, end, lines });
        Some(())
    }

    /// The column of a byte: how many characters stand before it on its line. No tabs.
    fn column(&self, at: usize) -> Option<usize> {
        let before = self.ground.text.get(self.ground.source.line_start(at)..at)?;
        let before = before.trim_start_matches('\u{feff}');
        (!before.contains('\t')).then(|| before.chars().count())
    }

    /// The first dash of a block list.
    fn dash(&self, node: &Node, context: Context) -> Option<usize> {
        let Some(key) = context.key else { return Some(node.content) };
        let mut at = self.behind_colon(self.node(key).end)?;
        loop {
            let rest = self.ground.text.get(at..)?;
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
    fn above(&self, at: usize) -> Option<usize> {
        let text = self.ground.text;
        let mut start = self.ground.source.line_start(at);
        loop {
            let end = start.checked_sub(1)?;
            start = self.ground.source.line_start(end);
            let line = text.get(start..end)?.trim();
            if !line.is_empty() && !line.starts_with('#') {
                return Some(self.ground.source.line_end(start));
            }
        }
    }

    /// The byte behind the colon of a key that ends at `end`.
    fn behind_colon(&self, end: usize) -> Option<usize> {
        let rest = self.ground.text.get(end..)?;
        let blanks = rest.len() - rest.trim_start().len();
        rest.trim_start().starts_with(':').then_some(end + blanks + 1)
    }

    /// How collections below a block mapping are indented: as they are there, else as around it.
    fn indents_of(&self, entries: &[(Id, Id)], at: usize, around: Indents) -> Option<Indents> {
        let mut indents = around;
        for (key, value) in entries {
            let node = self.node(*value);
            match &node.kind {
                Kind::List(Form::Block, _) => {
                    let context = Context { key: Some(*key), indents, block_at: None };
                    indents.list = self.column(self.dash(node, context)?)?.checked_sub(at)?;
                }
                Kind::Map(Form::Block, _) => indents.map = self.column(node.content)?.checked_sub(at)?,
                _ => {}
            }
        }
        Some(indents)
    }
}

/// The key of the entry that a piece stands for.
pub(super) fn piece_key(entries: &[(Id, Id)], piece: &Piece) -> Option<Id> {
    let id = piece.node()?;
    entries.iter().find(|(_, value)| *value == id).map(|(key, _)| *key)
}

/// How many columns the first mapping inside a mapping stands in from it; usually two.
fn map_indent(ground: Ground<'_>, node: &Node) -> usize {
    let Kind::Map(Form::Block, entries) = &node.kind else { return 2 };
    let inner = entries.iter().map(|(_, value)| ground.outline.node(*value));
    let inner = inner.filter(|value| matches!(value.kind, Kind::Map(Form::Block, _)));
    let column = |at: usize| at - ground.source.line_start(at);
    let indents = inner.map(|value| column(value.content).saturating_sub(column(node.content)));
    indents.filter(|indent| *indent > 0).min().unwrap_or(2)
}

fn is_flow(node: &Node) -> bool {
    matches!(node.kind, Kind::Map(Form::Flow, _) | Kind::List(Form::Flow, _))
}

/// Whether this is `{}` or `[]`.
fn is_empty(node: &Node) -> bool {
    match &node.kind {
        Kind::Map(_, entries) => entries.is_empty(),
        Kind::List(_, items) => items.is_empty(),
        _ => false,
    }
}
