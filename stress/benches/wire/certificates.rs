//! The certificate that all servers have.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

/// A CA, and a folder with tls.crt and tls.key, P-256, for localhost.
pub(crate) struct Certificates {
    pub(crate) ca: String,
    pub(crate) folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    pub(crate) fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let certificates = Self { ca: issuer.pem(), folder: tempfile::tempdir()?, issuer };
        certificates.replace()?;
        Ok(certificates)
    }

    /// Writes a new certificate and key in the place of the old ones; returns the certificate, DER.
    pub(crate) fn replace(&self) -> Result<Vec<u8>> {
        let key = KeyPair::generate()?;
        let leaf = CertificateParams::new(["localhost".to_owned()])?.signed_by(&key, &self.issuer)?;
        for (name, text) in [("tls.crt", leaf.pem()), ("tls.key", key.serialize_pem())] {
            let new = self.path("new");
            fs::write(&new, text)?;
            fs::rename(new, self.path(name))?;
        }
        Ok(leaf.der().to_vec())
    }

    /// A file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
