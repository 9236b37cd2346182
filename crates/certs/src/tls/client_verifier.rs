//! Verifies client certificates: a CA must have signed them, and they must have one of the allowed names if the list is
//! not empty. A caller without a certificate gets no connection.
//!
//! The file of the CA is read again when it changes. Contents that cannot be used are ignored.

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

use crate::clock::date;
use crate::library_error::explained;
use crate::tls::Error;
use crate::tls::watched_files::WatchedFiles;
use crate::{ca_bundle, provider};

/// Which client certificates are required.
#[derive(Debug, Clone)]
pub struct ClientAuth {
    /// The CA certificates that sign those of callers, PEM; read again when they change.
    pub ca: PathBuf,
    /// The certificate must have one of these names: as its common name, a DNS name or a URI. Empty: every certificate of
    /// the CA is accepted.
    pub names: Vec<String>,
}

/// A `ClientCertVerifier` whose CA certificates can be replaced.
#[derive(Debug, Clone)]
pub(super) struct ClientVerifier {
    client_auth: ClientAuth,
    files: WatchedFiles<1>,
    roots: Arc<ArcSwap<Roots>>,
}

#[derive(Debug)]
struct Roots {
    verifier: Arc<dyn ClientCertVerifier>,
    /// The validity of the CA that expires first.
    not_before: i64,
    not_after: i64,
}

impl ClientVerifier {
    /// Reads the CA.
    pub(super) fn load(client_auth: &ClientAuth) -> Result<Self, Error> {
        let mut files = WatchedFiles::new([&client_auth.ca]);
        let roots = files.read_if_changed(roots);
        let roots = roots.unwrap_or_else(|| Err(Error::NoCertificate { path: client_auth.ca.clone() }))?;
        let roots = Arc::new(ArcSwap::from_pointee(roots));
        Ok(Self { client_auth: client_auth.clone(), files, roots })
    }

    /// Uses a changed file; whether it can be used, or `None` when it has not changed.
    pub(super) fn read_if_changed(&mut self) -> Option<bool> {
        match self.files.read_if_changed(roots)? {
            Ok(roots) => {
                tracing::info!(not_after = date(roots.not_after), "a new client CA is in use");
                self.roots.store(Arc::new(roots));
                Some(true)
            }
            Err(error) => {
                tracing::warn!(
                    error = explained(&error),
                    "the new client CA cannot be used; the old one stays"
                );
                Some(false)
            }
        }
    }

    /// The dates between which the first CA to expire is valid, in seconds since 1970.
    pub(super) fn validity(&self) -> (i64, i64) {
        let roots = self.roots.load();
        (roots.not_before, roots.not_after)
    }
}

fn roots([ca]: &[PathBuf; 1], [text]: &[Vec<u8>; 1]) -> Result<Roots, Error> {
    let bundle = ca_bundle::parse(text);
    let none = || Error::NoCertificate { path: ca.clone() };
    let first = bundle.certs.iter().min_by_key(|cert| cert.not_after).ok_or_else(none)?;
    let (not_before, not_after) = (first.not_before, first.not_after);
    if !bundle.intact {
        return Err(none());
    }
    let mut store = RootCertStore::empty();
    for cert in &bundle.certs {
        store.add(cert.certificate()).map_err(Error::Pair)?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider().into());
    Ok(Roots { verifier: builder.build().map_err(Error::ClientCa)?, not_before, not_after })
}

impl ClientCertVerifier for ClientVerifier {
    /// Empty: the apiserver has one certificate only, and the CAs may change.
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
        if self.client_auth.names.is_empty() || has_any_name(end_entity, &self.client_auth.names) {
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

/// Whether a certificate has one of the names; compared byte by byte.
fn has_any_name(certificate: &CertificateDer<'_>, names: &[String]) -> bool {
    let Ok((_, certificate)) = parse_x509_certificate(certificate) else { return false };
    let wanted = |name: &str| names.iter().any(|wanted| wanted == name);
    names_of(&certificate).into_iter().any(wanted)
}

/// The common name, DNS names and URIs of a certificate.
fn names_of<'a>(certificate: &'a X509Certificate<'_>) -> Vec<&'a str> {
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let alternative = alternative.iter().flat_map(|names| &names.value.general_names);
    let alternative = alternative.filter_map(|name| match name {
        GeneralName::DNSName(name) | GeneralName::URI(name) => Some(*name),
        _ => None,
    });
    common.chain(alternative).collect()
}
