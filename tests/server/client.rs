//! A client that sends exactly the bytes that a test wants.

#![allow(dead_code, reason = "each test program uses the part of it that it needs")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::running::TIMEOUT;

/// A TLS connection.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    read: Vec<u8>,
}

/// What a caller shows.
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The response of a review.
    pub(crate) fn review(&self) -> serde_json::Value {
        assert_eq!(self.status, 200, "{}", self.text());
        serde_json::from_slice::<serde_json::Value>(&self.body).unwrap()["response"].take()
    }
}

impl Connection {
    /// Connects to a server whose certificate the CA has signed.
    pub(crate) async fn open(address: SocketAddr, ca: &str, protocols: &[&str]) -> io::Result<Self> {
        Self::open_as(address, ca, protocols, None).await
    }

    /// The same with a client certificate.
    pub(crate) async fn open_as(
        address: SocketAddr,
        ca: &str,
        protocols: &[&str],
        identity: Option<&Identity>,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        Self::over(stream, presenting(ca, protocols, identity), "localhost").await
    }

    /// Shakes hands on a stream, with a configuration and for a name of the test's own.
    pub(crate) async fn over(stream: TcpStream, config: ClientConfig, name: &str) -> io::Result<Self> {
        let connector = TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        Ok(Self { stream: connector.connect(name, stream).await?, read: Vec::new() })
    }

    /// The certificate that the server showed.
    pub(crate) fn certificate(&self) -> Vec<u8> {
        self.stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }

    /// Sends bytes.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).await.unwrap();
    }

    /// Sends bytes to a server that may have hung up.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Sends a large request until it is through or there is an answer, as Go's client does.
    pub(crate) async fn send_for_answer(&mut self, bytes: &[u8]) -> Answer {
        let (mut from, mut to) = tokio::io::split(&mut self.stream);
        let sending = async {
            let mut sent = Ok(());
            for part in bytes.chunks(64 << 10) {
                sent = sent.and(to.write_all(part).await);
                tokio::task::yield_now().await;
            }
            if sent.and(to.flush().await).is_ok() {
                std::future::pending::<()>().await;
            }
        };
        let mut sending = std::pin::pin!(sending);
        let mut reading = std::pin::pin!(timeout(TIMEOUT, read_answer(&mut from, &mut self.read)));
        let answer = tokio::select! {
            biased;
            answer = &mut reading => answer,
            () = &mut sending => reading.await,
        };
        answer.expect("an answer should come").expect("an answer")
    }

    /// Says that nothing more will be sent.
    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// The next response.
    pub(crate) async fn answer(&mut self) -> Answer {
        let reading = read_answer(&mut self.stream, &mut self.read);
        timeout(TIMEOUT, reading).await.expect("an answer should come").expect("an answer")
    }

    /// The next response, or `None` when the server hangs up without one.
    pub(crate) async fn answer_or_end(&mut self) -> Option<Answer> {
        let reading = read_answer(&mut self.stream, &mut self.read);
        timeout(TIMEOUT, reading).await.expect("an answer or an end should come").ok()
    }

    /// Reads up to so many bytes and forgets them; how many there were.
    pub(crate) async fn read_some(&mut self, most: usize) -> io::Result<usize> {
        self.stream.read(&mut vec![0; most]).await
    }

    /// Waits until the server has hung up; what it said before is lost.
    pub(crate) async fn closed(&mut self) {
        let mut scrap = [0; 1024];
        let reading = async { while self.stream.read(&mut scrap).await.is_ok_and(|count| count > 0) {} };
        timeout(TIMEOUT, reading).await.expect("the server should hang up");
    }
}

/// A client that trusts what the CA has signed.
pub(crate) fn trusting(ca: &str, protocols: &[&str]) -> ClientConfig {
    presenting(ca, protocols, None)
}

fn presenting(ca: &str, protocols: &[&str], identity: Option<&Identity>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        Some(shown) => builder.with_client_auth_cert(shown.chain.clone(), shown.key.clone_key()).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config
}

/// A GET over plain HTTP.
pub(crate) async fn plain(address: SocketAddr, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    timeout(TIMEOUT, read_answer(&mut stream, &mut read)).await.expect("an answer").expect("an answer")
}

async fn read_answer<S: AsyncRead + Unpin>(stream: &mut S, read: &mut Vec<u8>) -> io::Result<Answer> {
    let end = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        more(stream, read).await?;
    };
    let head = String::from_utf8(read.drain(..end).collect()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(key, value)| (key.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(key, _)| key == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    while read.len() < length {
        more(stream, read).await?;
    }
    Ok(Answer { status, headers, body: read.drain(..length).collect() })
}

async fn more<S: AsyncRead + Unpin>(stream: &mut S, read: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_buf(read).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// A request with exactly these headers.
pub(crate) fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let headers: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (headers, length) = (headers.concat(), body.len());
    let head =
        format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A request as an apiserver sends it.
pub(crate) fn post(target: &str, body: &[u8]) -> Vec<u8> {
    request("POST", target, &[("content-type", "application/json")], body)
}

/// The head of a request that announces so many bytes.
pub(crate) fn head(target: &str, length: usize) -> Vec<u8> {
    let text = format!(
        "POST {target} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    text.into_bytes()
}

/// A review of a pod; without an agent the pod does not belong to a family.
pub(crate) fn review(uid: &str, agent: Option<&str>) -> Vec<u8> {
    let labels = agent.map_or_else(String::new, |agent| format!(r#""arkonis.dev/deployment":"{agent}""#));
    let pod = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","labels":{{{labels}}}}},"spec":{{"containers":[{{"name":"agent"}}]}}}}"#
    );
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"{uid}","kind":{{"group":"","version":"v1","kind":"Pod"}},"resource":{{"group":"","version":"v1","resource":"pods"}},"operation":"CREATE","namespace":"team","name":"p","object":{pod},"dryRun":false}}}}"#
    )
    .into_bytes()
}
