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
}

impl Certificates {
    pub(crate) fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let leaf = CertificateParams::new(["localhost".to_owned()])?.signed_by(&key, &issuer)?;
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("tls.crt"), leaf.pem())?;
        fs::write(folder.path().join("tls.key"), key.serialize_pem())?;
        Ok(Self { ca: issuer.pem(), folder })
    }

    /// A file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
