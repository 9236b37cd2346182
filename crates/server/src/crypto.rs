//! The cryptography of TLS and of random tokens.

use rustls::crypto::CryptoProvider;

/// ring; with the feature `fips` the FIPS module of AWS-LC, restricted to approved algorithms.
#[must_use]
pub fn provider() -> CryptoProvider {
    #[cfg(feature = "fips")]
    return rustls::crypto::default_fips_provider();
    #[cfg(not(feature = "fips"))]
    return rustls::crypto::ring::default_provider();
}
