//! Calls over TLS 1.3 with keep-alive, all from one thread: as many as are answered, or at fixed times.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::{JoinSet, yield_now};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How many connections there are at a time, as of an apiserver under load.
pub(crate) const CONNECTIONS: usize = 25;

/// The longest that an answer may take, in nanoseconds, as the histograms count.
const LONGEST: u64 = 60_000_000_000;

/// What answers begin with that last until the server closes the connection.
const UNTIL_THE_END: &[u8] = b"HTTP/1.0 200";

/// What answers begin with that a server gives instead when it has too much to do.
const REFUSED: &[u8] = b"HTTP/1.1 429";

/// What `openssl s_server` answers.
pub(crate) fn plain_request() -> Arc<[u8]> {
    Arc::from(&b"GET / HTTP/1.0\r\n\r\n"[..])
}

/// A POST of this review, as bytes.
pub(crate) fn request(review: &str) -> Arc<[u8]> {
    let head = "POST /mutate?timeout=10s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{review}", review.len()).into_bytes().into()
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
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes())?)?;
        let mut config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.resumption = Resumption::disabled();
        Ok(Self { address, connector: TlsConnector::from(Arc::new(config)) })
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let stream = self.connector.connect(ServerName::try_from("localhost")?, stream).await?;
        Ok(Connection { stream, buffer: vec![0; 16 << 10], answered: None })
    }

    /// As many connections as there are at a time.
    pub(crate) async fn connect_all(&self) -> Result<Vec<Connection>> {
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(self.connect().await?);
        }
        Ok(connections)
    }

    /// Each connection sends when its last call is answered; what came of them.
    pub(crate) async fn closed_loop(&self, request: &Arc<[u8]>, lasting: Duration) -> Result<Tally> {
        let (start, mut tasks) = (Instant::now(), JoinSet::new());
        for mut connection in self.connect_all().await? {
            let request = Arc::clone(request);
            tasks.spawn(async move {
                let mut tally = Tally::default();
                while start.elapsed() < lasting {
                    tally.note(connection.call(&request).await?.is_some());
                }
                Ok::<_, anyhow::Error>(tally)
            });
        }
        sum(tasks, start).await
    }

    /// Calls at fixed times, whether those before them are answered or not. Times count from when a call was due, so a
    /// server that stalls has all the calls that waited for it (no coordinated omission). How many were refused comes
    /// with them.
    pub(crate) async fn open_loop(
        &self,
        request: &Arc<[u8]>,
        per_second: u32,
        lasting: Duration,
    ) -> Result<(Histogram<u64>, u64)> {
        let pause = Duration::from_secs(1) / per_second;
        let (start, end) = (Instant::now(), Instant::now() + lasting);
        // The next time at which a call is due. Whoever waits for it waits awake: a timer of tokio is late by up to a
        // millisecond.
        let due = Arc::new(Mutex::new(start));
        let mut tasks = JoinSet::new();
        for mut connection in self.connect_all().await? {
            let (request, due) = (Arc::clone(request), Arc::clone(&due));
            tasks.spawn(async move {
                let (mut times, mut refused) = (histogram()?, 0);
                loop {
                    let mut next = due.lock().await;
                    let mine = *next;
                    if mine >= end {
                        return Ok::<_, anyhow::Error>((times, refused));
                    }
                    *next += pause;
                    while Instant::now() < mine {
                        yield_now().await;
                    }
                    drop(next);
                    refused += u64::from(connection.call(&request).await?.is_none());
                    times.saturating_record(u64::try_from(mine.elapsed().as_nanos())?);
                }
            });
        }
        let (mut all, mut all_refused) = (histogram()?, 0);
        while let Some(done) = tasks.join_next().await {
            let (times, refused) = done??;
            all.add(times)?;
            all_refused += refused;
        }
        Ok((all, all_refused))
    }

    /// A connection for each call, as many at a time as there are connections else; what came of them.
    pub(crate) async fn handshakes(&self, request: &Arc<[u8]>, lasting: Duration) -> Result<Tally> {
        let (start, mut tasks) = (Instant::now(), JoinSet::new());
        for _ in 0..CONNECTIONS {
            let (caller, request) = (self.clone(), Arc::clone(request));
            tasks.spawn(async move {
                let mut tally = Tally::default();
                while start.elapsed() < lasting {
                    let answered = async { caller.connect().await?.call(&request).await };
                    // A connection that is closed before it is one is refused too.
                    tally.note(matches!(answered.await, Ok(Some(_))));
                }
                Ok::<_, anyhow::Error>(tally)
            });
        }
        sum(tasks, start).await
    }
}

/// What came of calls.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) answered: u64,
    pub(crate) refused: u64,
    pub(crate) took: Duration,
}

impl Tally {
    fn note(&mut self, answered: bool) {
        *(if answered { &mut self.answered } else { &mut self.refused }) += 1;
    }
}

async fn sum(mut tasks: JoinSet<Result<Tally>>, start: Instant) -> Result<Tally> {
    let mut sum = Tally::default();
    while let Some(tally) = tasks.join_next().await {
        let tally = tally??;
        sum.answered += tally.answered;
        sum.refused += tally.refused;
    }
    Ok(Tally { took: start.elapsed(), ..sum })
}

/// For times of up to a minute, with three digits.
pub(crate) fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, LONGEST, 3)?)
}

/// A connection, and what it remembers.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
    /// How long the first answer was: all others have to be as long.
    answered: Option<usize>,
}

impl Connection {
    /// The server's certificate, DER.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        self.stream.get_ref().1.peer_certificates()?.first().map(AsRef::as_ref)
    }

    /// The body of the answer, or nothing if there is a 429 instead.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<Option<Vec<u8>>> {
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
            let answer = self.buffer.get(..filled).context("it was read")?;
            if read == 0 {
                ensure!(answer.starts_with(UNTIL_THE_END), "the server closed the connection");
                return Ok(Some(answer.to_vec()));
            }
            let Some(body) = body(answer)? else { continue };
            if answer.starts_with(REFUSED) {
                return Ok(None);
            }
            let length = *self.answered.get_or_insert(body.len());
            ensure!(body.len() == length, "an answer of {} bytes, others had {length}", body.len());
            return Ok(Some(body));
        }
    }
}

/// The body of an answer once it is all there.
fn body(answer: &[u8]) -> Result<Option<Vec<u8>>> {
    if answer.starts_with(UNTIL_THE_END) {
        return Ok(None);
    }
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let (head, rest) = answer.split_at(end + 4);
    let head = std::str::from_utf8(head)?;
    ensure!(head.starts_with("HTTP/1.1 200") || answer.starts_with(REFUSED), "{head}");
    let headers = || head.lines().filter_map(|line| line.split_once(": "));
    let value =
        |name: &str| headers().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    if let Some(length) = value("content-length") {
        return Ok(rest.get(..length.parse()?).map(<[u8]>::to_vec));
    }
    ensure!(value("transfer-encoding") == Some("chunked"), "{head}");
    chunks(rest)
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
