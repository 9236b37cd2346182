//! The certificate that all servers have.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tempfile::TempDir;

use crate::support::certs::Authority;

/// A CA, and a folder with tls.crt and tls.key, P-256, for localhost.
pub(crate) struct Certificates {
    pub(crate) ca: String,
    pub(crate) folder: TempDir,
    authority: Authority,
}

impl Certificates {
    pub(crate) fn new() -> Result<Self> {
        let authority = Authority::new("bench")?;
        let certificates = Self { ca: authority.pem(), folder: tempfile::tempdir()?, authority };
        certificates.replace()?;
        Ok(certificates)
    }

    /// Writes a new certificate and key in the place of the old ones; returns the certificate, DER.
    pub(crate) fn replace(&self) -> Result<Vec<u8>> {
        let pair = self.authority.server("localhost")?;
        for (name, text) in [("tls.crt", &pair.cert), ("tls.key", &pair.key)] {
            let new = self.path("new");
            fs::write(&new, text)?;
            fs::rename(new, self.path(name))?;
        }
        Ok(CertificateDer::from_pem_slice(pair.cert.as_bytes())?.to_vec())
    }

    /// A file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
