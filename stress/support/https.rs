//! Calls over TLS 1.3 with keep-alive: who calls, a connection, and the answers that come through it.
#![allow(dead_code, reason = "each program uses the part of it that it needs")]

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, client::WantsClientCert};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What answers begin with that last until the server closes the connection.
const UNTIL_THE_END: &[u8] = b"HTTP/1.0 200";

/// The status of what a server answers instead when it has too much to do.
pub(crate) const REFUSED: u16 = 429;

/// A POST of JSON, as bytes.
pub(crate) fn post(path: &str, json: &str) -> Arc<[u8]> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
    format!("{head}Content-Length: {}\r\n\r\n{json}", json.len()).into_bytes().into()
}

/// Who calls which server.
#[derive(Clone)]
pub(crate) struct Caller {
    address: SocketAddr,
    connector: TlsConnector,
}

impl Caller {
    /// A caller that trusts this CA and resumes no sessions.
    pub(crate) fn new(address: SocketAddr, ca: &str) -> Result<Self> {
        Ok(Self::of(address, trusting(ca)?.with_no_client_auth()))
    }

    /// The same with a certificate of its own and its key, PEM.
    pub(crate) fn known_as(address: SocketAddr, ca: &str, certificate: &str, key: &str) -> Result<Self> {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
        Ok(Self::of(address, trusting(ca)?.with_client_auth_cert(vec![certificate], key)?))
    }

    fn of(address: SocketAddr, mut config: ClientConfig) -> Self {
        config.resumption = Resumption::disabled();
        Self { address, connector: TlsConnector::from(Arc::new(config)) }
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let stream = self.connector.connect(ServerName::try_from("localhost")?, stream).await?;
        Ok(Connection { stream, buffer: vec![0; 16 << 10], answered: None, is_closing: false })
    }
}

fn trusting(ca: &str) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes())?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots))
}

/// A connection, and what it remembers.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
    /// How long the first answer was: all others have to be as long.
    answered: Option<usize>,
    /// Whether the server wants no more calls through it, as after a refusal before the whole body was read.
    is_closing: bool,
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether the server wants no more calls through this connection.
    pub(crate) closes: bool,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    /// The server's certificate, DER.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        self.stream.get_ref().1.peer_certificates()?.first().map(AsRef::as_ref)
    }

    /// This connection, or a new one where the server closes it.
    pub(crate) async fn usable(self, caller: &Caller) -> Result<Self> {
        if self.is_closing { caller.connect().await } else { Ok(self) }
    }

    /// The body of the answer, or nothing if there is a 429 instead.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<Option<Vec<u8>>> {
        let Answer { status, closes, body } = self.exchange(request).await?;
        self.is_closing = closes;
        if status == REFUSED {
            return Ok(None);
        }
        ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(&body));
        let length = *self.answered.get_or_insert(body.len());
        ensure!(body.len() == length, "an answer of {} bytes, others had {length}", body.len());
        Ok(Some(body))
    }

    /// Whatever is answered.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<Answer> {
        // A refusal can come before the whole request is written.
        let _written = self.stream.write_all(request).await;
        let _flushed = self.stream.flush().await;
        read(&mut self.stream, &mut self.buffer).await
    }
}

/// A GET over plain HTTP.
pub(crate) async fn plain(address: SocketAddr, path: &str) -> Result<Answer> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    read(&mut stream, &mut vec![0; 16 << 10]).await
}

/// The next answer, which goes through the buffer.
async fn read(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Result<Answer> {
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            buffer.resize(filled * 2, 0);
        }
        let room = buffer.get_mut(filled..).context("no room")?;
        let read = match stream.read(room).await {
            // openssl says no farewell.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => 0,
            read => read?,
        };
        filled += read;
        let received = buffer.get(..filled).context("it was read")?;
        if read == 0 {
            ensure!(received.starts_with(UNTIL_THE_END), "the server closed the connection");
            return Ok(Answer { status: 200, closes: true, body: received.to_vec() });
        }
        if let Some(answer) = answer(received)? {
            return Ok(answer);
        }
    }
}

/// An answer once it is all there.
fn answer(received: &[u8]) -> Result<Option<Answer>> {
    if received.starts_with(UNTIL_THE_END) {
        return Ok(None);
    }
    let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let (head, rest) = received.split_at(end + 4);
    let head = std::str::from_utf8(head)?;
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|head| head.get(..3)).context("no status")?;
    let headers = || head.lines().filter_map(|line| line.split_once(": "));
    let value =
        |name: &str| headers().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    let body = if let Some(length) = value("content-length") {
        rest.get(..length.parse()?).map(<[u8]>::to_vec)
    } else {
        ensure!(value("transfer-encoding") == Some("chunked"), "{head}");
        chunks(rest)?
    };
    let closes = value("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let status = status.parse()?;
    Ok(body.map(|body| Answer { status, closes, body }))
}

/// The chunks of a body put together, once the last one is there.
fn chunks(mut rest: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else { return Ok(None) };
        let (length, after) = rest.split_at(end);
        let length = usize::from_str_radix(std::str::from_utf8(length)?, 16)?;
        let after = after.get(2..).context("two bytes")?;
        let Some(chunk) = after.get(..length) else { return Ok(None) };
        let Some(end) = after.get(length..length + 2) else { return Ok(None) };
        if end != b"\r\n" {
            bail!("a chunk is longer than it says");
        }
        if length == 0 {
            return Ok(Some(body));
        }
        body.extend_from_slice(chunk);
        rest = after.get(length + 2..).context("two bytes")?;
    }
}
