//! One caller with a connection that is kept, as an apiserver has it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, StreamOwned};

/// How long an answer may take; far more than any bound.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection, made anew when the server has closed it.
pub(crate) struct Caller {
    address: SocketAddr,
    ca: String,
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl Caller {
    /// Connects to a server whose certificate the CA has signed.
    pub(crate) fn new(address: SocketAddr, ca: &str) -> Result<Self> {
        Ok(Self { address, ca: ca.to_owned(), stream: connect(address, ca)? })
    }

    /// The status and the body of the answer.
    pub(crate) fn exchange(&mut self, path: &str, body: &str) -> Result<(u16, Vec<u8>)> {
        let (status, answer, closes) = exchange(&mut self.stream, path, body)?;
        if closes {
            self.stream = connect(self.address, &self.ca)?;
        }
        Ok((status, answer))
    }
}

fn connect(address: SocketAddr, ca: &str) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes())?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost")?)?;
    let socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.set_nodelay(true)?;
    Ok(StreamOwned::new(connection, socket))
}

fn exchange(stream: &mut (impl Read + Write), path: &str, body: &str) -> Result<(u16, Vec<u8>, bool)> {
    let length = body.len();
    let head = format!(
        "POST {path}?timeout=30s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    // What is refused for its length may not get through, and is answered all the same.
    let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    let _sent = sent.and_then(|()| stream.flush());
    let mut read = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        if let Some((status, start, length, closes)) = head_of(&read) {
            while read.len() < start + length {
                more(stream, &mut read, &mut buffer)?;
            }
            return Ok((status, read.split_off(start), closes));
        }
        more(stream, &mut read, &mut buffer)?;
    }
}

fn more(stream: &mut impl Read, read: &mut Vec<u8>, buffer: &mut [u8]) -> Result<()> {
    let count = stream.read(buffer)?;
    if count == 0 {
        bail!("the server has hung up");
    }
    read.extend_from_slice(buffer.get(..count).unwrap_or_default());
    Ok(())
}

/// Status, where the body begins, its length, and whether the connection ends with it.
fn head_of(read: &[u8]) -> Option<(u16, usize, usize, bool)> {
    let end = read.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(read.get(..end)?).to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
    Some((status, end, length.trim().parse().ok()?, head.contains("connection: close")))
}
