//! A CA that signs one certificate: for development.

use std::time::Duration;

use crate::CertPolicy;
use crate::ca::Ca;
use crate::clock::Clock;

/// A year: longer than a development server runs.
const VALIDITY: Duration = Duration::from_hours(365 * 24);

/// A CA and a certificate with their keys, all PEM.
pub struct SelfSigned {
    /// The certificate of the CA.
    pub ca: String,
    /// The key of the CA.
    pub ca_key: String,
    /// The certificate of the server.
    pub leaf: String,
    /// The key of the server.
    pub leaf_key: String,
}

/// A CA and a certificate for a server with these names, valid for a year.
///
/// # Errors
/// When a name is invalid, or the system has no randomness.
pub fn generate(names: &[String], clock: &Clock) -> Result<SelfSigned, rcgen::Error> {
    let policy = CertPolicy { ca: VALIDITY, leaf: VALIDITY, ..CertPolicy::default() };
    let ca = Ca::generate(clock.unix_now(), &policy)?;
    let leaf = ca.sign(names, clock.unix_now(), &policy)?;
    Ok(SelfSigned {
        ca: ca.certificate_pem(),
        ca_key: ca.key_pem,
        leaf: leaf.cert_pem,
        leaf_key: leaf.key_pem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expires_after_a_year_and_fits_together() {
        let clock = Clock::default();
        let pair = generate(&["a.example".to_owned()], &clock).expect("a pair");
        let ca = Ca::parse(pair.ca.as_bytes(), pair.ca_key.as_bytes()).expect("a CA");
        for text in [&pair.ca, &pair.leaf] {
            let left = crate::ca_bundle::parse(text.as_bytes())[0].not_after - clock.unix_now();
            assert!((364 * 86400..=365 * 86400).contains(&left), "{left} s");
        }
        assert!(ca.cert.is_valid(clock.unix_now()));
        assert!(pair.leaf_key.starts_with("-----BEGIN PRIVATE KEY-----"));
    }
}
