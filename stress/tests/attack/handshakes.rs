//! TLS versions and protocols that memgate does not support. There is no test of renegotiation, because the TLS library
//! does not have it.

use std::io::ErrorKind;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme, SupportedProtocolVersion, version,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{Connection, post, review};
use crate::running::{TIMEOUT, Victim};

const FAILED: &str = "memgate_tls_handshakes_total{result=\"failed\"}";

/// The first message of a client that supports at most this version, which is below 1.2.
fn old_hello(minor: u8) -> Vec<u8> {
    let mut hello = vec![3, minor];
    hello.extend([7; 32]);
    // No session; four cipher suites of the time; no compression; the curve and point format that
    // they need.
    hello.extend([0, 0, 8, 0xc0, 0x09, 0xc0, 0x13, 0x00, 0x2f, 0x00, 0x35, 1, 0]);
    hello.extend([0, 14, 0, 10, 0, 4, 0, 2, 0, 23, 0, 11, 0, 2, 1, 0]);
    let length = u8::try_from(hello.len()).unwrap();
    let message = [&[1, 0, 0, length][..], &hello].concat();
    [&[22, 3, minor.min(1), 0, length + 4][..], &message].concat()
}

/// Waits until so many handshakes have failed: an alert is sent before it is counted.
async fn counted(victim: &mut Victim, count: u64) {
    victim
        .until("the handshake should be counted", async |victim| victim.metric(FAILED).await == count)
        .await;
}

/// What the server says to these bytes before it hangs up.
async fn last_words(victim: &Victim, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(victim.address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut bytes = Vec::new();
    match timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await.expect("the server should hang up") {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => bytes,
    }
}

/// S5 of stress/ATTACKS.md.
#[tokio::test]
async fn versions_before_1_2_are_refused_with_an_alert() {
    let mut victim = Victim::start(&[]).await;
    for (count, minor) in (1..).zip([0, 1, 2]) {
        let bytes = last_words(&victim, &old_hello(minor)).await;
        // A fatal alert: handshake_failure, or protocol_version.
        let [21, 3, 3, 0, 2, 2, 40 | 70] = bytes.as_slice() else { panic!("3.{minor} gets {bytes:?}") };
        counted(&mut victim, count).await;
    }
    victim.is_well().await;
}

/// S5 of stress/ATTACKS.md.
#[tokio::test]
async fn connections_without_tls_are_closed_and_counted() {
    let mut victim = Victim::start(&[]).await;
    let cut = &old_hello(1)[..20];
    let sent: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        &[0; 512],
        &[0xff; 512],
        // A record of SSL 2, one of 64 KiB, and a message of 16 MiB.
        &[0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10, 1, 0, 0x80],
        &[22, 3, 1, 0xff, 0xff, 1, 0xff, 0xff, 0xff],
        &[&[22, 3, 1, 0, 8, 1, 0xff, 0xff, 0xff][..], cut].concat(),
    ];
    for (count, bytes) in (1..).zip(sent) {
        last_words(&victim, bytes).await;
        counted(&mut victim, count).await;
    }
    assert!(victim.peak_mib() < 64, "{} MiB", victim.peak_mib());
    victim.is_well().await;
}

/// Trusts every server: the tests ask only whether it serves.
#[derive(Debug)]
struct AcceptAnyCert;

impl ServerCertVerifier for AcceptAnyCert {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

fn config(versions: &[&'static SupportedProtocolVersion], with_certificate: bool) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnyCert));
    if !with_certificate {
        return builder.with_no_client_auth();
    }
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    builder.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
}

/// S5 of stress/ATTACKS.md.
#[tokio::test]
async fn any_server_name_is_served_and_no_client_certificate_is_requested() {
    let victim = Victim::start(&[]).await;
    let both = [&version::TLS12, &version::TLS13];
    for (what, name, config) in [
        ("another name", "kubernetes.default.svc", config(&both, false)),
        ("no name", "127.0.0.1", config(&both, false)),
        ("the name of a Service", "memgate.memgate-system.svc", config(&[&version::TLS12], false)),
        ("a certificate that was not requested", "localhost", config(&[&version::TLS12], true)),
        ("the same in 1.3", "localhost", config(&[&version::TLS13], true)),
    ] {
        let stream = TcpStream::connect(victim.address()).await.unwrap();
        let mut connection = Connection::over(stream, config, name).await.expect(what);
        connection.send(&post("/mutate", review("u-1", None))).await;
        assert_eq!(connection.answer().await.review()["uid"], "u-1", "{what}");
    }
    assert_eq!(victim.metric(FAILED).await, 0);
}

/// S5 of stress/ATTACKS.md.
#[tokio::test]
async fn other_protocols_are_refused_in_the_handshake() {
    let mut victim = Victim::start(&[]).await;
    for (count, protocol) in (1..).zip(["h2", "http/1.0", "acme-tls/1"]) {
        let mut config = config(&[&version::TLS13], false);
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let stream = TcpStream::connect(victim.address()).await.unwrap();
        assert!(Connection::over(stream, config, "localhost").await.is_err(), "{protocol}");
        counted(&mut victim, count).await;
    }
    let mut config = config(&[&version::TLS13], false);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(victim.address()).await.unwrap();
    assert!(
        Connection::over(stream, config, "localhost").await.is_ok(),
        "a caller that offers both gets HTTP/1.1"
    );
}
