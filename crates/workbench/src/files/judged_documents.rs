//! From what the judged objects of a run come.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The kind, namespace and name of an object as its text says them.
pub(crate) type WrittenName = [String; 3];

/// From what the judged objects of a run come.
#[derive(Debug, Default)]
pub struct JudgedDocuments {
    /// Documents, by absolute file and first byte.
    pub(crate) documents: BTreeSet<(PathBuf, usize)>,
    /// What templates print, each with its template.
    pub(crate) printed: BTreeMap<WrittenName, PathBuf>,
    /// The files from which something was built.
    pub(crate) built: BTreeSet<PathBuf>,
}

impl JudgedDocuments {
    /// Adds those of another unit.
    pub(crate) fn join(&mut self, other: Self) {
        self.documents.extend(other.documents);
        self.printed.extend(other.printed);
        self.built.extend(other.built);
    }
}
