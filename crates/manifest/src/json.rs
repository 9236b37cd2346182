//! Parses JSON text into an [`Outline`]: one value, or several one after another as `kubectl get -o json` in
//! a loop writes them. The parser is strict (RFC 8259). The YAML parser reads all other texts, with comments,
//! trailing commas or `---` between values.

use std::sync::Arc;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::error::SyntaxError;
use crate::outline::{Form, MAX_DEPTH, Node, NodeId, NodeKind, Outline, ScalarText, Style, Tag, TextPart};
use crate::source::Source;

/// Whether the text can be JSON objects or arrays at all.
pub(super) fn looks_like(source: &Source) -> bool {
    source.text().trim_start_matches('\u{feff}').trim_start().starts_with(['{', '['])
}

/// Parses a part. The first byte that is not JSON is an error of the whole source.
pub(super) fn read(source: &Arc<Source>, part: TextPart) -> Result<Outline, Box<SyntaxError>> {
    let mut reader = JsonReader::new(source, part);
    while reader.at < reader.text.len() {
        let root = reader.value(0)?;
        reader.outline.roots.push(Ok(root));
        reader.skip_blanks();
    }
    Ok(reader.outline)
}

struct JsonReader<'s> {
    source: &'s Arc<Source>,
    text: &'s str,
    at: usize,
    outline: Outline,
}

impl<'s> JsonReader<'s> {
    /// A reader at the first value of a part.
    fn new(source: &'s Arc<Source>, part: TextPart) -> Self {
        let text = source.text();
        let mut reader = Self { source, text, at: part.start(), outline: Outline::default() };
        if reader.at == 0 && text.starts_with('\u{feff}') {
            reader.at = '\u{feff}'.len_utf8();
        }
        reader.skip_blanks();
        reader
    }

    /// Recursion is bounded by [`MAX_DEPTH`].
    fn value(&mut self, depth: usize) -> Result<NodeId, Box<SyntaxError>> {
        let start = self.at;
        if depth >= MAX_DEPTH && matches!(self.peek(), Some(b'{' | b'[')) {
            return Err(
                SyntaxError::too_deep(self.source, self.source.span(start, start + 1), MAX_DEPTH).into()
            );
        }
        let kind = match self.peek() {
            Some(b'{') => NodeKind::Map(Form::Flow, self.members(depth)?),
            Some(b'[') => NodeKind::List(Form::Flow, self.elements(depth)?),
            Some(b'"') => NodeKind::Scalar(Style::Quoted, self.string()?),
            Some(b'-' | b'0'..=b'9' | b'a'..=b'z') => NodeKind::Scalar(Style::Plain, self.word()?),
            Some(_) => return Err(self.error(start, "a JSON value cannot start like this")),
            None => return Err(self.error(start, "the JSON ends where a value is expected")),
        };
        Ok(self.outline.push(Node { start, content: start, end: self.at, tag: Tag::None, kind }))
    }

    fn members(&mut self, depth: usize) -> Result<Vec<(NodeId, NodeId)>, Box<SyntaxError>> {
        let mut entries = Vec::new();
        while self.next_item(b'}', entries.is_empty())? {
            if self.peek() != Some(b'"') {
                return Err(self.error(self.at, "a key in double quotes is expected here"));
            }
            let key = self.value(depth + 1)?;
            self.skip_blanks();
            if !self.eat(b':') {
                return Err(self.error(self.at, "a \":\" is expected here"));
            }
            self.skip_blanks();
            entries.push((key, self.value(depth + 1)?));
        }
        Ok(entries)
    }

    fn elements(&mut self, depth: usize) -> Result<Vec<NodeId>, Box<SyntaxError>> {
        let mut items = Vec::new();
        while self.next_item(b']', items.is_empty())? {
            items.push(self.value(depth + 1)?);
        }
        Ok(items)
    }

    /// Goes to the next member or element; `false` at the closing bracket.
    fn next_item(&mut self, close: u8, first: bool) -> Result<bool, Box<SyntaxError>> {
        if first {
            self.at += 1;
        }
        self.skip_blanks();
        if self.eat(close) {
            return Ok(false);
        }
        if !first && !self.eat(b',') {
            let close = char::from(close);
            return Err(self.error(self.at, &format!("a \",\" or \"{close}\" is expected here")));
        }
        self.skip_blanks();
        Ok(true)
    }

    /// A string without its quotes. serde_json undoes the escapes.
    fn string(&mut self) -> Result<ScalarText, Box<SyntaxError>> {
        let open = self.at;
        let text = self.text.get(open + 1..).unwrap_or_default();
        let mut escaped = false;
        let is_end = |byte: u8| match byte {
            _ if std::mem::take(&mut escaped) => false,
            b'\\' => {
                escaped = true;
                false
            }
            byte => matches!(byte, b'"' | b'\n' | b'\r'),
        };
        let end = open + 1 + text.bytes().position(is_end).unwrap_or(text.len());
        if self.text.as_bytes().get(end) != Some(&b'"') {
            return Err(self.error(open, "a quote is not closed"));
        }
        self.at = end + 1;
        if self.text.get(open..end).is_some_and(|text| text.contains('\\')) {
            return Ok(ScalarText::Owned(self.parsed::<String>(open)?.into()));
        }
        self.parsed::<IgnoredAny>(open)?;
        Ok(ScalarText::Slice(open + 1, end))
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<ScalarText, Box<SyntaxError>> {
        let start = self.at;
        while matches!(self.peek(), Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'+' | b'-')) {
            self.at += 1;
        }
        let word = self.text.get(start..self.at).unwrap_or_default();
        if word.starts_with(|c: char| c.is_ascii_alphabetic()) && !["true", "false", "null"].contains(&word) {
            return Err(self.error(start, "this text needs double quotes"));
        }
        self.parsed::<Value>(start)?;
        Ok(ScalarText::Slice(start, self.at))
    }

    /// The value from a byte to here, or the error that serde_json has about it.
    fn parsed<T: DeserializeOwned>(&self, from: usize) -> Result<T, Box<SyntaxError>> {
        let text = self.text.get(from..self.at).unwrap_or_default();
        serde_json::from_str(text).map_err(|error| {
            let at = from + error.column().saturating_sub(1);
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            self.error(if error.is_eof() { from } else { at }, &format!("this is not JSON: {message}"))
        })
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn error(&self, at: usize, message: &str) -> Box<SyntaxError> {
        SyntaxError::new(self.source, self.source.span(at, at + 1), message).into()
    }
}
