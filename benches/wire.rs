//! Requests over TLS keep-alive, against the same listener with a service that reads each body and answers a
//! constant.
//!
//! `cargo bench --bench wire` on an otherwise idle machine. The server has one thread, the load
//! another one, with 25 connections that each send the next request when the last one is answered.
//! Throughput and the CPU time of the server's thread (from the kernel's scheduler statistics) are
//! medians of five rounds, taken in turns. Goals and results: docs/performance.md.

#![allow(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![allow(clippy::print_stdout, reason = "the result")]
#![allow(clippy::cast_precision_loss, reason = "rates")]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use memgate::server::options::Options;
use memgate::server::tls::CertSource;
use memgate::server::{Server, State};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const CONNECTIONS: usize = 25;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(2);

fn main() {
    rustls::crypto::ring::default_provider().install_default().expect("the only provider");
    let sizes = [
        ("4 KB", common::review("arkonis.dev/deployment", 20, 600, false)),
        ("64 KB", common::review("arkonis.dev/deployment", 500, 36_000, false)),
        ("4 KB, no family", common::review("example.dev/other", 20, 600, false)),
    ];
    println!(
        "{:<16} {:>10} {:>10} {:>7} {:>9} {:>9}",
        "body", "constant/s", "memgate/s", "share", "CPU µs", "CPU µs"
    );
    for (name, body) in sizes {
        let constant = Served::start(|server| server.with_routes(constant()));
        let real = Served::start(|server| server);
        let mut rounds = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            rounds.0.push(constant.load(&body));
            rounds.1.push(real.load(&body));
        }
        let ((constant, constant_cpu), (real, real_cpu)) = (median(rounds.0), median(rounds.1));
        println!(
            "{name:<16} {constant:>10.0} {real:>10.0} {:>6.1}% {constant_cpu:>9.1} {real_cpu:>9.1}",
            100.0 * real / constant
        );
    }
}

/// Reads the body, as any webhook has to, and answers as many bytes as a review takes.
fn constant() -> Router {
    let answer = Bytes::from(vec![b'x'; 1024]);
    Router::new().fallback(move |_body: Bytes| std::future::ready(answer.clone()))
}

fn median(mut rounds: Vec<(f64, f64)>) -> (f64, f64) {
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    rounds.get(rounds.len() / 2).copied().expect("rounds")
}

/// A server on a thread of its own.
struct Served {
    address: SocketAddr,
    /// The scheduler statistics of its thread.
    statistics: String,
    connector: TlsConnector,
}

impl Served {
    fn start(change: impl FnOnce(Server) -> Server + Send + 'static) -> Self {
        let (sender, receiver) = mpsc::channel();
        let directory = tempfile::tempdir().expect("a directory");
        let ca = directory.path().join("ca.crt");
        let mut options = Options::new(CertSource::SelfSigned { names: Vec::new(), ca: ca.clone() });
        options.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        options.health = SocketAddr::from(([127, 0, 0, 1], 0));
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let server =
                    change(Server::bind(options, State::Fixed(common::snapshot())).expect("a server"));
                let thread = std::fs::read_link("/proc/thread-self").expect("Linux");
                let statistics = format!("/proc/{}/schedstat", thread.display());
                sender
                    .send((server.addresses().expect("addresses").webhook, statistics))
                    .expect("a listener");
                server.run(std::future::pending()).await.expect("it serves");
            });
        });
        let (address, statistics) = receiver.recv().expect("an address");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&ca).expect("a CA")).expect("a good CA");
        let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Self { address, statistics, connector: TlsConnector::from(Arc::new(config)) }
    }

    /// Requests a second, and µs of the server's thread a request.
    fn load(&self, body: &str) -> (f64, f64) {
        let request = format!(
            "POST /mutate?timeout=10s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut streams = Vec::new();
            for _ in 0..CONNECTIONS {
                streams.push(self.connect().await);
            }
            let (start, cpu) = (Instant::now(), self.cpu_nanos());
            let sending = streams.into_iter().map(|stream| send(stream, request.as_bytes(), start + ROUND));
            let counts = futures::future::join_all(sending).await;
            let (took, cpu) = (start.elapsed(), self.cpu_nanos() - cpu);
            let requests = counts.into_iter().sum::<u64>() as f64;
            (requests / took.as_secs_f64(), cpu as f64 / 1000.0 / requests)
        })
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let name = ServerName::try_from("localhost").expect("a name");
        self.connector.connect(name, stream).await.expect("TLS")
    }

    fn cpu_nanos(&self) -> u64 {
        let text = std::fs::read_to_string(&self.statistics).expect("Linux");
        text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).expect("nanoseconds")
    }
}

/// Sends the request again and again until it is time; how many were answered.
async fn send(mut stream: TlsStream<TcpStream>, request: &[u8], until: Instant) -> u64 {
    let mut answered = 0;
    let mut buffer = vec![0; 64 << 10];
    while Instant::now() < until {
        stream.write_all(request).await.expect("sent");
        stream.flush().await.expect("sent");
        let mut filled = 0;
        loop {
            let read = stream.read(buffer.get_mut(filled..).expect("room")).await.expect("an answer");
            assert_ne!(read, 0, "the server closed the connection");
            filled += read;
            if is_whole(buffer.get(..filled).expect("read")) {
                break;
            }
        }
        answered += 1;
    }
    answered
}

/// Whether this is a whole answer; stops the benchmark unless it is a 200.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(answer.get(..end).expect("head")).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
    answer.len() >= end + 4 + length
}
