//! A CA with its key: made, read, and signing leaves.

use std::time::Duration;

use pem::{EncodeConfig, LineEnding, Pem};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PublicKeyData,
};
use ring::digest::{SHA256, digest};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use thiserror::Error as ThisError;
use time::OffsetDateTime;
use x509_parser::parse_x509_certificate;

use crate::server::certs::anchor::{Anchor, certificate_pem};
use crate::server::certs::{KeyKind, Terms};

/// Clocks differ: a certificate is valid a little before it was made.
const EARLY: Duration = Duration::from_hours(1);

/// The longest text that is read as a certificate or a key.
const LONGEST: usize = 64 << 10;

/// A CA that can sign.
pub(in crate::server) struct Ca {
    /// Its certificate.
    pub(in crate::server) anchor: Anchor,
    /// Its key, PEM.
    pub(in crate::server) key_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, and which CA signed it.
pub(in crate::server) struct Leaf {
    pub(in crate::server) chain: Vec<CertificateDer<'static>>,
    pub(in crate::server) key: PrivateKeyDer<'static>,
    pub(in crate::server) signer: Anchor,
    pub(in crate::server) not_before: i64,
    pub(in crate::server) not_after: i64,
}

/// Why a CA cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ThisError)]
pub(in crate::server) enum Broken {
    /// There is none.
    #[error("it is missing")]
    Missing,
    /// The certificate cannot be read.
    #[error("its certificate cannot be read")]
    Certificate,
    /// The certificate may not sign others.
    #[error("its certificate is not that of a CA")]
    NotCa,
    /// The key cannot be read.
    #[error("its key cannot be read")]
    Key,
    /// The key is that of another certificate.
    #[error("its key belongs to another certificate")]
    OtherKey,
    /// It is not valid at this time.
    #[error("it has expired, or is not valid yet")]
    NotValid,
}

impl Ca {
    /// Makes a CA whose name no other one has.
    pub(in crate::server) fn make(now: i64, terms: &Terms) -> Result<Self, rcgen::Error> {
        let key = terms.key.generate()?;
        let hash = digest(&SHA256, &key.subject_public_key_info());
        let short = hash.as_ref().iter().take(4).fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
        let mut params = params(Vec::new(), &format!("memgate CA {short:08x}"), now, terms.ca, i64::MAX)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?;
        let anchor = Anchor::new(certificate.der()).ok_or(rcgen::Error::CouldNotParseCertificate)?;
        Ok(Self { anchor, key_pem: key.serialize_pem(), issuer: Issuer::new(params, key) })
    }

    /// Reads a CA from the PEM texts of its certificate and key.
    pub(in crate::server) fn read(certificate: &[u8], key: &[u8]) -> Result<Self, Broken> {
        if certificate.len() > LONGEST {
            return Err(Broken::Certificate);
        }
        let der = CertificateDer::from_pem_slice(certificate).map_err(|_| Broken::Certificate)?;
        let anchor = Anchor::new(&der).ok_or(Broken::Certificate)?;
        let key_pem =
            std::str::from_utf8(key).ok().filter(|text| text.len() <= LONGEST).ok_or(Broken::Key)?;
        let key = KeyPair::from_pem(key_pem).map_err(|_| Broken::Key)?;
        let (_, parsed) = parse_x509_certificate(&anchor.der).map_err(|_| Broken::Certificate)?;
        let usage = parsed.key_usage().ok().flatten();
        if !parsed.is_ca() || usage.is_some_and(|usage| !usage.value.key_cert_sign()) {
            return Err(Broken::NotCa);
        }
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(Broken::OtherKey);
        }
        let issuer = Issuer::from_ca_cert_der(&der, key).map_err(|_| Broken::Certificate)?;
        Ok(Self { key_pem: key_pem.to_owned(), issuer, anchor })
    }

    /// Its certificate as PEM.
    pub(in crate::server) fn certificate_pem(&self) -> String {
        certificate_pem(&self.anchor.der)
    }

    /// Signs a certificate for a server, which expires with the CA at the latest.
    pub(in crate::server) fn sign(
        &self,
        names: &[String],
        now: i64,
        terms: &Terms,
    ) -> Result<Leaf, rcgen::Error> {
        let key = terms.key.generate()?;
        let mut params = params(names.to_vec(), "memgate", now, terms.leaf, self.anchor.not_after)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let (not_before, not_after) = (params.not_before, params.not_after);
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Leaf {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            signer: self.anchor.clone(),
            not_before: not_before.unix_timestamp(),
            not_after: not_after.unix_timestamp(),
        })
    }
}

/// A key as PEM.
pub(in crate::server) fn key_pem(key: &PrivateKeyDer<'_>) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("PRIVATE KEY", key.secret_der()), config)
}

