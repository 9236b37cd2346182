//! HTTP/1.1 over TLS, with keep-alive: a caller, a connection, and the answers that come through it.
//!
//! This client adds nothing of its own, so a test decides each byte of a request.
#![allow(dead_code, reason = "each program uses the part of it that it needs")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use rustls::client::{Resumption, WantsClientCert};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What a read fails with when the server hangs up in place of an answer.
pub(crate) const CLOSED: &str = "the server closed the connection";

/// How an answer begins that lasts until the server closes the connection.
const UNTIL_THE_END: &str = "HTTP/1.0 200";

/// The status of what a server answers instead when it has too much to do.
pub(crate) const REFUSED: u16 = 429;

/// How much is read at a time.
const READ_BYTES: usize = 16 << 10;

/// A request with exactly these headers.
pub(crate) fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let headers: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (headers, length) = (headers.concat(), body.len());
    let head =
        format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A POST of JSON, as an apiserver sends it.
pub(crate) fn post(target: &str, json: impl AsRef<[u8]>) -> Vec<u8> {
    request("POST", target, &[("content-type", "application/json")], json.as_ref())
}

/// The settings of a client that trusts these CAs, PEM.
pub(crate) fn trusting(cas: &str) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(cas.as_bytes()) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots))
}

/// Who calls which server.
#[derive(Clone)]
pub(crate) struct Caller {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Caller {
    /// A caller that trusts these CAs and resumes no sessions.
    pub(crate) fn new(address: SocketAddr, cas: &str) -> Result<Self> {
        Ok(Self::of(address, trusting(cas)?.with_no_client_auth()))
    }

    /// The same with a certificate of its own and its key, PEM.
    pub(crate) fn known_as(address: SocketAddr, cas: &str, certificate: &str, key: &str) -> Result<Self> {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
        Ok(Self::of(address, trusting(cas)?.with_client_auth_cert(vec![certificate], key)?))
    }

    fn of(address: SocketAddr, mut config: ClientConfig) -> Self {
        config.resumption = Resumption::disabled();
        Self { address, config: Arc::new(config) }
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection::over(stream, Arc::clone(&self.config), "localhost").await?)
    }
}

/// A connection, and what it remembers.
pub(crate) struct Connection {
    pub(crate) stream: TlsStream<TcpStream>,
    /// What has come and belongs to no answer yet.
    pub(crate) read: Vec<u8>,
    /// How long the first answer was: all others have to be as long.
    answered: Option<usize>,
    /// Whether the server wants no more calls through it, as after a refusal before the whole body was read.
    is_closing: bool,
}

impl Connection {
    /// Makes the handshake on a stream.
    pub(crate) async fn over(
        stream: TcpStream,
        config: impl Into<Arc<ClientConfig>>,
        name: &str,
    ) -> io::Result<Self> {
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(config.into()).connect(name, stream).await?;
        Ok(Self { stream, read: Vec::new(), answered: None, is_closing: false })
    }

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
        let answer = self.exchange(request).await?;
        self.is_closing = answer.closes();
        let Answer { status, body, .. } = answer;
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
        let _written = self.try_send(request).await;
        self.read_next().await
    }

    /// The next answer.
    pub(crate) async fn read_next(&mut self) -> Result<Answer> {
        read_answer(&mut self.stream, &mut self.read).await
    }

    /// Sends bytes to a server that may have hung up.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The status; [`REFUSED`] also where a review is refused because there is no room for it.
    pub(crate) fn status_for_client(&self) -> u16 {
        let code: &[u8] = br#""code":429,"#;
        if self.body.windows(code.len()).any(|part| part == code) { REFUSED } else { self.status }
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Whether the server wants no more calls through this connection.
    pub(crate) fn closes(&self) -> bool {
        self.head.starts_with(UNTIL_THE_END)
            || self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// A GET over plain HTTP.
pub(crate) async fn plain(address: SocketAddr, path: &str) -> Result<Answer> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    read_answer(&mut stream, &mut Vec::new()).await
}

/// Takes the next answer from what was read already and what still comes.
pub(crate) async fn read_answer(stream: &mut (impl AsyncRead + Unpin), read: &mut Vec<u8>) -> Result<Answer> {
    let end = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        more(stream, read).await?;
    };
    let head = String::from_utf8(read.drain(..end).collect())?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    let mut answer = Answer { status, head, body: Vec::new() };
    answer.body = if answer.head.starts_with(UNTIL_THE_END) {
        // openssl says no farewell.
        while more(stream, read).await.is_ok() {}
        std::mem::take(read)
    } else if answer.header("transfer-encoding") == Some("chunked") {
        chunks(stream, read).await?
    } else {
        let length = answer.header("content-length").map_or(Ok(0), str::parse)?;
        take(stream, read, length).await?
    };
    Ok(answer)
}

/// The chunks of a body put together.
async fn chunks(stream: &mut (impl AsyncRead + Unpin), read: &mut Vec<u8>) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let Some(end) = read.windows(2).position(|window| window == b"\r\n") else {
            more(stream, read).await?;
            continue;
        };
        let line: Vec<u8> = read.drain(..end + 2).collect();
        let length = usize::from_str_radix(str::from_utf8(&line)?.trim_end(), 16)?;
        body.extend(take(stream, read, length).await?);
        if take(stream, read, 2).await? != b"\r\n" {
            bail!("a chunk is longer than it says");
        }
        if length == 0 {
            return Ok(body);
        }
    }
}

async fn take(stream: &mut (impl AsyncRead + Unpin), read: &mut Vec<u8>, length: usize) -> Result<Vec<u8>> {
    while read.len() < length {
        more(stream, read).await?;
    }
    Ok(read.drain(..length).collect())
}

async fn more(stream: &mut (impl AsyncRead + Unpin), read: &mut Vec<u8>) -> Result<()> {
    read.reserve(READ_BYTES);
    ensure!(stream.read_buf(read).await? > 0, CLOSED);
    Ok(())
}
