//! Files that can be replaced at any time.
//!
//! A change is a change of content, not of modification time or inode: a Secret is mounted through symlinks that are
//! swapped, and clocks go back. While files are replaced, a certificate and its key can differ for a moment; the next
//! read finds the new pair.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::tls::{CertKeyPair, Error};

/// The longest file that is read. Chains and keys are much shorter, but a wrong path could name any file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Some files, and their last contents.
#[derive(Clone)]
pub(super) struct WatchedFiles<const N: usize> {
    paths: [PathBuf; N],
    /// Empty before the first read; `None` after a read that failed.
    last: Option<[Vec<u8>; N]>,
}

impl<const N: usize> WatchedFiles<N> {
    /// Files that were not read yet.
    pub(super) fn new(paths: [&Path; N]) -> Self {
        Self { paths: paths.map(Path::to_owned), last: Some([const { Vec::new() }; N]) }
    }

    /// The contents as `parse` reads them; `None` when they have not changed. A file that cannot be read is reported
    /// once, until it can be read again.
    pub(super) fn read_if_changed<T>(
        &mut self,
        parse: impl FnOnce(&[PathBuf; N], &[Vec<u8>; N]) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        match self.contents() {
            Ok(contents) if self.last.as_ref() == Some(&contents) => None,
            Ok(contents) => Some(parse(&self.paths, self.last.insert(contents))),
            Err(error) => self.last.take().map(|_| Err(error)),
        }
    }

    fn contents(&self) -> Result<[Vec<u8>; N], Error> {
        let mut contents = [const { Vec::new() }; N];
        for (path, content) in self.paths.iter().zip(&mut contents) {
            *content = read(path)?;
        }
        Ok(contents)
    }
}

/// A certificate chain and its key, PEM.
pub(super) fn pair([cert, key]: &[PathBuf; 2], [chain, secret]: &[Vec<u8>; 2]) -> Result<CertKeyPair, Error> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| Error::NoCertificate { path: cert.clone() })?;
    let secret = PrivateKeyDer::from_pem_slice(secret).map_err(|_| Error::NoKey { path: key.clone() })?;
    CertKeyPair::new(chain, secret)
}

/// The bytes of a file that is not too long.
fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text))
        .map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::TooLong { path: path.to_owned() });
    }
    Ok(text)
}

/// Does not show the contents, which may hold a key.
impl<const N: usize> fmt::Debug for WatchedFiles<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.paths)
    }
}
