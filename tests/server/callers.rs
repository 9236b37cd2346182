//! Callers that have to show a certificate.

use std::fs;
use std::time::Duration;

use memgate_certs::tls;
use memgate_certs::tls::ClientAuth;
use memgate_model::snapshot::Snapshot;
use memgate_server::{Server, State};
use rcgen::{BasicConstraints, KeyUsagePurpose};
use rcgen::{CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use tempfile::TempDir;

use crate::client::{Connection, Identity, post, review};
use crate::running::{Running, options, until};

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate with a common name, and DNS names and URIs.
    fn client(&self, common: &str, dns: &[&str], uris: &[&str]) -> Identity {
        let mut params =
            CertificateParams::new(dns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        params.distinguished_name.push(DnType::CommonName, common);
        params.subject_alt_names.extend(uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        Identity {
            chain: vec![cert.der().clone()],
            key: PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap(),
        }
    }
}

/// A server that asks for certificates of the authority in this file.
fn start(directory: &TempDir, authority: &Authority, names: &[&str]) -> Running {
    let ca = directory.path().join("client-ca.crt");
    fs::write(&ca, authority.0.pem()).unwrap();
    Running::start(|options| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        options.client_auth = Some(ClientAuth { ca, names });
        options.timers.reload = Duration::from_millis(20);
    })
}

/// Whether a caller gets an answer.
async fn answered(server: &Running, identity: Option<&Identity>) -> bool {
    let ca = fs::read_to_string(&server.ca).unwrap();
    let opened = Connection::open_as(server.addresses.webhook, &ca, &["http/1.1"], identity).await;
    let Ok(mut connection) = opened else { return false };
    if connection.try_send(&post("/mutate", review("u-1", None))).await.is_err() {
        return false;
    }
    connection.answer_or_end().await.is_some_and(|answer| answer.status == 200)
}

async fn refusals(server: &Running) -> String {
    let series = "memgate_tls_handshakes_total{result=\"client-refused\"}";
    server.metric(series).await.unwrap_or_default()
}

#[tokio::test]
async fn only_callers_of_the_ca_are_answered() {
    let directory = TempDir::new().unwrap();
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = start(&directory, &authority, &[]);
    assert!(answered(&server, Some(&authority.client("any-name", &[], &[]))).await);
    assert!(!answered(&server, None).await);
    assert!(!answered(&server, Some(&stranger.client("any-name", &[], &[]))).await);
    until("both should be counted", || async { refusals(&server).await == "2" }).await;
    assert_eq!(server.health("/readyz").await.status, 200, "the health port asks for nothing");
    assert!(server.metric("memgate_cert_not_after_seconds{kind=\"client-ca\"}").await.is_some());
}

#[tokio::test]
async fn a_caller_must_bear_a_name() {
    let directory = TempDir::new().unwrap();
    let authority = Authority::new();
    let uri = "spiffe://cluster/apiserver";
    let server = start(&directory, &authority, &["kube-apiserver", "api.example", uri]);
    let rows = [
        (true, authority.client("kube-apiserver", &[], &[])),
        (true, authority.client("x", &["other", "api.example"], &[])),
        (true, authority.client("x", &[], &[uri])),
        (false, authority.client("x", &[], &[])),
        (false, authority.client("kube-apiserver2", &["x.api.example"], &[])),
        (false, authority.client("KUBE-APISERVER", &[], &["spiffe://cluster/other"])),
    ];
    for (number, (expected, identity)) in rows.iter().enumerate() {
        assert_eq!(answered(&server, Some(identity)).await, *expected, "row {number}");
    }
    until("the refusals should be counted", || async { refusals(&server).await == "3" }).await;
}

#[tokio::test]
async fn a_new_client_ca_is_taken_and_a_bad_one_is_not() {
    let directory = TempDir::new().unwrap();
    let (old, new) = (Authority::new(), Authority::new());
    let server = start(&directory, &old, &[]);
    let ca = directory.path().join("client-ca.crt");
    let (one, other) = (old.client("a", &[], &[]), new.client("a", &[], &[]));
    let failed = "memgate_cert_rotations_total{kind=\"client-ca\",result=\"failed\"}";
    let pem = new.0.pem();
    for (count, bad) in (1..).zip(["", "hello", &pem[..200]]) {
        fs::write(&ca, bad).unwrap();
        let noticed = || async { server.metric(failed).await == Some(count.to_string()) };
        until("the bad file should be noticed", noticed).await;
        assert!(answered(&server, Some(&one)).await, "{bad}");
    }
    fs::write(&ca, &pem).unwrap();
    until("the new CA should be used", || answered(&server, Some(&other))).await;
    assert!(!answered(&server, Some(&one)).await);
    fs::write(&ca, format!("{pem}{}", old.0.pem())).unwrap();
    until("both should be used", || answered(&server, Some(&one))).await;
    assert!(answered(&server, Some(&other)).await);
}

#[tokio::test]
async fn does_not_start_without_the_client_ca() {
    let directory = TempDir::new().unwrap();
    let (mut options, _) = options(&directory);
    for text in [None, Some(""), Some("hello")] {
        let ca = directory.path().join("client-ca.crt");
        if let Some(text) = text {
            fs::write(&ca, text).unwrap();
        }
        options.client_auth = Some(ClientAuth { ca, names: Vec::new() });
        let error =
            Server::bind(options.clone(), State::Fixed(Snapshot::new(memgate_platforms::default_settings())))
                .err()
                .unwrap();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("client-ca.crt"), "{source}");
    }
    options.client_auth = None;
    options.tls = tls::CertSource::Builtin(memgate_certs::Builtin {
        namespace: "x".to_owned(),
        secret: "x".to_owned(),
        configuration: "x".to_owned(),
        names: Vec::new(),
        policy: memgate_certs::CertPolicy::default(),
    });
    let error = Server::bind(options, State::Fixed(Snapshot::new(memgate_platforms::default_settings())))
        .err()
        .unwrap();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("needs a cluster"), "{source}");
}
