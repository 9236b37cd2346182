//! One connection over TLS, and the answers that come through it.

use std::io::ErrorKind;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// What answers begin with that last until the server closes the connection.
const UNTIL_THE_END: &[u8] = b"HTTP/1.0 200";

/// The status of what a server answers instead when it has too much to do.
pub(crate) const REFUSED: u16 = 429;

/// A connection, and what it remembers.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
    /// How long the first answer was: all others have to be as long.
    answered: Option<usize>,
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether the server wants no more calls through this connection.
    #[allow(dead_code, reason = "only one of the benchmarks has servers that end")]
    pub(crate) closes: bool,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    /// The connection after its handshake.
    pub(crate) fn new(stream: TlsStream<TcpStream>) -> Self {
        Self { stream, buffer: vec![0; 16 << 10], answered: None }
    }

    /// The server's certificate, DER.
    #[allow(dead_code, reason = "only one of the benchmarks replaces it")]
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        self.stream.get_ref().1.peer_certificates()?.first().map(AsRef::as_ref)
    }

    /// The body of the answer, or nothing if there is a 429 instead.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<Option<Vec<u8>>> {
        let Answer { status, body, .. } = self.exchange(request).await?;
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
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                self.buffer.resize(filled * 2, 0);
            }
            let room = self.buffer.get_mut(filled..).context("no room")?;
            let read = match self.stream.read(room).await {
                // openssl says no farewell.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => 0,
                read => read?,
            };
            filled += read;
            let received = self.buffer.get(..filled).context("it was read")?;
            if read == 0 {
                ensure!(received.starts_with(UNTIL_THE_END), "the server closed the connection");
                return Ok(Answer { status: 200, closes: true, body: received.to_vec() });
            }
            if let Some(answer) = answer(received)? {
                return Ok(answer);
            }
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
