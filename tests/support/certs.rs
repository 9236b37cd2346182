//! A certificate authority for tests, and what it signs: server and client certificates.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use super::scratch::Scratch;

/// The names under which a server on this machine is called.
const LOOPBACK: [&str; 2] = ["127.0.0.1", "localhost"];

/// `O`, once more: rcgen keeps one value for each kind of name, and this is another kind to it.
const SECOND_ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

/// A self-signed authority that lives as long as the value.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, both PEM.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    /// The certificate.
    pub(crate) cert: String,
    /// The private key, PKCS #8.
    pub(crate) key: String,
}

impl Authority {
    /// A new authority with this common name.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let mut params = named(name)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)
            .with_context(|| format!("failed to make the authority {name}"))?;
        Ok(Self { issuer })
    }

    /// Its certificate, PEM.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// For a server on loopback.
    pub(crate) fn server(&self, name: &str) -> Result<Pair> {
        let mut params = CertificateParams::new(LOOPBACK.map(String::from))?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    /// For a client that the apiserver knows as this user, in these groups.
    ///
    /// # Errors
    /// With more than two groups, which rcgen cannot write.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> Result<Pair> {
        let mut params = named(user)?;
        let kinds = [DnType::OrganizationName, DnType::CustomDnType(SECOND_ORGANIZATION.to_vec())];
        if groups.len() > kinds.len() {
            bail!(
                "a client certificate holds at most {} groups here; use a service account token for more",
                kinds.len()
            );
        }
        for (kind, group) in kinds.into_iter().zip(groups) {
            params.distinguished_name.push(kind, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Pair> {
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let cert = params.signed_by(&key, &self.issuer).context("failed to sign a certificate")?;
        Ok(Pair { cert: cert.pem(), key: key.serialize_pem() })
    }
}

impl Pair {
    /// Writes `<stem>.crt` and `<stem>.key` and returns their paths.
    pub(crate) fn write(&self, scratch: &Scratch, stem: &str) -> Result<(PathBuf, PathBuf)> {
        let cert = scratch.write(&format!("{stem}.crt"), &self.cert)?;
        let key = scratch.write(&format!("{stem}.key"), &self.key)?;
        Ok((cert, key))
    }
}

fn named(name: &str) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

/// A key pair that signs service account tokens: the private and the public key, both PEM.
pub(crate) fn token_keys() -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}
