//! The certificate that the webhook shows, and how it may be shown.
//!
//! TLS 1.2 and 1.3, HTTP/1.1 only, and one certificate whatever name is asked for. Which one it
//! is can change at any time; a handshake takes the one that is current. Sessions are not
//! resumed: an apiserver does not ask for it, and keeps its connections, and so each connection is
//! one whose caller was looked at.

mod callers;
mod files;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error as ThisError;
use x509_parser::parse_x509_certificate;

use crate::server::certs::Builtin;
use crate::server::certs::made::make;
use crate::server::clock::Clock;
use crate::server::metrics::{CertKind, Metrics};
pub use crate::server::tls::callers::Callers;
use crate::server::tls::callers::Gate;

/// How long a certificate must still be valid, in seconds: callers shall go elsewhere before
/// handshakes fail. No more than a tenth of its life.
const VALID: i64 = 600;

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
    /// Certificates of memgate's own making, and the `caBundle` with them; needs a cluster.
    Builtin(Builtin),
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
    /// The certificate cannot be used yet.
    #[error("the certificate is not valid yet")]
    NotYetValid,
    /// There is no cluster to keep a CA in.
    #[error("a CA of memgate's own is kept in a Secret, and there is no cluster to keep it in")]
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

/// The certificate that is shown now, and where the next one comes from.
#[derive(Debug)]
pub(super) struct Certificate {
    current: ArcSwapOption<Pair>,
    files: Option<files::Files>,
    callers: Option<Gate>,
    clock: Clock,
    /// Whether callers have been seen to trust it; nobody looks where it is not memgate's to care.
    trusted: AtomicBool,
}

/// A certificate with its key.
#[derive(Debug)]
pub(super) struct Pair {
    key: Arc<CertifiedKey>,
    /// From when on it is valid, in seconds since 1970.
    not_before: i64,
    /// When it expires, in seconds since 1970.
    not_after: i64,
}

impl Certificate {
    /// Reads or makes the certificate to start with, if there is one to start with.
    pub(super) fn obtain(source: &Source, callers: Option<&Callers>, clock: &Clock) -> Result<Self, Error> {
        let mut files = None;
        let current = match source {
            Source::Files { cert, key } => Some(files.insert(files::Files::new(cert, key)).read()?),
            Source::SelfSigned { names, ca } => {
                let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
                let names: Vec<_> = local.into_iter().chain(names.iter().cloned()).collect();
                let (made, leaf) = make(&names, clock.unix_now()).map_err(Error::Make)?;
                std::fs::write(ca, made.certificate_pem())
                    .map_err(|source| Error::Write { path: ca.clone(), source })?;
                Some(Pair::new(leaf.chain, leaf.key)?)
            }
            Source::Builtin(_) => None,
        };
        Ok(Self {
            trusted: AtomicBool::new(!matches!(source, Source::Builtin(_))),
            current: ArcSwapOption::from_pointee(current),
            files,
            callers: callers.map(Gate::open).transpose()?,
            clock: clock.clone(),
        })
    }

    /// Looks for new files every now and then; never ends.
    pub(super) async fn keep_current(self: Arc<Self>, period: Duration, metrics: Arc<Metrics>) {
        let (mut files, mut callers) = (self.files.clone(), self.callers.clone());
        if files.is_none() && callers.is_none() {
            return std::future::pending().await;
        }
        let mut pending = None;
        loop {
            tokio::time::sleep(period).await;
            let looked = tokio::task::spawn_blocking(move || {
                let pair = files.as_mut().and_then(files::Files::read_if_changed);
                let roots = callers.as_mut().and_then(Gate::read_if_changed);
                (files, pair, callers, roots)
            });
            let Ok(looked) = looked.await else { return };
            let (pair, roots);
            (files, pair, callers, roots) = looked;
            let its_time_has_come = |pair: &mut Pair| pair.is_dated(self.clock.unix_now()).is_ok();
            if let Some(read) = pair.or_else(|| pending.take_if(its_time_has_come).map(Ok)) {
                metrics.rotated(CertKind::Leaf, self.replace(read, &mut pending));
            }
            if let Some(usable) = roots {
                metrics.rotated(CertKind::ClientCa, usable);
            }
        }
    }

    /// Takes a pair into use.
    pub(super) fn install(&self, pair: Pair) {
        self.current.store(Some(Arc::new(pair)));
    }

    /// Remembers whether callers are to be sent here for all that is known of their trust.
    pub(super) fn set_trusted(&self, trusted: bool) {
        self.trusted.store(trusted, Ordering::Release);
    }

    /// When the current certificate expires, in seconds since 1970.
    pub(super) fn not_after(&self) -> Option<i64> {
        self.current.load().as_ref().map(|pair| pair.not_after)
    }

    /// When the first of the CAs of callers expires, in seconds since 1970.
    pub(super) fn callers_not_after(&self) -> Option<i64> {
        self.callers.as_ref().map(Gate::not_after)
    }

    /// What is missing before callers should be sent here.
    pub(super) fn missing(&self) -> Option<&'static str> {
        let current = self.current.load();
        let Some(pair) = current.as_ref() else { return Some("there is no certificate yet") };
        let now = self.clock.unix_now();
        if pair.not_before > now {
            return Some("the certificate is not valid yet");
        }
        let margin = VALID.min(pair.not_after.saturating_sub(pair.not_before) / 10);
        if pair.not_after < now.saturating_add(margin) {
            return Some("the certificate is about to expire, or has expired");
        }
        let trusted = self.trusted.load(Ordering::Acquire);
        (!trusted).then_some("the webhook configurations do not trust the certificate yet")
    }

    /// The configuration of handshakes with whatever certificate is current.
    pub(super) fn config(self: Arc<Self>) -> Result<ServerConfig, Error> {
        let builder = ServerConfig::builder_with_details(provider(), Arc::new(self.clock.clone()))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(Error::Versions)?;
        let builder = match &self.callers {
            Some(gate) => builder.with_client_cert_verifier(Arc::new(gate.clone())),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(self);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    /// Takes a pair into use if it is good; whether it is. A bad one changes nothing; one with nothing
    /// but its dates against it is kept, since the clock may be wrong, or the time may come.
    fn replace(&self, read: Result<Pair, Error>, pending: &mut Option<Pair>) -> bool {
        *pending = None;
        let judged = read.and_then(|pair| match pair.is_dated(self.clock.unix_now()) {
            Ok(()) => Ok(pair),
            Err(error) => {
                *pending = Some(pair);
                Err(error)
            }
        });
        match judged {
            Ok(pair) => {
                tracing::info!(not_after = pair.not_after, "a new certificate is in use");
                self.install(pair);
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
        self.current.load().as_ref().map(|pair| Arc::clone(&pair.key))
    }
}

impl Pair {
    /// A chain with its key, which must fit.
    pub(super) fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, Error> {
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(Error::Pair)?;
        let leaf = key.end_entity_cert().map_err(Error::Pair)?;
        let (_, certificate) = parse_x509_certificate(leaf).map_err(Error::Parse)?;
        let validity = certificate.validity();
        let (not_before, not_after) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        Ok(Self { key: Arc::new(key), not_before, not_after })
    }

    /// Whether it is valid at a time.
    fn is_dated(&self, now: i64) -> Result<(), Error> {
        match now {
            _ if now >= self.not_after => Err(Error::Expired),
            _ if now < self.not_before => Err(Error::NotYetValid),
            _ => Ok(()),
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
