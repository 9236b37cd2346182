//! Parses JSON text into an [`Outline`]: one value, or several one after another as `kubectl get -o json` in
//! a loop writes them. The parser is strict (RFC 8259). The YAML parser reads all other texts, with comments,
//! trailing commas or `---` between values.

use std::sync::Arc;

use crate::error::SyntaxError;
use crate::outline::{Form, MAX_DEPTH, Node, NodeId, NodeKind, Outline, ScalarText, Style, Tag};
use crate::source::Source;

/// Whether the text can be JSON objects or arrays at all.
pub(super) fn looks_like(source: &Source) -> bool {
    source.text().trim_start_matches('\u{feff}').trim_start().starts_with(['{', '['])
}

/// Parses a source. The first byte that is not JSON is an error of the whole source.
pub(super) fn read(source: &Arc<Source>) -> Result<Outline, Box<SyntaxError>> {
    let mut reader = JsonReader { source, text: source.text(), at: 0, outline: Outline::default() };
    if reader.text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    reader.skip_blanks();
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

impl JsonReader<'_> {
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
            Some(b'-' | b'0'..=b'9') => NodeKind::Scalar(Style::Plain, self.number()?),
            Some(b'a'..=b'z') => NodeKind::Scalar(Style::Plain, self.word()?),
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

    fn string(&mut self) -> Result<ScalarText, Box<SyntaxError>> {
        let open = self.at;
        self.at += 1;
        let start = self.at;
        let mut decoded: Option<String> = None;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest.find(['"', '\\', '\n', '\r', '\t']).unwrap_or(rest.len());
            if let Some(decoded) = &mut decoded {
                decoded.push_str(rest.get(..plain).unwrap_or_default());
            }
            self.at += plain;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let before = self.text.get(start..self.at).unwrap_or_default();
                    let character = self.escape()?;
                    decoded.get_or_insert_with(|| before.to_owned()).push(character);
                }
                Some(b'\t') => return Err(self.error(self.at, "a tab in JSON text is written \"\\t\"")),
                _ => return Err(self.error(open, "a quote is not closed")),
            }
        }
        let end = self.at;
        self.at += 1;
        Ok(decoded.map_or(ScalarText::Slice(start, end), |text| ScalarText::Owned(text.into())))
    }

    fn escape(&mut self) -> Result<char, Box<SyntaxError>> {
        let start = self.at;
        self.at += 1;
        let letter = self.peek();
        self.at += 1;
        Ok(match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let character = self.unicode_escape();
                return character.ok_or_else(|| self.error(start, "this escape is not a Unicode character"));
            }
            _ => return Err(self.error(start, "JSON has no such escape")),
        })
    }

    fn unicode_escape(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.text.get(self.at..)?.strip_prefix("\\u")?;
        self.at += 2;
        let second = self.hex()?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + second)
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    fn number(&mut self) -> Result<ScalarText, Box<SyntaxError>> {
        let start = self.at;
        self.eat(b'-');
        let whole = self.digits();
        let zeros = whole > 1 && self.text.as_bytes().get(self.at - whole) == Some(&b'0');
        let mut good = whole > 0 && !zeros;
        if self.eat(b'.') {
            good &= self.digits() > 0;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            good &= self.digits() > 0;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        if !good {
            return Err(self.error(start, "this is not a JSON number"));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(ScalarText::Slice(start, self.at)),
            _ => Err(self.error(start, "this number is too large")),
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn word(&mut self) -> Result<ScalarText, Box<SyntaxError>> {
        let start = self.at;
        while matches!(self.peek(), Some(b'a'..=b'z')) {
            self.at += 1;
        }
        match self.text.get(start..self.at) {
            Some("true" | "false" | "null") => Ok(ScalarText::Slice(start, self.at)),
            _ => Err(self.error(start, "this text needs double quotes")),
        }
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
