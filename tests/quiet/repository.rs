//! A repository of a test: files in a directory of their own.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// The files of a repository.
pub(crate) struct Repository {
    pub(crate) name: String,
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl Repository {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), files: Vec::new() }
    }

    /// The same with one more file.
    pub(crate) fn with(mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), bytes.into()));
        self
    }

    /// A new directory with the files, which is the root of a repository.
    pub(crate) fn written(&self) -> io::Result<TempDir> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join(".git"))?;
        for (path, bytes) in &self.files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap_or_else(|| folder.path()))?;
            fs::write(path, bytes)?;
        }
        Ok(folder)
    }

    /// Whether a folder still has each file as it was written.
    pub(crate) fn is_unchanged(&self, folder: &Path) -> bool {
        self.files.iter().all(|(path, bytes)| fs::read(folder.join(path)).is_ok_and(|read| read == *bytes))
    }
}
