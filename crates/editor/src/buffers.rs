//! The texts of the files that the editor has open.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use lsp_types::{TextDocumentContentChangeEvent, TextDocumentItem, Uri, VersionedTextDocumentIdentifier};

use crate::positions::{Encoding, Lines, line_starts};
use crate::uri;
use memgate_workbench::paths::is_manifest;

/// An open file.
#[derive(Debug, Clone)]
pub(crate) struct Buffer {
    /// The address, as the editor writes it.
    pub(crate) uri: Uri,
    /// The absolute path.
    pub(crate) path: PathBuf,
    /// The version, which grows with each change.
    pub(crate) version: i32,
    /// The text.
    pub(crate) text: Arc<str>,
}

/// The open files, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct Buffers(BTreeMap<String, Buffer>);

impl Buffers {
    /// Adds a file, if `check` would read it. Returns whether it would.
    pub(crate) fn open(&mut self, document: TextDocumentItem) -> bool {
        let TextDocumentItem { uri, version, text, .. } = document;
        let Some(path) = uri::path(&uri) else { return false };
        if !is_manifest(&path) {
            return false;
        }
        let text: Arc<str> = text.into();
        self.0.insert(uri.as_str().to_owned(), Buffer { uri, path, version, text });
        true
    }

    /// Makes changes in the text of a file, one after the other. Returns whether the file is known.
    pub(crate) fn change(
        &mut self,
        document: &VersionedTextDocumentIdentifier,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    ) -> bool {
        let Some(buffer) = self.0.get_mut(document.uri.as_str()) else { return false };
        let mut text = buffer.text.to_string();
        let mut starts = line_starts(&text);
        for change in changes {
            let Some(range) = change.range else {
                text = change.text;
                starts = line_starts(&text);
                continue;
            };
            let lines = Lines::with(&text, starts, encoding);
            let (start, end) = (lines.offset(range.start), lines.offset(range.end));
            starts = lines.into_starts();
            replace(&mut text, start..end.max(start), &change.text, &mut starts);
        }
        buffer.version = document.version;
        buffer.text = text.into();
        true
    }

    /// Forgets the file of an address. Returns whether it was known.
    pub(crate) fn close(&mut self, address: &str) -> bool {
        self.0.remove(address).is_some()
    }

    /// An open file.
    pub(crate) fn get(&self, uri: &Uri) -> Option<&Buffer> {
        self.0.get(uri.as_str())
    }

    /// All open files, in the order of their addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Buffer> {
        self.0.values()
    }
}

/// Replaces a part of a text, and moves the starts of its lines. An editor may send ten thousand edits at once, so the
/// lines are found anew only where their number may change.
fn replace(text: &mut String, part: Range<usize>, new: &str, starts: &mut Vec<usize>) {
    let has_line_end = |text: &str| text.contains(['\n', '\r']);
    let joins = text.get(..part.start).is_some_and(|before| before.ends_with('\r'))
        && text.get(part.end..).is_some_and(|behind| behind.starts_with('\n'));
    let changes_lines = joins || has_line_end(new) || text.get(part.clone()).is_none_or(has_line_end);
    text.replace_range(part.clone(), new);
    if changes_lines {
        *starts = line_starts(text);
        return;
    }
    let behind = starts.partition_point(|at| *at <= part.start);
    for at in starts.iter_mut().skip(behind) {
        *at = *at + new.len() - part.len();
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use lsp_types::{Position, Range};

    use super::{Buffers, Encoding, TextDocumentContentChangeEvent, TextDocumentItem, Uri, line_starts};
    use super::{VersionedTextDocumentIdentifier, replace};

    #[test]
    fn moves_the_starts_of_lines() {
        let texts = ["", "x", "\n", "\r", "a\r\nb", "\u{e4}\n"];
        let before = "one\r\ntwo\rthree\n\r\u{e4}\nfour";
        let places = || (0..=before.len()).filter(|at| before.is_char_boundary(*at));
        for (start, end) in places().flat_map(|start| places().map(move |end| (start, end))) {
            for new in texts.iter().filter(|_| start <= end) {
                let (mut text, mut starts) = (before.to_owned(), line_starts(before));
                replace(&mut text, start..end, new, &mut starts);
                assert_eq!(starts, line_starts(&text), "{start} {end} {new:?}");
            }
        }
    }

    #[test]
    fn makes_changes_one_after_the_other() {
        let mut buffers = Buffers::default();
        let uri = Uri::from_str("file:///a.yaml").expect("an address");
        let item = |text: &str| TextDocumentItem::new(uri.clone(), "yaml".to_owned(), 1, text.to_owned());
        assert!(buffers.open(item("a: \u{1f980}\nb: 2\n")));
        let change = |from: (u32, u32), to: (u32, u32), text: &str| TextDocumentContentChangeEvent {
            range: Some(Range::new(Position::new(from.0, from.1), Position::new(to.0, to.1))),
            range_length: None,
            text: text.to_owned(),
        };
        let document = VersionedTextDocumentIdentifier::new(uri.clone(), 2);
        let changes = vec![
            change((0, 3), (0, 5), "1"),
            change((1, 0), (1, 0), "x\n"),
            change((2, 9), (9, 9), ""),
            // A range that ends before it starts.
            change((1, 1), (0, 0), "y"),
        ];
        assert!(buffers.change(&document, changes, Encoding::Utf16));
        let buffer = buffers.get(&uri).expect("is open");
        assert_eq!((&*buffer.text, buffer.version), ("a: 1\nxy\nb: 2", 2));
        assert!(buffers.close(uri.as_str()) && !buffers.close(uri.as_str()));
        assert!(!buffers.change(&document, Vec::new(), Encoding::Utf16));
    }

    #[test]
    fn takes_only_what_check_reads() {
        let mut buffers = Buffers::default();
        for address in ["file:///a.md", "untitled:a.yaml", "file:///yaml"] {
            let uri = Uri::from_str(address).expect("an address");
            let item = TextDocumentItem::new(uri, "yaml".to_owned(), 1, String::new());
            assert!(!buffers.open(item), "{address}");
        }
    }
}
