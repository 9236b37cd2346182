//! The serving certificate and the TLS configuration.
//!
//! TLS 1.2 and 1.3, HTTP/1.1 only, and one certificate for every server name. It can be replaced at any time, and so
//! can the CAs of callers; a handshake uses the current ones. Sessions are not resumed: an apiserver keeps its
//! connections and does not ask for resumption, and without it the client certificate of each connection is verified.

mod client_ca;
mod watched_files;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection};
use thiserror::Error as ThisError;

use crate::ca_bundle::CaCert;
use crate::clock::{Clock, date};
use crate::library_error::explained;
use crate::metrics::{CertKind, CertMetrics};
pub use crate::tls::client_ca::ClientAuth;
use crate::tls::client_ca::{ClientCa, has_any_name};
use crate::tls::watched_files::WatchedFiles;
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

/// Why a certificate cannot be used.
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
    /// Files cannot be used.
    #[error("{files} cannot be used")]
    Unusable {
        /// Their paths.
        files: String,
        /// Why.
        #[source]
        source: Box<Self>,
    },
    /// A text holds no certificate, or a damaged one.
    #[error("found no PEM certificate")]
    NoCertificate,
    /// A text holds no private key.
    #[error("found no PEM private key")]
    NoKey,
    /// The two do not belong together, or the key is of a kind that is not supported.
    #[error("certificate and key cannot be used together")]
    Pair(#[source] rustls::Error),
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
}

