//! The serving certificate and the TLS configuration.
//!
//! TLS 1.2 and 1.3, HTTP/1.1 only, and one certificate for every server name. It can be replaced at any time;
//! a handshake uses the current one. Sessions are not resumed: an apiserver keeps its connections and does not ask for
//! resumption, and without it the client certificate of each connection is verified.

mod client_verifier;
mod watched_files;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error as ThisError;
use x509_parser::parse_x509_certificate;

use crate::clock::{Clock, date};
use crate::library_error::explained;
use crate::metrics::{CertKind, CertMetrics};
pub use crate::tls::client_verifier::ClientAuth;
use crate::tls::client_verifier::ClientVerifier;
use crate::tls::watched_files::{WatchedFiles, pair};
use crate::{Builtin, provider, self_signed};

/// For how long a certificate must still be valid for the server to be ready, in seconds: callers should use
/// another replica before handshakes fail. At most a tenth of its life.
const MIN_REMAINING_SECONDS: i64 = 600;

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum CertSource {
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
    /// Certificates of memgate's own making, and the `caBundle` with them; needs a cluster.
    Builtin(Builtin),
}

/// Why the certificate cannot be used.
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
    #[error("the certificate is not an X.509 certificate")]
    Parse(#[source] x509_parser::nom::Err<x509_parser::error::X509Error>),
    /// The certificate can no longer be used.
    #[error("the certificate has expired")]
    Expired,
    /// The certificate cannot be used yet.
    #[error("the certificate is not valid yet")]
    NotYetValid,
    /// Built-in certificates need a cluster.
    #[error("built-in certificates keep their CA in a Secret, which needs a cluster")]
    NoCluster,
    /// The CAs of callers cannot be used.
    #[error("the client CA cannot be used")]
    ClientCa(#[source] rustls::server::VerifierBuilderError),
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

/// The current certificate, and where the next one comes from.
#[derive(Debug)]
pub struct ServingCert {
    current: ArcSwapOption<CertKeyPair>,
    files: Option<WatchedFiles<2>>,
    client_verifier: Option<ClientVerifier>,
    clock: Clock,
    /// Whether the webhook configurations trust it; always so unless memgate manages them.
    trusted: AtomicBool,
}

/// A certificate with its key.
#[derive(Debug)]
pub struct CertKeyPair {
    key: Arc<CertifiedKey>,
    /// From when on it is valid, in seconds since 1970.
    not_before: i64,
    /// When it expires, in seconds since 1970.
    not_after: i64,
}

impl ServingCert {
    /// Reads or makes the first certificate; with [`CertSource::Builtin`] the certificate manager makes it later.
    ///
    /// # Errors
    /// When a file cannot be read or written, or what it holds cannot be used.
    pub fn load(source: &CertSource, client_auth: Option<&ClientAuth>, clock: &Clock) -> Result<Self, Error> {
        let mut files = None;
        let current = match source {
            CertSource::Files { cert, key } => {
                let read = files.insert(WatchedFiles::new([cert, key])).read_if_changed(pair);
                Some(read.unwrap_or_else(|| Err(Error::NoCertificate { path: cert.clone() }))?)
            }
            CertSource::SelfSigned { names, ca } => {
                let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
                let names: Vec<_> = local.into_iter().chain(names.iter().cloned()).collect();
                let (issuer, leaf) = self_signed::generate(&names, clock.unix_now()).map_err(Error::Make)?;
                std::fs::write(ca, issuer.certificate_pem())
                    .map_err(|source| Error::Write { path: ca.clone(), source })?;
                Some(CertKeyPair::new(leaf.chain, leaf.key)?)
            }
            CertSource::Builtin(_) => None,
        };
        Ok(Self {
            trusted: AtomicBool::new(!matches!(source, CertSource::Builtin(_))),
            current: ArcSwapOption::from_pointee(current),
            files,
            client_verifier: client_auth.map(ClientVerifier::load).transpose()?,
            clock: clock.clone(),
        })
    }

    /// Reloads changed files; never ends.
    pub async fn reload_files(self: Arc<Self>, period: Duration, metrics: Arc<CertMetrics>) {
        let (mut files, mut verifier) = (self.files.clone(), self.client_verifier.clone());
        if files.is_none() && verifier.is_none() {
            return std::future::pending().await;
        }
        let mut pending = None;
        loop {
            tokio::time::sleep(period).await;
            // Files of a volume may hang for as long as its server does.
            let reading = tokio::task::spawn_blocking(move || {
                let pair = files.as_mut().and_then(|files| files.read_if_changed(pair));
                let roots = verifier.as_mut().and_then(ClientVerifier::read_if_changed);
                (files, pair, verifier, roots)
            });
            let Ok(read) = reading.await else { return };
            let (pair, roots);
            (files, pair, verifier, roots) = read;
            let is_valid_now = |pair: &mut CertKeyPair| pair.check_dates(self.clock.unix_now()).is_ok();
            if let Some(read) = pair.or_else(|| pending.take_if(is_valid_now).map(Ok)) {
                metrics.count_rotation(CertKind::Leaf, self.replace(read, &mut pending));
            }
            if let Some(usable) = roots {
                metrics.count_rotation(CertKind::ClientCa, usable);
            }
        }
    }

    /// Uses this certificate from now on.
    pub fn install(&self, pair: CertKeyPair) {
        self.current.store(Some(Arc::new(pair)));
    }

    /// Sets whether the webhook configurations trust the certificate.
    pub fn set_trusted(&self, trusted: bool) {
        self.trusted.store(trusted, Ordering::Release);
    }

    /// When the current certificate expires, in seconds since 1970.
    pub fn validity(&self) -> Option<(i64, i64)> {
        self.current.load().as_ref().map(|pair| (pair.not_before, pair.not_after))
    }

    /// From when until when the first of the CAs of callers to expire is valid, in seconds since 1970.
    pub fn client_ca_validity(&self) -> Option<(i64, i64)> {
        self.client_verifier.as_ref().map(ClientVerifier::validity)
    }

    /// Why callers should not be sent here; `None` when ready.
    pub fn not_ready_reason(&self) -> Option<&'static str> {
        let current = self.current.load();
        let Some(pair) = current.as_ref() else { return Some("there is no certificate yet") };
        let now = self.clock.unix_now();
        if pair.not_before > now {
            return Some("the certificate is not valid yet");
        }
        let margin = MIN_REMAINING_SECONDS.min(pair.not_after.saturating_sub(pair.not_before) / 10);
        if pair.not_after < now.saturating_add(margin) {
            return Some("the certificate is about to expire, or has expired");
        }
        let trusted = self.trusted.load(Ordering::Acquire);
        (!trusted).then_some("the webhook configurations do not trust the certificate yet")
    }

    /// The configuration of handshakes, which use the current certificate.
    ///
    /// # Errors
    /// When the library does not support the versions of TLS.
    pub fn server_config(self: Arc<Self>) -> Result<ServerConfig, Error> {
        let builder = ServerConfig::builder_with_details(provider().into(), Arc::new(self.clock.clone()))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(Error::Versions)?;
        let builder = match &self.client_verifier {
            Some(verifier) => builder.with_client_cert_verifier(Arc::new(verifier.clone())),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(self);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    /// Uses a certificate if it is valid; whether it is. An invalid one changes nothing; one that is only not
    /// valid now is kept in `pending`, since the clock may be wrong, or it becomes valid later.
    fn replace(&self, read: Result<CertKeyPair, Error>, pending: &mut Option<CertKeyPair>) -> bool {
        *pending = None;
        let checked = read.and_then(|pair| match pair.check_dates(self.clock.unix_now()) {
            Ok(()) => Ok(pair),
            Err(error) => {
                *pending = Some(pair);
                Err(error)
            }
        });
        match checked {
            Ok(pair) => {
                tracing::info!(not_after = date(pair.not_after), "a new certificate is in use");
                self.install(pair);
                true
            }
            Err(error) => {
                let error = explained(&error);
                tracing::warn!(error, "the new certificate cannot be used; the old one stays");
                false
            }
        }
    }
}

impl ResolvesServerCert for ServingCert {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load().as_ref().map(|pair| Arc::clone(&pair.key))
    }
}

impl CertKeyPair {
    /// A certificate chain and its key, which must belong together.
    ///
    /// # Errors
    /// When they do not, or cannot be read.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, Error> {
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(Error::Pair)?;
        let leaf = key.end_entity_cert().map_err(Error::Pair)?;
        let (_, certificate) = parse_x509_certificate(leaf).map_err(Error::Parse)?;
        let validity = certificate.validity();
        let (not_before, not_after) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        Ok(Self { key: Arc::new(key), not_before, not_after })
    }

    /// Whether it is valid at a time.
    fn check_dates(&self, now: i64) -> Result<(), Error> {
        match now {
            _ if now >= self.not_after => Err(Error::Expired),
            _ if now < self.not_before => Err(Error::NotYetValid),
            _ => Ok(()),
        }
    }
}
