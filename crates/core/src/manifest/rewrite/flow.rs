//! New entries and elements in flow collections, which all of JSON is: on lines of their own where
//! the others are, else in the same line.

use serde_json::{Map, Value};

use crate::manifest::outline::{Id, Kind, Node};
use crate::manifest::rewrite::emit::{self, Line};
use crate::manifest::rewrite::plan::{Fresh, Piece};
use crate::manifest::rewrite::splice::{Changes, Context, Splice, piece_key};

impl<'s> Changes<'s> {
    pub(super) fn flow_map(
        &mut self,
        node: &Node,
        entries: &[(String, Piece)],
        map: &Map<String, Value>,
        context: Context,
    ) -> Option<()> {
        let Kind::Map(_, own) = &node.kind else { return None };
        if !self.ground.text.get(node.content..)?.starts_with('{') {
            return None;
        }
        let (last_key, last_value) = own.last().map(|(key, value)| (self.node(*key), self.node(*value)))?;
        let row = self.row(last_key.start);
        let end = last_value.end.max(last_key.end);
        for (key, piece) in entries {
            if let Piece::Gone(_) = piece {
                self.take_member(own, piece)?;
                continue;
            }
            let value = map.get(key)?;
            match piece {
                Piece::Kept(_) | Piece::Merged => {}
                Piece::New(None, fresh) => {
                    let mut lines = self.separator(fresh, row);
                    self.flow_member(&mut lines, Some(key), value, fresh, row);
                    self.splices.push(Splice { start: end, end, lines });
                }
                _ => {
                    let key = piece_key(own, piece);
                    self.piece(piece, value, Context { key, block_at: None, ..context })?;
                }
            }
        }
        Some(())
    }

    /// Takes an entry away, with the comma between it and its neighbour.
    fn take_member(&mut self, entries: &[(Id, Id)], piece: &Piece) -> Option<()> {
        let id = piece.node()?;
        let at = entries.iter().position(|(_, value)| *value == id)?;
        let end_of = |(key, value): &(Id, Id)| self.node(*value).end.max(self.node(*key).end);
        let (start, end) = match at.checked_sub(1) {
            Some(before) => (end_of(entries.get(before)?), end_of(entries.get(at)?)),
            None => (self.node(entries.first()?.0).start, self.node(entries.get(1)?.0).start),
        };
        self.splices.push(Splice { start, end, lines: Vec::new() });
        Some(())
    }

    pub(super) fn flow_list(
        &mut self,
        node: &Node,
        items: &[Piece],
        list: &[Value],
        context: Context,
    ) -> Option<()> {
        let mut waiting: Vec<(&Value, &Fresh)> = Vec::new();
        let mut before = None;
        for (piece, value) in items.iter().zip(list) {
            if let Piece::New(None, fresh) = piece {
                waiting.push((value, fresh));
                continue;
            }
            let old = self.node(piece.node()?);
            let row = self.row(old.start);
            for (value, fresh) in waiting.drain(..) {
                self.before(old.start, value, fresh, row);
            }
            self.piece(piece, value, Context { key: None, block_at: None, ..context })?;
            before = Some(old);
        }
        let old = before.filter(|_| node.content < node.end)?;
        let row = self.row(old.start);
        for (value, fresh) in waiting {
            let mut lines = self.separator(fresh, row);
            self.flow_member(&mut lines, None, value, fresh, row);
            self.splices.push(Splice { start: old.end, end: old.end, lines });
        }
        Some(())
    }

    /// Inserts an element before the one at `start`.
    fn before(&mut self, start: usize, value: &Value, fresh: &Fresh, row: Option<&str>) {
        let mut lines = Vec::new();
        self.flow_member(&mut lines, None, value, fresh, row);
        if let (Some(first), Some(margin)) = (lines.first_mut(), row) {
            first.text = first.text.strip_prefix(margin).unwrap_or(&first.text).to_owned();
        }
        if let Some(last) = lines.last_mut() {
            last.text.push_str(if row.is_some() { "," } else { self.comma });
        }
        if let Some(margin) = row {
            lines.push(Line::new(margin, Vec::new()));
        }
        self.splices.push(Splice { start, end: start, lines });
    }

    /// What stands between the element before and a new one: the new one starts a line (its margin
    /// comes with it) or goes on in this one.
    fn separator(&self, fresh: &Fresh, row: Option<&str>) -> Vec<Line> {
        match row {
            Some(_) => vec![Line::new(",", fresh.own())],
            None => vec![Line::new(self.comma, fresh.all())],
        }
    }

    /// A new element, or with a key an entry; on lines of its own when there is a `row`, which is
    /// its margin, else at the end of the last line.
    fn flow_member(
        &self,
        lines: &mut Vec<Line>,
        key: Option<&str>,
        value: &Value,
        fresh: &Fresh,
        row: Option<&str>,
    ) {
        if let (Some(margin), true) = (row, self.json) {
            let head = key.map_or_else(String::new, |key| format!("{}: ", emit::json(&key.into(), "")));
            return emit::pretty(lines, &format!("{margin}{head}"), value, fresh, margin, self.unit(margin));
        }
        let gap = self.comma.trim_start_matches(',');
        let member = match (key, self.json) {
            (Some(key), true) => emit::json_entry(key, value, gap),
            (None, true) => emit::json(value, gap),
            (Some(key), false) => emit::flow_entry(key, value),
            (None, false) => emit::flow(value),
        };
        match (row, lines.last_mut()) {
            (None, Some(line)) => line.text.push_str(&member),
            (margin, _) => {
                lines.push(Line::new(format!("{}{member}", margin.unwrap_or_default()), fresh.all()));
            }
        }
    }

    /// The white space before an element or entry that begins its line.
    pub(super) fn row(&self, start: usize) -> Option<&'s str> {
        let text = self.ground.text;
        let line = self.ground.source.line_start(start);
        let before = text.get(line..start)?;
        (line > 0 && before.bytes().all(|byte| matches!(byte, b' ' | b'\t'))).then_some(before)
    }

    /// One level of JSON indentation, judged from a margin.
    pub(super) fn unit(&self, margin: &'s str) -> &'s str {
        if margin.starts_with('\t') {
            return "\t";
        }
        // The members of the outermost value stand one level in.
        let text = self.ground.text;
        let indented = text.lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or_default();
        let width = indented.len() - indented.trim_start_matches(' ').len();
        indented.get(..width).filter(|unit| !unit.is_empty()).unwrap_or("  ")
    }
}
