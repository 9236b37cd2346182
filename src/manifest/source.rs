//! Sources: the text of one input, and places in it.

/// The text of one input, as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
    /// The byte at which each line starts.
    lines: Vec<usize>,
}

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

impl Source {
    /// A source from its name, as messages show it (the path as the user gave it, or `<stdin>`),
    /// and its text.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Self { name: name.into(), text, lines }
    }

    /// The name: the path as the user gave it, or `<stdin>`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text, a byte order mark included.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The stretch from byte `start` to before byte `end`, both brought within the text.
    #[must_use]
    pub fn span(&self, start: usize, end: usize) -> Span {
        let start = self.text.floor_char_boundary(start);
        let end = self.text.ceil_char_boundary(end).max(start);
        let line = self.lines.partition_point(|line_start| *line_start <= start);
        let line_start = line.checked_sub(1).and_then(|index| self.lines.get(index)).copied().unwrap_or(0);
        let before = self.text.get(line_start..start).unwrap_or_default();
        let column = before.trim_start_matches('\u{feff}').chars().count() + 1;
        Span { start, end, line, column }
    }

    /// The text of a span.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }
}
