//! A CA with its key: generated, parsed, and signing serving certificates.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use ring::digest::{SHA256, digest};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use time::OffsetDateTime;
use x509_parser::parse_x509_certificate;

use crate::ca_bundle::{CaCert, certificate_pem};
use crate::{CertPolicy, provider};

/// How long before its creation a certificate is valid: clocks differ.
const CLOCK_SKEW: Duration = Duration::from_hours(1);

/// A CA that can sign.
#[derive(Clone)]
pub(crate) struct Ca {
    /// Its certificate.
    pub(crate) cert: CaCert,
    /// Its key, PEM.
    pub(crate) key_pem: String,
}

/// A serving certificate with its key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) cert_pem: String,
    pub(crate) key_pem: String,
    /// The dates between which it is valid, in seconds since 1970.
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
}

impl Ca {
    /// Generates a CA with a unique name.
    pub(crate) fn generate(now: i64, policy: &CertPolicy) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let hash = digest(&SHA256, &key.subject_public_key_info());
        let short = hash.as_ref().iter().take(4).fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
        let mut params = params(Vec::new(), &format!("memgate CA {short:08x}"), now, policy.ca, i64::MAX)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?;
        let cert = CaCert::new(certificate.der()).ok_or(rcgen::Error::CouldNotParseCertificate)?;
        Ok(Self { cert, key_pem: key.serialize_pem() })
    }

    /// Parses the PEM texts of a certificate and its key; `None` unless they are a CA and can sign.
    pub(crate) fn parse(certificate: &[u8], key: &[u8]) -> Option<Self> {
        let cert = CaCert::new(&CertificateDer::from_pem_slice(certificate).ok()?)?;
        let key_pem = String::from_utf8(key.to_vec()).ok()?;
        let public_key = KeyPair::from_pem(&key_pem).ok()?.subject_public_key_info();
        let (_, parsed) = parse_x509_certificate(&cert.der).ok()?;
        let can_sign = parsed.is_ca() && parsed.public_key().raw == public_key;
        can_sign.then_some(Self { cert, key_pem })
    }

    /// Its certificate as PEM.
    pub(crate) fn certificate_pem(&self) -> String {
        certificate_pem(&self.cert.der)
    }

    /// A serving certificate for these names; `None` when callers that trust this CA would not accept it, as when it has
    /// expired or may not sign for such names.
    pub(crate) fn issue(&self, names: &[String], now: i64, policy: &CertPolicy) -> Option<Leaf> {
        self.sign(names, now, policy).ok().filter(|leaf| self.is_issuer(leaf, names, now))
    }

    /// Signs a serving certificate, which expires with the CA at the latest.
    pub(crate) fn sign(&self, names: &[String], now: i64, policy: &CertPolicy) -> Result<Leaf, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = params(names.to_vec(), "memgate", now, policy.leaf, self.cert.not_after)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let issuer = Issuer::from_ca_cert_der(&self.cert.certificate(), KeyPair::from_pem(&self.key_pem)?)?;
        Ok(Leaf {
            not_before: params.not_before.unix_timestamp(),
            not_after: params.not_after.unix_timestamp(),
            cert_pem: params.signed_by(&key, &issuer)?.pem(),
            key_pem: key.serialize_pem(),
        })
    }

    /// Whether callers that trust this CA accept a certificate under all these names.
    pub(crate) fn is_issuer(&self, leaf: &Leaf, names: &[String], now: i64) -> bool {
        let mut roots = RootCertStore::empty();
        let verifier = roots.add(self.cert.certificate()).ok().and_then(|()| {
            WebPkiServerVerifier::builder_with_provider(roots.into(), provider().into()).build().ok()
        });
        let certificate = CertificateDer::from_pem_slice(leaf.cert_pem.as_bytes()).ok();
        let Some((verifier, certificate)) = verifier.zip(certificate) else { return false };
        // The verifier does not look at the dates of a root; an apiserver does.
        if !self.cert.is_valid(now) {
            return false;
        }
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now.unsigned_abs()));
        let mut names = names.iter().filter_map(|name| ServerName::try_from(name.as_str()).ok());
        names.all(|name| verifier.verify_server_cert(&certificate, &[], &name, &[], now).is_ok())
    }
}

