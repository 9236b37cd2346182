//! A CA with its key: generated, parsed, and signing leaf certificates.

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

use crate::ca_bundle::{CaCert, certificate_pem};
use crate::{CertPolicy, KeyKind};

/// How long before its creation a certificate is valid: clocks differ.
const CLOCK_SKEW: Duration = Duration::from_hours(1);

/// A CA that can sign.
pub(crate) struct Ca {
    /// Its certificate.
    pub(crate) cert: CaCert,
    /// Its key, PEM.
    pub(crate) key_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key.
pub(crate) struct Leaf {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) current: CurrentLeaf,
}

/// Which CA signed a certificate, and when it is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CurrentLeaf {
    pub(crate) signer: CaCert,
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
}

/// Why a CA cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ThisError)]
pub(crate) enum CaError {
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
    /// Generates a CA with a unique name.
    pub(crate) fn generate(now: i64, policy: &CertPolicy) -> Result<Self, rcgen::Error> {
        let key = policy.key.generate()?;
        let hash = digest(&SHA256, &key.subject_public_key_info());
        let short = hash.as_ref().iter().take(4).fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
        let mut params = params(Vec::new(), &format!("memgate CA {short:08x}"), now, policy.ca, i64::MAX)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?;
        let cert = CaCert::new(certificate.der()).ok_or(rcgen::Error::CouldNotParseCertificate)?;
        Ok(Self { cert, key_pem: key.serialize_pem(), issuer: Issuer::new(params, key) })
    }

    /// Parses the PEM texts of a certificate and its key.
    pub(crate) fn parse(certificate: &[u8], key: &[u8]) -> Result<Self, CaError> {
        let der = CertificateDer::from_pem_slice(certificate).map_err(|_| CaError::Certificate)?;
        let cert = CaCert::new(&der).ok_or(CaError::Certificate)?;
        let key_pem = std::str::from_utf8(key).map_err(|_| CaError::Key)?;
        let key = KeyPair::from_pem(key_pem).map_err(|_| CaError::Key)?;
        let (_, parsed) = parse_x509_certificate(&cert.der).map_err(|_| CaError::Certificate)?;
        let usage = parsed.key_usage().ok().flatten();
        if !parsed.is_ca() || usage.is_some_and(|usage| !usage.value.key_cert_sign()) {
            return Err(CaError::NotCa);
        }
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(CaError::OtherKey);
        }
        let issuer = Issuer::from_ca_cert_der(&der, key).map_err(|_| CaError::Certificate)?;
        Ok(Self { key_pem: key_pem.to_owned(), issuer, cert })
    }

    /// Its certificate as PEM.
    pub(crate) fn certificate_pem(&self) -> String {
        certificate_pem(&self.cert.der)
    }

    /// Signs a serving certificate, which expires with the CA at the latest.
    pub(crate) fn sign(&self, names: &[String], now: i64, policy: &CertPolicy) -> Result<Leaf, rcgen::Error> {
        let key = policy.key.generate()?;
        let mut params = params(names.to_vec(), "memgate", now, policy.leaf, self.cert.not_after)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let (not_before, not_after) = (params.not_before, params.not_after);
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Leaf {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            current: CurrentLeaf {
                signer: self.cert.clone(),
                not_before: not_before.unix_timestamp(),
                not_after: not_after.unix_timestamp(),
            },
        })
    }
}

