//! The texts of the files that the editor has open.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lsp_types::{TextDocumentContentChangeEvent, TextDocumentItem, Uri, VersionedTextDocumentIdentifier};

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

    /// Takes the new text of a file; the last one, if there are several. Returns whether the file is known.
    pub(crate) fn change(
        &mut self,
        document: &VersionedTextDocumentIdentifier,
        changes: Vec<TextDocumentContentChangeEvent>,
    ) -> bool {
        let Some(buffer) = self.0.get_mut(document.uri.as_str()) else { return false };
        buffer.version = document.version;
        if let Some(change) = changes.into_iter().next_back() {
            buffer.text = change.text.into();
        }
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

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use super::{Buffers, TextDocumentItem, Uri};

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
