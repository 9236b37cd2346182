//! A certificate for trying things out, signed by a CA that exists for just this one signature.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;

use crate::server::clock;
use crate::server::tls::{Error, Pair};

/// Clocks differ: it is valid a little before it was made.
const BEFORE: Duration = Duration::from_hours(1);

/// A year: longer than such a server is left running.
const AFTER: Duration = Duration::from_hours(365 * 24);

/// What callers need to trust the certificate, and the certificate.
pub(super) struct Made {
    pub(super) ca_pem: String,
    pub(super) pair: Pair,
}

/// Makes a CA and, signed by it, a certificate for this machine and `names`. ECDSA over P-256:
/// its handshakes are the cheapest.
pub(super) fn make(names: &[String]) -> Result<Made, Error> {
    let ca_key = KeyPair::generate().map_err(Error::Make)?;
    let ca = ca_params()?;
    let ca_pem = ca.self_signed(&ca_key).map_err(Error::Make)?.pem();
    let key = KeyPair::generate().map_err(Error::Make)?;
    let leaf = leaf_params(names)?.signed_by(&key, &Issuer::new(ca, ca_key)).map_err(Error::Make)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Ok(Made { ca_pem, pair: Pair::new(vec![leaf.der().clone()], key)? })
}

fn ca_params() -> Result<CertificateParams, Error> {
    let mut params = params(Vec::new(), "memgate self-signed CA")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn leaf_params(names: &[String]) -> Result<CertificateParams, Error> {
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let mut params = params(local.into_iter().chain(names.iter().cloned()).collect(), "memgate")?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn params(names: Vec<String>, common_name: &str) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(names).map_err(Error::Make)?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    let now = OffsetDateTime::from(clock::now());
    (params.not_before, params.not_after) = (now - BEFORE, now + AFTER);
    Ok(params)
}
