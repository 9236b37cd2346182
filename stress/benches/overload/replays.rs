//! Callers that replay somebody's first message of a handshake, so many times a second, from a thread of their own.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use socket2::{Domain, Socket, Type};

/// How callers go about it.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// How many a second.
    pub(crate) rate: u64,
    /// Where they come from.
    pub(crate) from: IpAddr,
    /// How long each stays; zero to leave at once.
    pub(crate) stay: Duration,
}

/// A flood that goes on until it is dropped.
pub(crate) struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    start: Instant,
}

impl Flood {
    /// Starts it.
    pub(crate) fn start(server: SocketAddr, config: Arc<rustls::ClientConfig>, manner: Manner) -> Self {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let hello = first_message(config);
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&sent));
        std::thread::spawn(move || {
            let start = Instant::now();
            let mut held = std::collections::VecDeque::new();
            while !stopped.load(Ordering::Relaxed) {
                let due = (start.elapsed().as_secs_f64() * manner.rate as f64) as u64;
                for _ in count.load(Ordering::Relaxed)..due {
                    held.extend(replay(server, manner.from, &hello).map(|socket| (Instant::now(), socket)));
                    count.fetch_add(1, Ordering::Relaxed);
                    // At most as many as a process may have files.
                    while held.front().is_some_and(|(at, _)| at.elapsed() >= manner.stay)
                        || held.len() > 10_000
                    {
                        held.pop_front();
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { stop, sent, start: Instant::now() }
    }

    /// How many a second there were.
    pub(crate) fn rate(&self) -> f64 {
        self.sent.load(Ordering::Relaxed) as f64 / self.start.elapsed().as_secs_f64()
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn first_message(config: Arc<rustls::ClientConfig>) -> Vec<u8> {
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = rustls::ClientConnection::new(config, name).expect("a client");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("a message");
    hello
}

fn replay(server: SocketAddr, from: IpAddr, hello: &[u8]) -> Option<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    // A reset at the end: ports of connections that were closed in turn stay in use for a minute.
    socket.set_linger(Some(Duration::ZERO)).ok()?;
    socket.bind(&SocketAddr::new(from, 0).into()).ok()?;
    // The queue of the server may be full, and then nothing is to be gained by waiting.
    socket.connect_timeout(&server.into(), Duration::from_millis(20)).ok()?;
    (&socket).write_all(hello).ok()?;
    Some(socket)
}
