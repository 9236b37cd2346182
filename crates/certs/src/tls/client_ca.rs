//! Which client certificates are accepted: a CA must have signed them, and they must have one of the allowed names if the
//! list is not empty. A caller without a certificate gets no answer.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::prelude::X509Certificate;

use crate::ca_bundle::CaCert;
use crate::provider;
use crate::tls::Error;

/// Which client certificates are required.
#[derive(Debug, Clone)]
pub struct ClientAuth {
    /// The CA certificates that sign those of callers, PEM; read again when they change.
    pub ca: PathBuf,
    /// The certificate must have one of these names: as its common name, a DNS name or a URI. Empty: every certificate of
    /// the CA is accepted.
    pub names: Vec<String>,
}

/// The CAs that sign the certificates of callers.
pub(super) struct ClientCa {
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    /// The validity of the CA that expires first, in seconds since 1970.
    pub(super) not_before: i64,
    pub(super) not_after: i64,
}

/// Parses CA certificates, PEM.
pub(super) fn parse([text]: [&[u8]; 1]) -> Result<ClientCa, Error> {
    let (mut roots, mut certs) = (RootCertStore::empty(), Vec::new());
    for der in CertificateDer::pem_slice_iter(text) {
        let der = der.map_err(|_| Error::NoCertificate)?;
        certs.push(CaCert::new(&der).ok_or(Error::NoCertificate)?);
        roots.add(der).map_err(Error::Pair)?;
    }
    let first = certs.iter().min_by_key(|cert| cert.not_after).ok_or(Error::NoCertificate)?;
    let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), provider().into());
    // The apiserver has one certificate only, so it needs no hints.
    let verifier = builder.clear_root_hint_subjects().build().map_err(Error::ClientCa)?;
    Ok(ClientCa { verifier, not_before: first.not_before, not_after: first.not_after })
}

/// Whether a certificate has one of the names; compared byte by byte.
pub(super) fn has_any_name(certificate: &CertificateDer<'_>, names: &[String]) -> bool {
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
