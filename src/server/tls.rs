//! The certificate that the webhook shows, and how it may be shown.
//!
//! TLS 1.2 and 1.3, HTTP/1.1 only, and one certificate whatever name is asked for. Which one it
//! is can change at any time; a handshake takes the one that is current. Sessions are not
//! resumed: an apiserver does not ask for it, and keeps its connections.

mod files;
mod made;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error as ThisError;
use x509_parser::parse_x509_certificate;

use crate::server::metrics::{CertKind, Metrics};

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// PEM files, read again when they change: a mounted Secret of type `kubernetes.io/tls`.
    Files {
        /// The certificate, followed by the rest of its chain.
        cert: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// A certificate made at start and signed by a CA made at start, whose key is forgotten at
    /// once. For trying things out: a restart makes a new one.
    SelfSigned {
        /// Names and addresses to be reached at, besides `localhost`, `127.0.0.1` and `::1`.
        names: Vec<String>,
        /// Where the certificate of the CA is written for callers.
        ca: PathBuf,
    },
}

/// Why there is no certificate.
#[derive(Debug, ThisError)]
pub enum Error {
    /// A file cannot be read.
    #[error("failed to read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file is too long to be what it should be.
    #[error("{path} is larger than any certificate or key")]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// A file holds no certificate.
    #[error("found no PEM certificate in {path}")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A file holds no private key.
    #[error("found no PEM private key in {path}")]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The two do not belong together, or the key is of a kind that is not supported.
    #[error("certificate and key cannot be used together")]
    Pair(#[source] rustls::Error),
    /// The certificate cannot be read.
    #[error("the certificate is no X.509 certificate")]
    Parse(#[source] x509_parser::nom::Err<x509_parser::error::X509Error>),
    /// The certificate can no longer be used.
    #[error("the certificate has expired")]
    Expired,
    /// A certificate could not be made.
    #[error("failed to make a certificate")]
    Make(#[source] rcgen::Error),
    /// The CA could not be written.
    #[error("failed to write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The TLS library does not support the versions that are promised.
    #[error("failed to set up TLS")]
    Versions(#[source] rustls::Error),
}

/// The certificate that is shown now, and where the next one comes from.
#[derive(Debug)]
pub(super) struct Certificate {
    current: ArcSwap<Pair>,
    files: Option<files::Files>,
}

/// A certificate with its key.
#[derive(Debug)]
struct Pair {
    key: Arc<CertifiedKey>,
    /// When it expires, in seconds since 1970.
    not_after: i64,
}

impl Certificate {
    /// Reads or makes the certificate to start with.
    pub(super) fn obtain(source: &Source) -> Result<Self, Error> {
        match source {
            Source::Files { cert, key } => {
                let mut files = files::Files::new(cert.clone(), key.clone());
                let pair = files.read()?;
                Ok(Self { current: ArcSwap::from_pointee(pair), files: Some(files) })
            }
            Source::SelfSigned { names, ca } => {
                let made = made::make(names)?;
                std::fs::write(ca, made.ca_pem)
                    .map_err(|source| Error::Write { path: ca.clone(), source })?;
                Ok(Self { current: ArcSwap::from_pointee(made.pair), files: None })
            }
        }
    }

    /// Looks for new files every now and then; never ends.
    pub(super) async fn keep_current(self: Arc<Self>, period: Duration, metrics: Arc<Metrics>) {
        let Some(mut files) = self.files.clone() else { return std::future::pending().await };
        loop {
            tokio::time::sleep(period).await;
            let looked = tokio::task::spawn_blocking(move || {
                let changed = files.read_if_changed();
                (files, changed)
            });
            let Ok((returned, changed)) = looked.await else { return };
            files = returned;
            if let Some(read) = changed {
                metrics.rotated(CertKind::Leaf, self.replace(read));
            }
        }
    }

    /// When the current certificate expires, in seconds since 1970.
    pub(super) fn not_after(&self) -> i64 {
        self.current.load().not_after
    }

    /// The configuration of handshakes with whatever certificate is current.
    pub(super) fn config(self: Arc<Self>) -> Result<ServerConfig, Error> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(Error::Versions)?
            .with_no_client_auth()
            .with_cert_resolver(self);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    /// Takes a pair into use if it is good; whether it is. A bad one changes nothing.
    fn replace(&self, read: Result<Pair, Error>) -> bool {
        match read.and_then(Pair::if_valid) {
            Ok(pair) => {
                tracing::info!(not_after = pair.not_after, "a new certificate is in use");
                self.current.store(Arc::new(pair));
                true
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, cause, "the new certificate cannot be used; the old one stays");
                false
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.load().key))
    }
}

impl Pair {
    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, Error> {
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(Error::Pair)?;
        let leaf = key.end_entity_cert().map_err(Error::Pair)?;
        let (_, certificate) = parse_x509_certificate(leaf).map_err(Error::Parse)?;
        let not_after = certificate.validity().not_after.timestamp();
        Ok(Self { key: Arc::new(key), not_after })
    }

    fn if_valid(self) -> Result<Self, Error> {
        if self.not_after > super::clock::unix_now() { Ok(self) } else { Err(Error::Expired) }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
