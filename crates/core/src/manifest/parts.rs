//! Parts of a source that are read by themselves: YAML documents, cut where they begin. A text of many documents is
//! read in the memory that its largest one takes.
//!
//! A line that begins with `---` ends whatever is open before it, also a text in quotes or a block, so nothing has to be
//! read to find it. YAML with directives, which belong to the document behind them, stays in one piece.

use std::ops::Range;

use crate::manifest::source::Source;

/// A stretch of a source that is read by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The first byte.
    pub(super) start: usize,
    /// The byte behind the last one.
    pub(super) end: usize,
}

impl Part {
    /// All of a source.
    pub(super) fn whole(source: &Source) -> Self {
        Self { start: 0, end: source.text().len() }
    }

    /// Its bytes.
    pub(super) const fn bytes(self) -> Range<usize> {
        self.start..self.end
    }
}

/// The parts of a YAML source, which together are the whole of it.
pub(super) fn parts(source: &Source) -> Vec<Part> {
    let text = source.text();
    if has_directive(text) {
        return vec![Part::whole(source)];
    }
    let begins = text.match_indices("\n---").map(|(at, _)| at + 1);
    let begins = begins.filter(|at| text.get(*at..).is_some_and(|rest| begins_with_marker(rest, "---")));
    let mut parts = Vec::new();
    let mut start = 0;
    for begin in begins.chain([text.len()]) {
        parts.push(Part { start, end: begin });
        start = begin;
    }
    parts
}

/// Whether a text begins with `---` or `...`, whichever is asked for, as the marker of a document.
pub(super) fn begins_with_marker(text: &str, marker: &str) -> bool {
    let behind = text.strip_prefix(marker);
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(|it: char| it.is_ascii_whitespace()))
}

/// Whether a line looks like a directive.
fn has_directive(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').starts_with('%') || text.contains("\n%") || text.contains("\r%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_before_each_document() {
        for (text, expected) in [
            ("", vec![""]),
            ("a: 1", vec!["a: 1"]),
            ("a: 1\n---\nb: 1\n", vec!["a: 1\n", "---\nb: 1\n"]),
            ("---\na: 1\n--- # x\r\n---", vec!["---\na: 1\n", "--- # x\r\n", "---"]),
            ("a: |\n ---\n----\n--- |\n  x\n", vec!["a: |\n ---\n----\n", "--- |\n  x\n"]),
            ("%YAML 1.2\n---\na: 1\n---\n", vec!["%YAML 1.2\n---\na: 1\n---\n"]),
            ("a: 1\n...\n%TAG ! x\n---\n", vec!["a: 1\n...\n%TAG ! x\n---\n"]),
        ] {
            let source = Source::new("a.yaml", text);
            let parts = parts(&source);
            let texts: Vec<&str> = parts.iter().filter_map(|part| text.get(part.bytes())).collect();
            assert_eq!(texts, expected, "{text}");
        }
    }
}