impl Leaf {
    /// Parses the PEM texts of a certificate and its key; `None` unless they belong together.
    pub(crate) fn parse(certificate: &[u8], key: &[u8]) -> Option<Self> {
        let cert = CaCert::new(&CertificateDer::from_pem_slice(certificate).ok()?)?;
        let (cert_pem, key_pem) =
            (String::from_utf8(certificate.to_vec()).ok()?, String::from_utf8(key.to_vec()).ok()?);
        let public_key = KeyPair::from_pem(&key_pem).ok()?.subject_public_key_info();
        let (_, parsed) = parse_x509_certificate(&cert.der).ok()?;
        let (not_before, not_after) = (cert.not_before, cert.not_after);
        (parsed.public_key().raw == public_key).then_some(Self { cert_pem, key_pem, not_before, not_after })
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
    use super::*;

    const NOW: i64 = 2_000_000_000;

    fn trusts(ca: &Ca, leaf: &Leaf, name: &str, now: i64) -> bool {
        ca.is_issuer(leaf, &[name.to_owned()], now)
    }

    #[test]
    fn signs_what_callers_trust_for_as_long_as_it_says() {
        let policy = CertPolicy::default();
        let (ca, other) =
            (Ca::generate(NOW, &policy).expect("a CA"), Ca::generate(NOW, &policy).expect("a CA"));
        let leaf = ca.sign(&["memgate.x.svc".to_owned()], NOW, &policy).expect("a leaf");
        assert!(trusts(&ca, &leaf, "memgate.x.svc", NOW));
        assert!(trusts(&ca, &leaf, "memgate.x.svc", NOW - 3600));
        assert!(trusts(&ca, &leaf, "memgate.x.svc", NOW + 7 * 86400 - 1));
        assert!(!trusts(&ca, &leaf, "memgate.x.svc", NOW + 7 * 86400 + 1));
        assert!(!trusts(&ca, &leaf, "memgate.y.svc", NOW));
        assert!(!trusts(&other, &leaf, "memgate.x.svc", NOW));
    }

    #[test]
    fn a_ca_that_was_read_signs_as_before() {
        let policy = CertPolicy::default();
        let made = Ca::generate(NOW, &policy).expect("a CA");
        let read = Ca::parse(made.certificate_pem().as_bytes(), made.key_pem.as_bytes()).expect("a CA");
        assert_eq!(read.cert, made.cert);
        let leaf = read.sign(&["a.b".to_owned()], NOW, &policy).expect("a leaf");
        assert!(trusts(&made, &leaf, "a.b", NOW));
        let again = Leaf::parse(leaf.cert_pem.as_bytes(), leaf.key_pem.as_bytes());
        assert!(again == Some(leaf));
    }

    #[test]
    fn no_leaf_outlives_its_ca() {
        let policy = CertPolicy { ca: Duration::from_hours(10), ..CertPolicy::default() };
        let ca = Ca::generate(NOW, &policy).expect("a CA");
        let leaf = ca.sign(&[], NOW + 3600, &policy).expect("a leaf");
        assert_eq!(leaf.not_after, ca.cert.not_after);
    }

    #[test]
    fn only_a_ca_with_its_own_key_can_sign() {
        let policy = CertPolicy::default();
        let (ca, other) =
            (Ca::generate(NOW, &policy).expect("a CA"), Ca::generate(NOW, &policy).expect("a CA"));
        let leaf = ca.sign(&[], NOW, &policy).expect("a leaf");
        let cert = ca.certificate_pem();
        for (cert, key) in [
            ("", ca.key_pem.as_str()),
            (&cert[..300], &ca.key_pem),
            ("hello", &ca.key_pem),
            (&cert, ""),
            (&cert, &ca.key_pem[..100]),
            (&cert, &cert),
            (&cert, &other.key_pem),
            (&leaf.cert_pem, &leaf.key_pem),
        ] {
            assert!(Ca::parse(cert.as_bytes(), key.as_bytes()).is_none(), "{cert}");
        }
        assert!(Leaf::parse(leaf.cert_pem.as_bytes(), ca.key_pem.as_bytes()).is_none());
    }
}