/// The current certificate and the CAs of callers, and where the next ones come from.
pub struct ServingCert {
    provider: Arc<CryptoProvider>,
    current: ArcSwapOption<CertKeyPair>,
    files: Option<WatchedFiles<2>>,
    client_ca: Option<ArcSwap<ClientCa>>,
    client_ca_file: Option<WatchedFiles<1>>,
    client_names: Vec<String>,
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
        let (mut files, mut current) = (None, None);
        match source {
            CertSource::Files { cert, key } => {
                current = Some(files.insert(WatchedFiles::new([cert, key])).read(pair)?);
            }
            CertSource::SelfSigned { names, ca } => {
                let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
                let names: Vec<_> = local.into_iter().chain(names.iter().cloned()).collect();
                let made = self_signed::generate(&names, clock).map_err(Error::Make)?;
                std::fs::write(ca, made.ca).map_err(|source| Error::Write { path: ca.clone(), source })?;
                current = Some(CertKeyPair::from_pem(made.leaf.as_bytes(), made.leaf_key.as_bytes())?);
            }
            CertSource::Builtin(_) => {}
        }
        let mut client_ca_file = client_auth.map(|auth| WatchedFiles::new([&auth.ca]));
        let client_ca = client_ca_file.as_mut().map(|file| file.read(client_ca::parse)).transpose()?;
        Ok(Self {
            provider: Arc::new(provider()),
            current: ArcSwapOption::from_pointee(current),
            files,
            client_ca: client_ca.map(ArcSwap::from_pointee),
            client_ca_file,
            client_names: client_auth.map(|auth| auth.names.clone()).unwrap_or_default(),
            clock: clock.clone(),
            trusted: AtomicBool::new(!matches!(source, CertSource::Builtin(_))),
        })
    }

    /// Reloads changed files; never ends.
    pub async fn reload_files(self: Arc<Self>, period: Duration, metrics: Arc<CertMetrics>) {
        let (mut files, mut client_ca_file) = (self.files.clone(), self.client_ca_file.clone());
        let mut pending = None;
        loop {
            tokio::time::sleep(period).await;
            // Files of a volume may hang for as long as its server does.
            let reading = tokio::task::spawn_blocking(move || {
                let read = files.as_mut().and_then(|files| files.read_if_changed(pair));
                let client_ca =
                    client_ca_file.as_mut().and_then(|file| file.read_if_changed(client_ca::parse));
                (files, read, client_ca_file, client_ca)
            });
            let Ok(read) = reading.await else { return };
            let (new_pair, new_client_ca);
            (files, new_pair, client_ca_file, new_client_ca) = read;
            let now = self.clock.unix_now();
            // A pair that was refused for its dates: the clock was wrong, or its time has come.
            let due = pending.take_if(|pair: &mut CertKeyPair| pair.check_dates(now).is_ok());
            if let Some(read) = new_pair.or_else(|| due.map(Ok)) {
                pending = None;
                let usable = read.and_then(|pair| match pair.check_dates(now) {
                    Ok(()) => Ok(pair),
                    Err(error) => {
                        pending = Some(pair);
                        Err(error)
                    }
                });
                let usable = usable.map(|pair| (pair.not_after, self.install(pair)).0);
                metrics.count_rotation(CertKind::Leaf, replaced("certificate", &usable));
            }
            if let (Some(read), Some(current)) = (new_client_ca, &self.client_ca) {
                let usable = read.map(|ca| (ca.not_after, current.store(Arc::new(ca))).0);
                metrics.count_rotation(CertKind::ClientCa, replaced("client CA", &usable));
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

    /// From when until when the current certificate is valid, in seconds since 1970.
    pub fn validity(&self) -> Option<(i64, i64)> {
        self.current.load().as_ref().map(|pair| (pair.not_before, pair.not_after))
    }

    /// From when until when the first of the CAs of callers to expire is valid, in seconds since 1970.
    pub fn client_ca_validity(&self) -> Option<(i64, i64)> {
        self.client_ca.as_ref().map(ArcSwap::load).map(|ca| (ca.not_before, ca.not_after))
    }

    /// Why callers should not be sent here; `None` when ready.
    pub fn not_ready_reason(&self) -> Option<&'static str> {
        let Some((not_before, not_after)) = self.validity() else {
            return Some("there is no certificate yet");
        };
        let now = self.clock.unix_now();
        if not_before > now {
            return Some("the certificate is not valid yet");
        }
        let margin = MIN_REMAINING_SECONDS.min(not_after.saturating_sub(not_before) / 10);
        if not_after < now.saturating_add(margin) {
            return Some("the certificate is about to expire, or has expired");
        }
        let trusted = self.trusted.load(Ordering::Acquire);
        (!trusted).then_some("the webhook configurations do not trust the certificate yet")
    }

    /// The configuration of a handshake; `None` while there is no certificate.
    pub fn server_config(&self) -> Option<ServerConfig> {
        let pair = self.current.load_full()?;
        let builder =
            ServerConfig::builder_with_details(Arc::clone(&self.provider), Arc::new(self.clock.clone()));
        let builder = builder.with_protocol_versions(&[&TLS13, &TLS12]).ok()?;
        let builder = match &self.client_ca {
            Some(ca) => builder.with_client_cert_verifier(Arc::clone(&ca.load().verifier)),
            None => builder.with_no_client_auth(),
        };
        let key = SingleCertAndKey::from(Arc::clone(&pair.key));
        let mut config = builder.with_cert_resolver(Arc::new(key));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Some(config)
    }

    /// Whether a caller with this certificate, which a CA of callers has signed, is answered.
    pub fn accepts(&self, caller: &ServerConnection) -> bool {
        let names = &self.client_names;
        let certificate = caller.peer_certificates().and_then(<[_]>::first);
        names.is_empty() || certificate.is_some_and(|cert| has_any_name(cert, names))
    }
}

/// Logs that a file was replaced by one that is valid until a time, or why it cannot be used; whether it can.
fn replaced(what: &str, usable: &Result<i64, Error>) -> bool {
    match usable {
        Ok(not_after) => tracing::info!(not_after = date(*not_after), "a new {what} is in use"),
        Err(error) => {
            let error = explained(error);
            tracing::warn!(error, "the new {what} cannot be used; the old one stays");
        }
    }
    usable.is_ok()
}

fn pair([cert, key]: [&[u8]; 2]) -> Result<CertKeyPair, Error> {
    CertKeyPair::from_pem(cert, key)
}

impl CertKeyPair {
    /// Parses a certificate chain and its key, which must belong together, both PEM.
    ///
    /// # Errors
    /// When they do not, or cannot be read.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, Error> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|_| Error::NoCertificate)?;
        let dates = chain.first().and_then(CaCert::new).ok_or(Error::NoCertificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| Error::NoKey)?;
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(Error::Pair)?;
        Ok(Self { key: Arc::new(key), not_before: dates.not_before, not_after: dates.not_after })
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
