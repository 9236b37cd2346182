//! Sources: the text of one input, and places in it as bytes, lines and columns.

use std::sync::OnceLock;

use crate::shown::{holds_manifest, holds_manifest_within, without_quotes_of};

/// The text of one input, as it was read.
#[derive(Debug)]
pub struct Source {
    name: String,
    text: String,
    /// The byte at which each line starts.
    lines: Vec<u32>,
    /// The number of characters before each block of [`COUNT_BLOCK_BYTES`]: minified JSON has lines of
    /// megabytes, and a column there must not mean counting them all.
    characters: Vec<usize>,
    /// The text with its credentials masked, once it was needed; `None` if it has none.
    masked: OnceLock<Option<String>>,
    /// Whether it is a manifest, once that was needed.
    is_manifest: OnceLock<bool>,
}

/// The bytes between two counts of characters: few to count again, and few counts to keep.
const COUNT_BLOCK_BYTES: usize = 4096;

/// A stretch of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte behind the last one.
    pub end: usize,
    /// The line of the first byte, from 1.
    pub line: usize,
    /// The column of the first byte, in characters, from 1.
    pub column: usize,
}

/// The place of a pointer in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The key; absent for a list element and for the whole document.
    pub key: Option<Span>,
    /// The value.
    pub value: Span,
    /// The stretch for a caret: a plain value itself, else the key, else the first line.
    pub caret: Span,
    /// Whether this is the place of the pointer itself, and not of the nearest parent that exists.
    pub exact: bool,
    /// The alias in the object on the way to the value: the places above are at its anchor.
    pub alias: Option<Span>,
    /// The place of the value, when it is an alias itself.
    pub anchor: Option<Span>,
}

impl Location {
    /// The key and the value.
    pub fn whole(&self) -> Span {
        self.key.map_or(self.value, |key| Span { end: self.value.end.max(key.end), ..key })
    }

    /// The stretches for the carets of a finding about the value, or about its key alone: one in the object itself, and
    /// behind an alias also the one at its anchor.
    pub fn carets(&self, at_key: bool) -> (Span, Option<Span>) {
        let key = self.key.filter(|_| at_key && self.exact);
        let here = key.unwrap_or(self.caret);
        let anchor = self.anchor.filter(|_| key.is_none());
        match self.alias {
            Some(alias) => (alias, Some(anchor.unwrap_or(here))),
            None => (here, anchor),
        }
    }
}

impl Source {
    /// The same source, which is a part of another one: outputs show lines of it where they show lines of that.
    #[must_use]
    pub fn shown_as(self, whole: &Self) -> Self {
        Self { is_manifest: OnceLock::from(whole.is_shown()), ..self }
    }

    /// A source from its name, as messages show it (the path as the user gave it, or `<stdin>`),
    /// and its text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let mut lines = Vec::with_capacity(1 + text.matches('\n').count());
        lines.push(0);
        lines.extend(text.match_indices('\n').map(|(at, _)| offset(at + 1)));
        let mut count = 0;
        let mut characters = vec![0];
        for block in text.as_bytes().chunks(COUNT_BLOCK_BYTES) {
            count += count_characters(block);
            characters.push(count);
        }
        Self {
            name: name.into(),
            text,
            lines,
            characters,
            masked: OnceLock::new(),
            is_manifest: OnceLock::new(),
        }
    }

    /// The name: the path as the user gave it, or `<stdin>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text, a byte order mark included.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether outputs may show lines of it: only of a file in which a manifest was read.
    pub fn is_shown(&self) -> bool {
        *self.is_manifest.get_or_init(|| holds_manifest(&self.text))
    }

    /// From now on it counts as a manifest if it holds one anywhere, as a file of cases does.
    pub fn holds_cases(&self) {
        let _is_known = self.is_manifest.set(holds_manifest_within(&self.text));
    }

    /// A message about a place in it, without what the message quotes of a text that is not shown.
    pub(super) fn message(&self, message: String, span: Span) -> String {
        /// The bytes before and behind a place from which a message may quote.
        const NEAR_BYTES: usize = 4096;
        if self.is_shown() {
            return message;
        }
        let from = self.text.floor_char_boundary(span.start.saturating_sub(NEAR_BYTES));
        let to = self.text.ceil_char_boundary(span.end.saturating_add(NEAR_BYTES));
        without_quotes_of(&message, self.text.get(from..to).unwrap_or_default())
    }

    /// The text with its credentials masked; the first call runs `mask`, which returns `None` if there are none.
    pub(super) fn masked(&self, mask: impl FnOnce() -> Option<String>) -> &str {
        self.masked.get_or_init(mask).as_deref().unwrap_or(&self.text)
    }

    /// The stretch from byte `start` to before byte `end`, both brought within the text.
    pub fn span(&self, start: usize, end: usize) -> Span {
        let start = self.text.floor_char_boundary(start);
        let end = self.text.ceil_char_boundary(end).max(start);
        let line = self.line(start);
        let line_start = self.line_start(start);
        let mark = usize::from(line == 1 && start > 0 && self.text.starts_with('\u{feff}'));
        let column = self.characters_before(start) - self.characters_before(line_start) - mark + 1;
        Span { start, end, line, column }
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// The part of a span on its first line.
    pub fn first_line(&self, span: Span) -> Span {
        let line = self.slice(span).lines().next().unwrap_or_default();
        Span { end: span.start + line.trim_end().len(), ..span }
    }

    /// The first byte of the line of a byte.
    pub(super) fn line_start(&self, at: usize) -> usize {
        self.line(at)
            .checked_sub(1)
            .and_then(|index| self.lines.get(index))
            .map_or(0, |start| *start as usize)
    }

    /// The byte behind the last one of that line, without its line end.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let next = self.lines.get(self.line(at)).map_or(self.text.len(), |next| *next as usize - 1);
        let line = self.text.get(at..next).unwrap_or_default();
        at + line.strip_suffix('\r').unwrap_or(line).len()
    }

    /// The line of a byte, from 1.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start as usize <= at)
    }

    fn characters_before(&self, at: usize) -> usize {
        let block = at / COUNT_BLOCK_BYTES;
        let counted = self.characters.get(block).copied().unwrap_or_default();
        counted + self.text.as_bytes().get(block * COUNT_BLOCK_BYTES..at).map_or(0, count_characters)
    }
}

/// A place in a source as it is kept: no source has 4 GiB.
pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// How many characters start in a part of UTF-8 text.
fn count_characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_columns_on_long_lines() {
        let source = Source::new("a", format!("x\n{}!\n!", "äb€".repeat(5_000)));
        for (needle, line, column) in [(source.text().find('!'), 2, 15_001), (source.text().rfind('!'), 3, 1)]
        {
            let span = needle.map(|at| source.span(at, at + 1)).expect("there");
            assert_eq!((span.line, span.column), (line, column));
        }
    }

    #[test]
    fn brings_any_range_within_the_text() {
        let source = Source::new("a", "\u{feff}ä");
        for (start, end) in [(0, 0), (1, 2), (3, 4), (4, 4), (9, 3), (100, 200)] {
            let span = source.span(start, end);
            assert!(source.text().get(span.start..span.end).is_some() && span.column <= 2, "{span:?}");
        }
    }
}
