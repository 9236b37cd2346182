//! Files that can be replaced at any time.
//!
//! A change is a change of content, not of modification time or inode: a Secret is mounted through symlinks that are
//! swapped, and clocks go back. While files are replaced, a certificate and its key can differ for a moment; the next
//! read finds the new pair.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::tls::Error;

/// The longest part of a file that is read. Chains and keys are much shorter, but a wrong path could name any file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Some files, and their last contents.
#[derive(Clone)]
pub(super) struct WatchedFiles<const N: usize> {
    paths: [PathBuf; N],
    /// `None` after a read that failed.
    last: Option<[Vec<u8>; N]>,
}

impl<const N: usize> WatchedFiles<N> {
    /// Files that were not read yet.
    pub(super) fn new(paths: [&Path; N]) -> Self {
        Self { paths: paths.map(Path::to_owned), last: None }
    }

    /// The contents as `parse` reads them, or why they cannot be used.
    pub(super) fn read<T>(&mut self, parse: fn([&[u8]; N]) -> Result<T, Error>) -> Result<T, Error> {
        let contents = self.contents()?;
        let parsed = parse(self.last.insert(contents).each_ref().map(Vec::as_slice));
        parsed.map_err(|source| Error::Unusable { files: self.to_string(), source: Box::new(source) })
    }

    /// The same; `None` when they have not changed. A file that cannot be read is reported once, until it can be read again.
    pub(super) fn read_if_changed<T>(
        &mut self,
        parse: fn([&[u8]; N]) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        match self.contents() {
            Ok(contents) if self.last.as_ref() == Some(&contents) => None,
            Ok(_) => Some(self.read(parse)),
            Err(error) => self.last.take().map(|_| Err(error)),
        }
    }

    fn contents(&self) -> Result<[Vec<u8>; N], Error> {
        let mut contents = [const { Vec::new() }; N];
        for (path, content) in self.paths.iter().zip(&mut contents) {
            File::open(path)
                .and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(content))
                .map_err(|source| Error::Read { path: path.to_owned(), source })?;
        }
        Ok(contents)
    }
}

/// The paths, without the contents, which may hold a key.
impl<const N: usize> fmt::Display for WatchedFiles<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.paths.each_ref().map(|path| path.to_string_lossy()).join(" and "))
    }
}
