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

/// Where a certificate begins in PEM text.
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
/// Where it ends.
const END: &str = "-----END CERTIFICATE-----";

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

/// The content of a PEM text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CaBundle {
    /// Its certificates, in order and without repetition.
    pub(crate) certs: Vec<CaCert>,
    /// Whether the text holds only certificates that can be parsed.
    pub(crate) intact: bool,
}

/// Reads the `caBundle` of an entry of a webhook configuration; empty when it has none.
pub(crate) fn of_entry(webhook: &Value) -> CaBundle {
    let text = webhook.pointer("/clientConfig/caBundle").and_then(Value::as_str).unwrap_or_default();
    parse(&BASE64_STANDARD.decode(text).unwrap_or_default())
}

/// Reads every certificate that can be read.
pub(crate) fn parse(text: &[u8]) -> CaBundle {
    let text = String::from_utf8_lossy(text);
    let mut parts = text.split(BEGIN);
    let intact = parts.next().is_some_and(|before| before.trim().is_empty());
    let mut bundle = CaBundle { certs: Vec::new(), intact };
    for part in parts {
        bundle.intact &= part.trim_end().ends_with(END);
        let der = CertificateDer::from_pem_slice(format!("{BEGIN}{part}").as_bytes()).ok();
        match der.as_ref().and_then(CaCert::new) {
            Some(cert) if !bundle.certs.contains(&cert) => bundle.certs.push(cert),
            Some(_) => {}
            None => bundle.intact = false,
        }
    }
    bundle
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
        let bundle = parse(pem(&certs).as_bytes());
        assert_eq!(bundle, CaBundle { certs, intact: true });
        assert_eq!(parse(b" \n"), CaBundle { certs: Vec::new(), intact: true });
    }

    #[test]
    fn keeps_what_can_be_read() {
        let certs = certs();
        let texts = [0, 1].map(|number| pem(&certs[number..=number]));
        let half = &texts[1][..texts[1].len() / 2];
        for (text, expected) in [
            (format!("{}{half}", texts[0]), &certs[..1]),
            (format!("{half}{}", texts[0]), &certs[..1]),
            (format!("{}hello\n{}", texts[0], texts[1]), &certs[..]),
            (format!("{}{}", texts[0], texts[1].replace('A', "!")), &certs[..1]),
            (format!("hello\n{}", texts[1]), &certs[1..]),
            ("hello".to_owned(), &[]),
        ] {
            let bundle = parse(text.as_bytes());
            assert_eq!(bundle.certs, expected, "{text}");
            assert!(!bundle.intact, "{text}");
        }
    }

    #[test]
    fn holds_a_certificate_once() {
        let certs = certs();
        let twice = pem(&[certs[0].clone(), certs[1].clone(), certs[0].clone()]);
        assert_eq!(parse(twice.as_bytes()), CaBundle { certs, intact: true });
    }
}
