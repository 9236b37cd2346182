//! The cryptography of TLS and of random tokens.

use rustls::crypto::CryptoProvider;
#[cfg(feature = "fips")]
use rustls::crypto::default_fips_provider as chosen;
#[cfg(not(feature = "fips"))]
use rustls::crypto::ring::default_provider as chosen;

/// ring; with the feature `fips` the FIPS module of AWS-LC, restricted to approved algorithms.
pub fn provider() -> CryptoProvider {
    chosen()
}
