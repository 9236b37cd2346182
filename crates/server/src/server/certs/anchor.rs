//! CA certificates as callers hold them: parsed, compared and written as PEM.
//!
//! What cannot be read is passed over, since a bundle that somebody has damaged is still worth what
//! is left of it.

use pem::{EncodeConfig, LineEnding, Pem};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::parse_x509_certificate;

/// Where a certificate begins in PEM text.
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
/// Where it ends.
const END: &str = "-----END CERTIFICATE-----";

/// The longest text that is read as a bundle: eight certificates are some 6 KiB.
const LONGEST: usize = 256 << 10;

/// A certificate that signs others. Equal when all its bytes are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::server) struct Anchor {
    pub(in crate::server) der: Vec<u8>,
    /// From when on it is valid, in seconds since 1970.
    pub(in crate::server) not_before: i64,
    /// Until when it is valid, in seconds since 1970.
    pub(in crate::server) not_after: i64,
}

impl Anchor {
    /// The certificate; `None` when it is none.
    pub(in crate::server) fn new(der: &CertificateDer<'_>) -> Option<Self> {
        let validity = parse_x509_certificate(der).ok()?.1.validity().clone();
        let (not_before, not_after) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        Some(Self { der: der.to_vec(), not_before, not_after })
    }

    /// The certificate itself.
    pub(in crate::server) fn certificate(&self) -> CertificateDer<'static> {
        CertificateDer::from(self.der.clone())
    }

    /// Whether it can be used at a time.
    pub(in crate::server) fn is_valid(&self, now: i64) -> bool {
        (self.not_before..self.not_after).contains(&now)
    }
}

/// What a PEM text holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::server) struct Bundle {
    /// Its certificates, in order and without repetition.
    pub(in crate::server) anchors: Vec<Anchor>,
    /// Whether that is all there is in it.
    pub(in crate::server) whole: bool,
}

/// Reads every certificate that can be read.
pub(in crate::server) fn parse(text: &[u8]) -> Bundle {
    if text.len() > LONGEST {
        return Bundle::default();
    }
    let text = String::from_utf8_lossy(text);
    let mut parts = text.split(BEGIN);
    let whole = parts.next().is_some_and(|before| before.trim().is_empty());
    let mut bundle = Bundle { anchors: Vec::new(), whole };
    for part in parts {
        bundle.whole &= part.trim_end().ends_with(END);
        let der = CertificateDer::from_pem_slice(format!("{BEGIN}{part}").as_bytes()).ok();
        match der.as_ref().and_then(Anchor::new) {
            Some(anchor) if !bundle.anchors.contains(&anchor) => bundle.anchors.push(anchor),
            Some(_) => {}
            None => bundle.whole = false,
        }
    }
    bundle
}

/// The certificates as PEM, in order.
pub(in crate::server) fn pem(anchors: &[Anchor]) -> String {
    anchors.iter().map(|anchor| certificate_pem(&anchor.der)).collect()
}

/// One certificate as PEM.
pub(in crate::server) fn certificate_pem(der: &[u8]) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("CERTIFICATE", der), config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::certs::Terms;
    use crate::server::certs::ca::Ca;

    fn anchors() -> Vec<Anchor> {
        [0, 1].map(|now| Ca::make(now, &Terms::default()).expect("a CA").anchor.clone()).to_vec()
    }

    #[test]
    fn reads_what_it_wrote() {
        let anchors = anchors();
        let bundle = parse(pem(&anchors).as_bytes());
        assert_eq!(bundle, Bundle { anchors, whole: true });
        assert_eq!(parse(b" \n"), Bundle { anchors: Vec::new(), whole: true });
    }

    #[test]
    fn keeps_what_can_be_read() {
        let anchors = anchors();
        let texts = [0, 1].map(|number| pem(&anchors[number..=number]));
        let half = &texts[1][..texts[1].len() / 2];
        for (text, expected) in [
            (format!("{}{half}", texts[0]), &anchors[..1]),
            (format!("{half}{}", texts[0]), &anchors[..1]),
            (format!("{}hello\n{}", texts[0], texts[1]), &anchors[..]),
            (format!("{}{}", texts[0], texts[1].replace('A', "!")), &anchors[..1]),
            (format!("hello\n{}", texts[1]), &anchors[1..]),
            ("hello".to_owned(), &[]),
            ("x".repeat(LONGEST + 1), &[]),
        ] {
            let bundle = parse(text.as_bytes());
            assert_eq!(bundle.anchors, expected, "{text}");
            assert!(!bundle.whole, "{text}");
        }
    }

    #[test]
    fn says_a_certificate_once() {
        let anchors = anchors();
        let twice = pem(&[anchors[0].clone(), anchors[1].clone(), anchors[0].clone()]);
        assert_eq!(parse(twice.as_bytes()), Bundle { anchors, whole: true });
    }
}
