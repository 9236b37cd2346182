//! Waiting with a deadline, and the small HTTP client that waiting needs.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// The timeout for steps that take a second or two on an idle machine. It is long, so that a busy
/// machine does not fail a test; only a failing test waits this long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

/// Short enough not to be felt, long enough to leave the processor to what is waited for.
const INTERVAL: Duration = Duration::from_millis(50);

/// A port is seldom lost between finding it and listening on it; three times in a row, never.
const PORT_ATTEMPTS: usize = 3;

/// Calls `ask` until it returns a value.
///
/// # Errors
/// At once when `ask` fails, and when [`TIMEOUT`] is over; the text names `what`.
pub(crate) fn until<T>(what: &str, ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    until_within(TIMEOUT, what, ask)
}

/// The same with another timeout.
///
/// # Errors
/// As [`until`] does.
pub(crate) fn until_within<T>(
    timeout: Duration,
    what: &str,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(answer) = ask().with_context(|| format!("while waiting for {what}"))? {
            return Ok(answer);
        }
        if Instant::now() > deadline {
            bail!("waited {timeout:?} in vain for {what}");
        }
        thread::sleep(INTERVAL);
    }
}

/// Gives `start` as many loopback ports as it wants, different ones, and free a moment ago. When
/// another program was faster to listen on one, `start` is called again with others.
pub(crate) fn with_free_ports<const N: usize, T>(mut start: impl FnMut([u16; N]) -> Result<T>) -> Result<T> {
    for _ in 1..PORT_ATTEMPTS {
        match start(free_ports()?) {
            Err(error) if port_was_taken(&error) => {}
            settled => return settled,
        }
    }
    start(free_ports()?)
}

fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("failed to find a free port")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// Programs in Go and in Rust say it alike, and the error holds the end of their log.
fn port_was_taken(error: &anyhow::Error) -> bool {
    let text = format!("{error:#}").to_lowercase();
    text.contains("address already in use")
}

/// The status and body of a plain HTTP GET; `None` without an answer.
pub(crate) fn http_get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}
