//! A certificate and its key in two PEM files, which can be replaced at any time.
//!
//! A change is a change of content, not of modification time or inode: a Secret is mounted through symlinks that are
//! swapped, and clocks go back. While the files are replaced, the certificate and the key can differ for a moment; the
//! next read finds the new pair.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::server::tls::{CertKeyPair, Error};

/// The longest file that is read. Chains and keys are much shorter, but a wrong path could name any file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The two files, and their last contents.
#[derive(Debug, Clone)]
pub(super) struct CertFiles {
    cert: PathBuf,
    key: PathBuf,
    last: Option<Contents>,
}

#[derive(Clone, PartialEq, Eq)]
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl CertFiles {
    /// Two files that were not read yet.
    pub(super) fn new(cert: &Path, key: &Path) -> Self {
        Self { cert: cert.to_owned(), key: key.to_owned(), last: None }
    }

    /// The current pair of the files.
    pub(super) fn read(&mut self) -> Result<CertKeyPair, Error> {
        let text = self.text()?;
        let pair = self.parse(&text);
        self.last = Some(text);
        pair
    }

    /// The current pair of the files; `None` when they have not changed. A file that cannot be read is reported once,
    /// until it can be read again.
    pub(super) fn read_if_changed(&mut self) -> Option<Result<CertKeyPair, Error>> {
        match self.text() {
            Ok(text) if self.last.as_ref() == Some(&text) => None,
            Ok(text) => {
                let pair = self.parse(&text);
                self.last = Some(text);
                Some(pair)
            }
            Err(error) => self.last.take().map(|_| Err(error)),
        }
    }

    fn text(&self) -> Result<Contents, Error> {
        Ok(Contents { cert: read(&self.cert)?, key: read(&self.key)? })
    }

    fn parse(&self, text: &Contents) -> Result<CertKeyPair, Error> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text.cert).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| Error::NoCertificate { path: self.cert.clone() })?;
        let key = PrivateKeyDer::from_pem_slice(&text.key);
        let key = key.map_err(|_| Error::NoKey { path: self.key.clone() })?;
        CertKeyPair::new(chain, key)
    }
}

/// The bytes of a file that is not too long.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text))
        .map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::TooLong { path: path.to_owned() });
    }
    Ok(text)
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(certificate and key)")
    }
}