impl KeyKind {
    fn generate(self) -> Result<KeyPair, rcgen::Error> {
        KeyPair::generate_for(match self {
            Self::P256 => &PKCS_ECDSA_P256_SHA256,
            Self::P384 => &PKCS_ECDSA_P384_SHA384,
        })
    }
}

impl std::fmt::Debug for Ca {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(a CA and its key)")
    }
}

/// What both kinds of certificate have; valid for so long, but not beyond `latest`.
fn params(
    names: Vec<String>,
    common_name: &str,
    now: i64,
    validity: Duration,
    latest: i64,
) -> Result<CertificateParams, rcgen::Error> {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    let not_after = now.saturating_add(seconds(validity)).min(latest);
    let early = seconds(EARLY).min(not_after.saturating_sub(now) / 10);
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = date(now.saturating_sub(early))?;
    params.not_after = date(not_after)?;
    Ok(params)
}

fn date(seconds: i64) -> Result<OffsetDateTime, rcgen::Error> {
    OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| rcgen::Error::Time)
}

#[cfg(test)]
mod tests {
    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    const NOW: i64 = 2_000_000_000;

    fn trusts(ca: &Anchor, leaf: &Leaf, name: &str, now: i64) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(ca.certificate()).expect("an anchor");
        let provider = rustls::crypto::ring::default_provider().into();
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now.unsigned_abs()));
        let name = ServerName::try_from(name).expect("a name");
        let verifier = verifier.build().expect("a verifier");
        verifier.verify_server_cert(&leaf.chain[0], &[], &name, &[], now).is_ok()
    }

    #[test]
    fn signs_what_callers_trust_for_as_long_as_it_says() {
        for key in [KeyKind::P256, KeyKind::P384] {
            let terms = Terms { key, ..Terms::default() };
            let (ca, other) = (Ca::make(NOW, &terms).expect("a CA"), Ca::make(NOW, &terms).expect("a CA"));
            let leaf = ca.sign(&["memgate.x.svc".to_owned()], NOW, &terms).expect("a leaf");
            assert!(trusts(&ca.anchor, &leaf, "memgate.x.svc", NOW));
            assert!(trusts(&ca.anchor, &leaf, "memgate.x.svc", NOW - 3600));
            assert!(trusts(&ca.anchor, &leaf, "memgate.x.svc", NOW + 7 * 86400 - 1));
            assert!(!trusts(&ca.anchor, &leaf, "memgate.x.svc", NOW + 7 * 86400 + 1));
            assert!(!trusts(&ca.anchor, &leaf, "memgate.y.svc", NOW));
            assert!(!trusts(&other.anchor, &leaf, "memgate.x.svc", NOW));
        }
    }

    #[test]
    fn a_ca_that_was_read_signs_as_before() {
        for key in [KeyKind::P256, KeyKind::P384] {
            let terms = Terms { key, ..Terms::default() };
            let made = Ca::make(NOW, &terms).expect("a CA");
            let read = Ca::read(made.certificate_pem().as_bytes(), made.key_pem.as_bytes()).expect("a CA");
            assert_eq!(read.anchor, made.anchor);
            let leaf = read.sign(&["a.b".to_owned()], NOW, &terms).expect("a leaf");
            assert!(trusts(&made.anchor, &leaf, "a.b", NOW));
        }
    }

    #[test]
    fn no_leaf_outlives_its_ca() {
        let terms = Terms { ca: Duration::from_hours(10), ..Terms::default() };
        let ca = Ca::make(NOW, &terms).expect("a CA");
        let leaf = ca.sign(&[], NOW + 3600, &terms).expect("a leaf");
        assert_eq!(leaf.not_after, ca.anchor.not_after);
    }

    #[test]
    fn tells_what_is_wrong_with_a_ca() {
        let terms = Terms::default();
        let (ca, other) = (Ca::make(NOW, &terms).expect("a CA"), Ca::make(NOW, &terms).expect("a CA"));
        let leaf = ca.sign(&[], NOW, &terms).expect("a leaf");
        let leaf_pem = certificate_pem(&leaf.chain[0]);
        let leaf_key = key_pem(&leaf.key);
        let cert = ca.certificate_pem();
        let long = format!("{cert}{}", "x".repeat(LONGEST));
        for (cert, key, expected) in [
            ("", ca.key_pem.as_str(), Broken::Certificate),
            (&cert[..300], &ca.key_pem, Broken::Certificate),
            (&long, &ca.key_pem, Broken::Certificate),
            ("hello", &ca.key_pem, Broken::Certificate),
            (&cert, "", Broken::Key),
            (&cert, &ca.key_pem[..100], Broken::Key),
            (&cert, &cert, Broken::Key),
            (&cert, &other.key_pem, Broken::OtherKey),
            (&leaf_pem, &leaf_key, Broken::NotCa),
        ] {
            assert_eq!(Ca::read(cert.as_bytes(), key.as_bytes()).err(), Some(expected), "{cert} {key}");
        }
    }
}
