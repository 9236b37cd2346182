//! Bundles of CA certificates, as in `caBundle`: parsed and written as PEM.
//!
//! Unreadable parts are skipped: the rest of a damaged bundle is still useful.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pem::{EncodeConfig, LineEnding, Pem};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use x509_parser::parse_x509_certificate;

/// A CA certificate. Equal when all bytes are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CaCert {
    pub(crate) der: Vec<u8>,
    /// From when on it is valid, in seconds since 1970.
    pub(crate) not_before: i64,
    /// Until when it is valid, in seconds since 1970.
    pub(crate) not_after: i64,
}

impl CaCert {
    /// Parses a certificate; `None` when it is not one.
    pub(crate) fn new(der: &CertificateDer<'_>) -> Option<Self> {
        let validity = parse_x509_certificate(der).ok()?.1.validity().clone();
        let (not_before, not_after) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        Some(Self { der: der.to_vec(), not_before, not_after })
    }

    /// The certificate itself.
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        CertificateDer::from(self.der.clone())
    }

    /// Whether it can be used at a time.
    pub(crate) fn is_valid(&self, now: i64) -> bool {
        (self.not_before..self.not_after).contains(&now)
    }
}

/// Reads the `caBundle` of an entry of a webhook configuration; empty when it has none.
pub(crate) fn of_entry(webhook: &Value) -> Vec<CaCert> {
    let text = webhook.pointer("/clientConfig/caBundle").and_then(Value::as_str).unwrap_or_default();
    parse(&BASE64_STANDARD.decode(text).unwrap_or_default())
}

/// Every certificate of a PEM text that can be read, in order and without repetition.
pub(crate) fn parse(text: &[u8]) -> Vec<CaCert> {
    let mut certs = Vec::new();
    for der in CertificateDer::pem_slice_iter(text).flatten() {
        certs.extend(CaCert::new(&der).filter(|cert| !certs.contains(cert)));
    }
    certs
}

/// The certificates as PEM, in order.
pub(crate) fn pem(certs: &[CaCert]) -> String {
    certs.iter().map(|cert| certificate_pem(&cert.der)).collect()
}

/// One certificate as PEM.
pub(crate) fn certificate_pem(der: &[u8]) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("CERTIFICATE", der), config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CertPolicy;
    use crate::ca::Ca;

    fn certs() -> Vec<CaCert> {
        [0, 1].map(|now| Ca::generate(now, &CertPolicy::default()).expect("a CA").cert.clone()).to_vec()
    }

    #[test]
    fn reads_what_it_wrote() {
        let certs = certs();
        assert_eq!(parse(pem(&certs).as_bytes()), certs);
        assert_eq!(parse(b" \n"), []);
    }

    #[test]
    fn keeps_what_can_be_read() {
        let certs = certs();
        let texts = [0, 1].map(|number| pem(&certs[number..=number]));
        let half = &texts[1][..texts[1].len() / 2];
        for (text, expected) in [
            (format!("{}{half}", texts[0]), &certs[..1]),
            (format!("{}hello\n{}", texts[0], texts[1]), &certs[..]),
            (format!("{}{}", texts[0], texts[1].replace('A', "!")), &certs[..1]),
            (format!("hello\n{}", texts[1]), &certs[1..]),
            ("hello".to_owned(), &[]),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn holds_a_certificate_once() {
        let certs = certs();
        let twice = pem(&[certs[0].clone(), certs[1].clone(), certs[0].clone()]);
        assert_eq!(parse(twice.as_bytes()), certs);
    }
}