/// A key as PEM.
pub(crate) fn key_pem(key: &PrivateKeyDer<'_>) -> String {
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

/// The parameters of both CAs and leaves; valid for `validity`, but not beyond `latest`.
fn params(
    names: Vec<String>,
    common_name: &str,
    now: i64,
    validity: Duration,
    latest: i64,
) -> Result<CertificateParams, rcgen::Error> {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    let not_after = now.saturating_add(seconds(validity)).min(latest);
    // A certificate of minutes, as in tests, must not spend most of its life in the past.
    let early = seconds(CLOCK_SKEW).min(not_after.saturating_sub(now) / 10);
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

    fn trusts(ca: &CaCert, leaf: &Leaf, name: &str, now: i64) -> bool {
        let mut roots = RootCertStore::empty();
        roots.add(ca.certificate()).expect("a certificate");
        let provider = crate::provider().into();
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now.unsigned_abs()));
        let name = ServerName::try_from(name).expect("a name");
        let verifier = verifier.build().expect("a verifier");
        verifier.verify_server_cert(&leaf.chain[0], &[], &name, &[], now).is_ok()
    }

    #[test]
    fn signs_what_callers_trust_for_as_long_as_it_says() {
        for key in [KeyKind::P256, KeyKind::P384] {
            let policy = CertPolicy { key, ..CertPolicy::default() };
            let (ca, other) =
                (Ca::generate(NOW, &policy).expect("a CA"), Ca::generate(NOW, &policy).expect("a CA"));
            let leaf = ca.sign(&["memgate.x.svc".to_owned()], NOW, &policy).expect("a leaf");
            assert!(trusts(&ca.cert, &leaf, "memgate.x.svc", NOW));
            assert!(trusts(&ca.cert, &leaf, "memgate.x.svc", NOW - 3600));
            assert!(trusts(&ca.cert, &leaf, "memgate.x.svc", NOW + 7 * 86400 - 1));
            assert!(!trusts(&ca.cert, &leaf, "memgate.x.svc", NOW + 7 * 86400 + 1));
            assert!(!trusts(&ca.cert, &leaf, "memgate.y.svc", NOW));
            assert!(!trusts(&other.cert, &leaf, "memgate.x.svc", NOW));
        }
    }

    #[test]
    fn a_ca_that_was_read_signs_as_before() {
        for key in [KeyKind::P256, KeyKind::P384] {
            let policy = CertPolicy { key, ..CertPolicy::default() };
            let made = Ca::generate(NOW, &policy).expect("a CA");
            let read = Ca::parse(made.certificate_pem().as_bytes(), made.key_pem.as_bytes()).expect("a CA");
            assert_eq!(read.cert, made.cert);
            let leaf = read.sign(&["a.b".to_owned()], NOW, &policy).expect("a leaf");
            assert!(trusts(&made.cert, &leaf, "a.b", NOW));
        }
    }

    #[test]
    fn no_leaf_outlives_its_ca() {
        let policy = CertPolicy { ca: Duration::from_hours(10), ..CertPolicy::default() };
        let ca = Ca::generate(NOW, &policy).expect("a CA");
        let leaf = ca.sign(&[], NOW + 3600, &policy).expect("a leaf");
        assert_eq!(leaf.current.not_after, ca.cert.not_after);
    }

    #[test]
    fn reports_what_is_wrong_with_a_ca() {
        let policy = CertPolicy::default();
        let (ca, other) =
            (Ca::generate(NOW, &policy).expect("a CA"), Ca::generate(NOW, &policy).expect("a CA"));
        let leaf = ca.sign(&[], NOW, &policy).expect("a leaf");
        let leaf_pem = certificate_pem(&leaf.chain[0]);
        let leaf_key = key_pem(&leaf.key);
        let cert = ca.certificate_pem();
        for (cert, key, expected) in [
            ("", ca.key_pem.as_str(), CaError::Certificate),
            (&cert[..300], &ca.key_pem, CaError::Certificate),
            ("hello", &ca.key_pem, CaError::Certificate),
            (&cert, "", CaError::Key),
            (&cert, &ca.key_pem[..100], CaError::Key),
            (&cert, &cert, CaError::Key),
            (&cert, &other.key_pem, CaError::OtherKey),
            (&leaf_pem, &leaf_key, CaError::NotCa),
        ] {
            assert_eq!(Ca::parse(cert.as_bytes(), key.as_bytes()).err(), Some(expected), "{cert} {key}");
        }
    }
}
