//! Places of the Language Server Protocol: a line, and a column in bytes or in UTF-16 code units, both from 0.

use std::cell::OnceCell;

use lsp_types::{Position, PositionEncodingKind, Range};

/// How columns are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// In UTF-16 code units, as every client can.
    #[default]
    Utf16,
    /// In bytes.
    Utf8,
}

impl Encoding {
    /// The encoding to use with a client that knows these: bytes if it can, since nothing has to be counted then.
    pub(crate) fn of(known: Option<&[PositionEncodingKind]>) -> Self {
        let knows_bytes = known.is_some_and(|known| known.contains(&PositionEncodingKind::UTF8));
        if knows_bytes { Self::Utf8 } else { Self::Utf16 }
    }

    /// The name in the protocol.
    pub(crate) fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf8 => PositionEncodingKind::UTF8,
        }
    }

    fn width(self, c: char) -> usize {
        match self {
            Self::Utf16 => c.len_utf16(),
            Self::Utf8 => c.len_utf8(),
        }
    }
}

/// The bytes between two counts of UTF-16 code units. Generated JSON has lines of megabytes, and a column there must not
/// mean counting them all.
const BLOCK_BYTES: usize = 4096;

/// The lines of a text. A line ends at `\n`, `\r\n` or `\r`.
#[derive(Debug)]
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// The byte at which each line starts.
    starts: Vec<usize>,
    encoding: Encoding,
    /// The number of UTF-16 code units before each block, once one was needed.
    units: OnceCell<Vec<usize>>,
}

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
    pub(crate) fn new(text: &'t str, encoding: Encoding) -> Self {
        Self { text, starts: line_starts(text), encoding, units: OnceCell::new() }
    }

    fn units_before(&self, at: usize) -> usize {
        let units = self.units.get_or_init(|| {
            let blocks = self.text.as_bytes().chunks(BLOCK_BYTES);
            let counts = blocks.scan(0, |sum, block| {
                *sum += count_units(block);
                Some(*sum)
            });
            std::iter::once(0).chain(counts).collect()
        });
        let block = at / BLOCK_BYTES;
        let rest = self.text.as_bytes().get(block * BLOCK_BYTES..at).unwrap_or_default();
        units.get(block).copied().unwrap_or_default() + count_units(rest)
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
            let is_there = column + self.encoding.width(*c) > wanted;
            column += self.encoding.width(*c);
            is_there
        });
        start + before.map_or(line.len(), |(at, _)| at)
    }

    /// The position of a byte.
    pub(crate) fn position(&self, at: usize) -> Position {
        let at = self.text.floor_char_boundary(at);
        let line = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let character = match self.encoding {
            Encoding::Utf8 => at - start,
            Encoding::Utf16 => self.units_before(at) - self.units_before(start),
        };
        Position { line: number(line), character: number(character) }
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
        let rows = [
            (Encoding::Utf16, (0, 0), 0),
            (Encoding::Utf16, (0, 2), 3),
            (Encoding::Utf16, (0, 4), 7),
            (Encoding::Utf16, (0, 5), 8),
            (Encoding::Utf8, (0, 7), 7),
            (Encoding::Utf8, (0, 8), 8),
            (Encoding::Utf16, (1, 0), 10),
            (Encoding::Utf16, (2, 1), 13),
            (Encoding::Utf16, (3, 1), 15),
        ];
        for (encoding, (line, character), at) in rows {
            let lines = Lines::new(text, encoding);
            let position = Position { line, character };
            assert_eq!((lines.offset(position), lines.position(at)), (at, position), "{encoding:?}");
        }
    }

    #[test]
    fn counts_in_a_line_that_is_longer_than_a_block() {
        let text = format!("x\n{}y", "a\u{e4}\u{20ac}\u{1f980}".repeat(2_000));
        let lines = Lines::new(&text, Encoding::Utf16);
        for (characters, units) in [(4_000, 5_000), (6_001, 7_501), (8_000, 10_000)] {
            let bytes: usize = text.chars().skip(2).take(characters).map(char::len_utf8).sum();
            assert_eq!(lines.position(2 + bytes), Position { line: 1, character: units }, "{characters}");
        }
    }

    #[test]
    fn brings_positions_into_the_text() {
        let lines = Lines::new("ab\n\u{1f980}", Encoding::Utf16);
        for ((line, character), at) in [((0, 9), 2), ((1, 1), 3), ((1, 9), 7), ((9, 0), 7)] {
            assert_eq!(lines.offset(Position { line, character }), at, "{line}:{character}");
        }
        assert_eq!(lines.position(5), Position { line: 1, character: 0 }, "within a character");
        assert_eq!(lines.position(99), Position { line: 1, character: 2 });
    }
}
