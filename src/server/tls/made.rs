//! A certificate for trying things out, signed by a CA that exists for just this one signature.

use std::time::Duration;

use crate::server::certs::Terms;
use crate::server::certs::ca::{Ca, Leaf};

/// A year: longer than such a server is left running.
const VALIDITY: Duration = Duration::from_hours(365 * 24);

/// What callers need to trust the certificate, and the certificate.
pub(super) struct Made {
    pub(super) ca_pem: String,
    pub(super) leaf: Leaf,
}

/// Makes a CA and, signed by it, a certificate for this machine and `names`.
pub(super) fn make(names: &[String], now: i64) -> Result<Made, rcgen::Error> {
    let terms = Terms { ca: VALIDITY, leaf: VALIDITY, ..Terms::default() };
    let ca = Ca::make(now, &terms)?;
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let names: Vec<_> = local.into_iter().chain(names.iter().cloned()).collect();
    Ok(Made { ca_pem: ca.certificate_pem(), leaf: ca.sign(&names, now, &terms)? })
}
