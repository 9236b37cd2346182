//! Who may call: whoever shows a certificate of a CA, and bears one of the names if any are asked for.
//!
//! The file of the CA is read again when it changes; what cannot be used changes nothing. Where this
//! is on, a caller without a certificate gets no connection.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error as TlsError, RootCertStore,
    SignatureScheme,
};
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::prelude::X509Certificate;

use crate::server::certs::anchor;
use crate::server::tls::{Error, files, provider};

/// Whose calls are answered.
#[derive(Debug, Clone)]
pub struct Callers {
    /// The CA certificates that sign those of callers, PEM; read again when they change.
    pub ca: PathBuf,
    /// The names of which a caller must bear one: its common name, or a DNS name or URI of its
    /// certificate. None: every certificate of the CA will do.
    pub names: Vec<String>,
}

/// What lets callers in.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    callers: Callers,
    roots: Arc<ArcSwap<Roots>>,
    last: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Roots {
    verifier: Arc<dyn ClientCertVerifier>,
    not_after: i64,
}

impl Gate {
    /// Reads the CA.
    pub(super) fn open(callers: &Callers) -> Result<Self, Error> {
        let text = files::read(&callers.ca)?;
        let roots = roots(callers, &text)?;
        Ok(Self { callers: callers.clone(), roots: Arc::new(ArcSwap::from_pointee(roots)), last: Some(text) })
    }

    /// Takes a changed file into use; whether it is good, or `None` when it says what it said.
    pub(super) fn read_if_changed(&mut self) -> Option<bool> {
        let roots = match files::read(&self.callers.ca) {
            Ok(text) if self.last.as_ref() == Some(&text) => return None,
            Ok(text) => {
                let roots = roots(&self.callers, &text);
                self.last = Some(text);
                roots
            }
            // A file that is gone is told once.
            Err(error) => self.last.take().map(|_| Err(error))?,
        };
        match roots {
            Ok(roots) => {
                tracing::info!(not_after = roots.not_after, "a new client CA is in use");
                self.roots.store(Arc::new(roots));
                Some(true)
            }
            Err(error) => {
                tracing::warn!(%error, "the new client CA cannot be used; the old one stays");
                Some(false)
            }
        }
    }

    /// When the first of the CAs expires, in seconds since 1970.
    pub(super) fn not_after(&self) -> i64 {
        self.roots.load().not_after
    }
}

fn roots(callers: &Callers, text: &[u8]) -> Result<Roots, Error> {
    let bundle = anchor::parse(text);
    let none = || Error::NoCertificate { path: callers.ca.clone() };
    let not_after = bundle.anchors.iter().map(|anchor| anchor.not_after).min().ok_or_else(none)?;
    if !bundle.whole {
        return Err(none());
    }
    let mut store = RootCertStore::empty();
    for anchor in &bundle.anchors {
        store.add(anchor.certificate()).map_err(Error::Pair)?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider());
    Ok(Roots { verifier: builder.build().map_err(Error::ClientCa)?, not_after })
}

impl ClientCertVerifier for Gate {
    /// No hints: the apiserver has one certificate to show, and the CAs may change.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        let verified = self.roots.load().verifier.verify_client_cert(end_entity, intermediates, now)?;
        if self.callers.names.is_empty() || bears(end_entity, &self.callers.names) {
            return Ok(verified);
        }
        Err(TlsError::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.roots.load().verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.roots.load().verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.roots.load().verifier.supported_verify_schemes()
    }
}

/// Whether a certificate bears one of the names, letter by letter.
fn bears(certificate: &CertificateDer<'_>, names: &[String]) -> bool {
    let Ok((_, certificate)) = parse_x509_certificate(certificate) else { return false };
    let wanted = |name: &str| names.iter().any(|wanted| wanted == name);
    borne(&certificate).into_iter().any(wanted)
}

/// The names in a certificate that count.
fn borne<'a>(certificate: &'a X509Certificate<'_>) -> Vec<&'a str> {
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let alternative = alternative.iter().flat_map(|names| &names.value.general_names);
    let alternative = alternative.filter_map(|name| match name {
        GeneralName::DNSName(name) | GeneralName::URI(name) => Some(*name),
        _ => None,
    });
    common.chain(alternative).collect()
}
