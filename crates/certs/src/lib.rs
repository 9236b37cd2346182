//! memgate's certificates: CAs and what they sign, bundles of CAs, and keeping all of that up to date in a cluster.
//!
//! ```text
//! clock, kube_api, failure_log, library_error  what everything here, and the server, needs
//! ca, ca_bundle, self_signed                values
//! tls                                       the certificate that a server presents, and those of its callers
//! manager ─▶ metrics                        the Secret and caBundle in a cluster
//! ```
//!
//! It knows nothing of memory, and reads no Secret but that of the CA.

pub mod clock;
pub mod failure_log;
pub mod kube_api;
pub mod library_error;

mod ca;
mod ca_bundle;
pub mod self_signed;

pub mod metrics;
pub mod tls;

pub mod manager;
#[cfg(test)]
mod test_support;

use std::time::Duration;

use rustls::crypto::CryptoProvider;
#[cfg(feature = "fips")]
use rustls::crypto::default_fips_provider as chosen;
#[cfg(not(feature = "fips"))]
use rustls::crypto::ring::default_provider as chosen;

/// How memgate manages its own certificates in a cluster.
#[derive(Debug, Clone)]
pub struct Builtin {
    /// The namespace of the Secret.
    pub namespace: String,
    /// The name of the Secret.
    pub secret: String,
    /// The name of both webhook configurations.
    pub configuration: String,
    /// The DNS names and IP addresses in the certificate.
    pub names: Vec<String>,
    /// How long certificates are valid.
    pub policy: CertPolicy,
}

/// How long certificates are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertPolicy {
    /// How long a CA is valid.
    pub ca: Duration,
    /// How long the certificate of a replica is valid.
    pub leaf: Duration,
    /// After which part of its life a certificate is replaced, in percent.
    pub renew_percent: u8,
}

impl Default for CertPolicy {
    fn default() -> Self {
        Self { ca: Duration::from_hours(365 * 24), leaf: Duration::from_hours(7 * 24), renew_percent: 66 }
    }
}

/// The cryptography of TLS: ring; with the feature `fips` the FIPS module of AWS-LC, restricted to
/// approved algorithms.
pub fn provider() -> CryptoProvider {
    chosen()
}
