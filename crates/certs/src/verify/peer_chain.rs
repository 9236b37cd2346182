//! Gets the certificate chain that a server presents, valid or not. No request is sent to the server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::library_error::explained;
use crate::provider;
use memgate_primitives::plain_text::quoted;

/// The chain that a server presents for a name, or why there is none.
pub(super) async fn fetch(
    address: &str,
    name: &str,
    limit: Duration,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let late = |_| format!("{address} does not answer");
    let connected = timeout(limit, TcpStream::connect(address)).await.map_err(late)?;
    let stream = connected.map_err(|error| format!("{address} cannot be reached: {}", explained(&error)))?;
    let server =
        ServerName::try_from(name.to_owned()).map_err(|_| format!("{} is not a name", quoted(name)))?;
    let recorder = Arc::new(RecordingVerifier { provider: Arc::new(provider()), seen: Mutex::default() });
    let config = ClientConfig::builder_with_provider(Arc::clone(&recorder.provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&recorder) as Arc<dyn ServerCertVerifier>)
        .with_no_client_auth();
    let handshake = TlsConnector::from(Arc::new(config)).connect(server, stream);
    let ended = timeout(limit, handshake).await.map_err(late)?;
    let seen = std::mem::take(&mut *recorder.seen.lock().unwrap_or_else(PoisonError::into_inner));
    match ended {
        // A server that wants a client certificate fails the handshake, but has presented its own before.
        Err(error) if seen.is_empty() => Err(format!("no TLS with {address}: {}", explained(&error))),
        _ => Ok(seen),
    }
}

/// A verifier that accepts every certificate, and remembers the chain.
#[derive(Debug)]
struct RecordingVerifier {
    provider: Arc<CryptoProvider>,
    seen: Mutex<Vec<CertificateDer<'static>>>,
}

impl ServerCertVerifier for RecordingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let chain = std::iter::once(end_entity).chain(intermediates);
        let chain = chain.map(|certificate| certificate.clone().into_owned()).collect();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = chain;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
