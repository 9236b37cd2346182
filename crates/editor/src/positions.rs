//! Places of the Language Server Protocol: a line, and a column in UTF-16 code units, both from 0.

use lsp_types::{Position, Range};

/// The lines of a text. A line ends at `\n`, `\r\n` or `\r`.
#[derive(Debug)]
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// The byte at which each line starts.
    starts: Vec<usize>,
    /// The UTF-16 code units before each block of the text: a line may be very long, and have very many places.
    before_blocks: Vec<usize>,
}

/// The bytes of a block.
const BLOCK: usize = 1024;

/// The byte at which each line of a text starts.
fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let ends_line = |at: &usize| match bytes.get(*at) {
        Some(b'\r') => bytes.get(at + 1) != Some(&b'\n'),
        end => end == Some(&b'\n'),
    };
    let starts = (0..bytes.len()).filter(ends_line).map(|at| at + 1);
    std::iter::once(0).chain(starts).collect()
}

/// The number of UTF-16 code units that begin in these bytes.
fn count_units(bytes: &[u8]) -> usize {
    // A character of four bytes has two.
    let units = |byte: u8| usize::from(byte & 0xc0 != 0x80) + usize::from(byte >= 0xf0);
    bytes.iter().copied().map(units).sum()
}

impl<'t> Lines<'t> {
    /// Finds the lines of a text.
    pub(crate) fn new(text: &'t str) -> Self {
        let behind_blocks = text.as_bytes().chunks(BLOCK).scan(0, |before, block| {
            *before += count_units(block);
            Some(*before)
        });
        let before_blocks = std::iter::once(0).chain(behind_blocks).collect();
        Self { text, starts: line_starts(text), before_blocks }
    }

    /// The byte of a position. A position behind the end of its line or of the text is at that end, as the protocol says.
    pub(crate) fn offset(&self, position: Position) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line) else { return self.text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let line = self.text.get(*start..end).unwrap_or_default();
        let line = line.trim_end_matches(['\n', '\r']);
        let (mut column, wanted) = (0, position.character as usize);
        let before = line.char_indices().find(|(_, c)| {
            let is_there = column + c.len_utf16() > wanted;
            column += c.len_utf16();
            is_there
        });
        start + before.map_or(line.len(), |(at, _)| at)
    }

    /// The position of a byte.
    pub(crate) fn position(&self, at: usize) -> Position {
        let at = self.text.floor_char_boundary(at);
        let line = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        Position { line: number(line), character: number(self.units_before(at) - self.units_before(start)) }
    }

    /// The UTF-16 code units before a byte.
    fn units_before(&self, at: usize) -> usize {
        let block = at / BLOCK;
        let within = self.text.as_bytes().get(block * BLOCK..at).unwrap_or_default();
        self.before_blocks.get(block).copied().unwrap_or_default() + count_units(within)
    }

    /// The range from a byte to the one behind its end.
    pub(crate) fn range(&self, start: usize, end: usize) -> Range {
        Range { start: self.position(start), end: self.position(end.max(start)) }
    }
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_and_columns_as_the_protocol_does() {
        let text = "a\u{e4}\u{1f980}b\r\nc\rd\ne";
        let rows =
            [((0, 0), 0), ((0, 2), 3), ((0, 4), 7), ((0, 5), 8), ((1, 0), 10), ((2, 1), 13), ((3, 1), 15)];
        for ((line, character), at) in rows {
            let lines = Lines::new(text);
            let position = Position { line, character };
            assert_eq!((lines.offset(position), lines.position(at)), (at, position));
        }
    }

    #[test]
    fn counts_columns_of_a_line_of_many_blocks() {
        let line = "a\u{e4}\u{1f980}".repeat(BLOCK);
        let text = format!("\n{line}");
        let lines = Lines::new(&text);
        let mut character = 0;
        for (at, one) in text.char_indices().skip(1) {
            assert_eq!(lines.position(at), Position { line: 1, character });
            character += u32::try_from(one.len_utf16()).unwrap_or_default();
        }
    }

    #[test]
    fn brings_positions_into_the_text() {
        let lines = Lines::new("ab\n\u{1f980}");
        for ((line, character), at) in [((0, 9), 2), ((1, 1), 3), ((1, 9), 7), ((9, 0), 7)] {
            assert_eq!(lines.offset(Position { line, character }), at, "{line}:{character}");
        }
        assert_eq!(lines.position(5), Position { line: 1, character: 0 }, "within a character");
        assert_eq!(lines.position(99), Position { line: 1, character: 2 });
    }
}
