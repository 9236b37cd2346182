//! More reviews than can be decided, and more callers than there are connections: what the others notice.
//!
//! ```text
//! just soak overload [--seconds 60] [--times 5] [--cost 1000]
//! just soak idle     [--seconds 20] [--callers 4000]
//! just soak replays  [--seconds 10] [--rate 10000] [--ration 500]
//! just soak dear     [--seconds 20] [--small 16] [--one-in 1] [--large 4]
//! ```
//!
//! `overload` measures how many reviews a second a server with one thread decides, then sends so many
//! times that number at fixed times, whether they are answered or not (an open loop: who waits is
//! counted from when it should have been sent). `--cost` makes each decision take so many
//! microseconds, as large objects on a slow machine do; without, load and server need about as much
//! of the machine as each other, and five times as much cannot be sent. Each caller leaves two
//! seconds, as the entries for pods do.
//!
//! `idle` sends 200 reviews a second, alone and then among callers that only hold connections, drip
//! bytes or stop in the handshake.
//!
//! `replays` sends 200 reviews a second, alone and then while others replay the first message of a handshake: from
//! other addresses and from the same one, leaving at once and staying. Besides, a newcomer connects ten times a
//! second from an address that nobody else has. `--ration 4000000000` is for no ration.
//!
//! `dear` sends 200 reviews a second, alone and then beside callers that send, one after the other, the dearest reviews
//! that are known: `--small` of them such of 60 KB, of which one in so many is dear, and `--large` of them such of
//! 3 MB, with 200 ms until the deadline. It tells how late a 504 came, and whether `/livez` ever failed.
//!
//! Everything stays on loopback. Goals and results: docs/performance.md.

#![allow(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![allow(clippy::print_stdout, reason = "the result")]
#![allow(clippy::cast_precision_loss, reason = "rates and shares")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]

mod common;
#[path = "overload/dear.rs"]
mod dear;
#[path = "overload/replays.rs"]
mod replays;

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use memgate::decide::decide;
use memgate::model::decision::Decision;
use memgate::model::request::Request;
use memgate::model::snapshot::Snapshot;
use memgate::server::options::Options;
use memgate::server::tls::CertSource;
use memgate::server::{Addresses, Server, State, runtime_builder};
use replays::{Flood, Manner};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, sleep_until, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What an entry for pods allows.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// The most connections of the load: below the connection limit of the server, which is what bounds an
/// apiserver.
const CONNECTIONS: usize = 1_500;

/// How much longer than usual a decision takes, in microseconds.
static COST: AtomicU64 = AtomicU64::new(0);

fn main() {
    rustls::crypto::ring::default_provider().install_default().expect("the only provider");
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |flag: &str, default: u64| {
        let value = arguments.iter().skip_while(|argument| *argument != flag).nth(1);
        value.map_or(default, |value| value.parse().expect("a number"))
    };
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    match arguments.first().map(String::as_str) {
        Some("overload") => {
            let seconds = Duration::from_secs(number("--seconds", 60));
            COST.store(number("--cost", 1_000), Ordering::Relaxed);
            LocalSet::new().block_on(&runtime, overload(seconds, number("--times", 5)));
        }
        Some("idle") => {
            let seconds = Duration::from_secs(number("--seconds", 20));
            LocalSet::new().block_on(&runtime, idle(seconds, number("--callers", 4_000)));
        }
        Some("replays") => {
            let seconds = Duration::from_secs(number("--seconds", 10));
            let ration = number("--ration", 500).try_into().expect("a ration");
            LocalSet::new().block_on(&runtime, replays(seconds, number("--rate", 10_000), ration));
        }
        Some("dear") => {
            let seconds = Duration::from_secs(number("--seconds", 20));
            let [small, one_in, large] =
                [("--small", 16), ("--one-in", 1), ("--large", 4)].map(|(flag, count)| number(flag, count));
            LocalSet::new().block_on(&runtime, dear::run(seconds, dear::Callers { small, one_in, large }));
        }
        // As part of all benchmarks there is nothing to say in a short time.
        _ => println!(
            "overload: say `overload`, `idle`, `replays` or `dear`; see the head of stress/benches/overload.rs"
        ),
    }
}

fn takes_longer(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    let end = Instant::now() + Duration::from_micros(COST.load(Ordering::Relaxed));
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    decide(request, snapshot)
}

/// A server on a thread of its own, and the way to it.
struct Served {
    address: SocketAddr,
    health: SocketAddr,
    config: Arc<rustls::ClientConfig>,
    connector: TlsConnector,
    request: Vec<u8>,
    idle: RefCell<Vec<TlsStream<TcpStream>>>,
    open: Cell<usize>,
}

impl Served {
    /// A server whose runtime has one thread.
    fn start(change: impl FnOnce(&mut Options)) -> Rc<Self> {
        Self::start_on(runtime_builder().worker_threads(1), change)
    }

    /// A server on such a runtime.
    fn start_on(runtime: &mut Builder, change: impl FnOnce(&mut Options)) -> Rc<Self> {
        let runtime = runtime.build().expect("a runtime");
        let (sender, receiver) = mpsc::channel();
        let directory = tempfile::tempdir().expect("a directory");
        let ca = directory.path().join("ca.crt");
        let mut options = Options::new(CertSource::SelfSigned { names: Vec::new(), ca: ca.clone() });
        options.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        options.health = SocketAddr::from(([127, 0, 0, 1], 0));
        options.decide = takes_longer;
        change(&mut options);
        std::thread::spawn(move || {
            runtime.block_on(async {
                let server = Server::bind(options, State::Fixed(common::snapshot())).expect("a server");
                sender.send(server.addresses().expect("addresses")).expect("a listener");
                server.run(std::future::pending()).await.expect("it serves");
            });
        });
        let Addresses { webhook: address, health } = receiver.recv().expect("addresses");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&ca).expect("a CA")).expect("a good CA");
        let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let body = common::review("arkonis.dev/deployment", 20, 600, false);
        let request = format!(
            "POST /mutate?timeout=2s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let config = Arc::new(config);
        let connector = TlsConnector::from(Arc::clone(&config));
        let (idle, open) = (RefCell::default(), Cell::new(0));
        Rc::new(Self { address, health, config, connector, request: request.into_bytes(), idle, open })
    }

    async fn connect(&self) -> Option<TlsStream<TcpStream>> {
        connect(self.address, &self.connector).await
    }

    /// A connection from an address of its own.
    async fn connect_from(&self, from: IpAddr) -> Option<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4().ok()?;
        socket.bind(SocketAddr::new(from, 0)).ok()?;
        let stream = socket.connect(self.address).await.ok()?;
        let name = ServerName::try_from("localhost").expect("a name");
        self.connector.connect(name, stream).await.ok()
    }

    /// The status of one review on an idle connection, or on a new one; `None` without an answer.
    async fn ask(&self) -> Option<u16> {
        let idle = self.idle.borrow_mut().pop();
        let mut stream = match idle {
            Some(stream) => stream,
            None => {
                self.open.set(self.open.get() + 1);
                self.connect().await?
            }
        };
        stream.write_all(&self.request).await.ok()?;
        stream.flush().await.ok()?;
        let status = answer(&mut stream).await?;
        self.idle.borrow_mut().push(stream);
        Some(status)
    }
}

/// The status of the next answer.
async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> Option<u16> {
    let (mut answer, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    while !is_whole(&answer) {
        match stream.read(&mut buffer).await.ok()? {
            0 => return None,
            count => answer.extend_from_slice(buffer.get(..count)?),
        }
    }
    std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()
}

async fn connect(address: SocketAddr, connector: &TlsConnector) -> Option<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await.ok()?;
    stream.set_nodelay(true).ok()?;
    let name = ServerName::try_from("localhost").expect("a name");
    connector.connect(name, stream).await.ok()
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(answer.get(..end).expect("head")).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
    answer.len() >= end + 4 + length
}

/// What became of the reviews.
#[derive(Default)]
struct Tally {
    /// Milliseconds from when it was due.
    served: Vec<f64>,
    refused: Vec<f64>,
    /// Served or refused, but not in time.
    late: u64,
    /// Any other status, or no answer.
    failed: u64,
    /// All connections were waiting for answers.
    unsent: u64,
}

/// Sends so many reviews a second, at their times.
async fn send(served: &Rc<Served>, rate: f64, time: Duration) -> Tally {
    let tally = Rc::new(RefCell::new(Tally::default()));
    let start = tokio::time::Instant::now();
    let mut sent = 0_u64;
    while start.elapsed() < time {
        sleep(Duration::from_millis(1)).await;
        // The first is due at once.
        let due = (start.elapsed().as_secs_f64() * rate) as u64 + 1;
        for number in sent..due {
            if served.idle.borrow().is_empty() && served.open.get() >= CONNECTIONS {
                tally.borrow_mut().unsent += 1;
                continue;
            }
            let (served, tally) = (Rc::clone(served), Rc::clone(&tally));
            let due = start + Duration::from_secs_f64(number as f64 / rate);
            spawn_local(async move {
                let answer = timeout(CALL_TIMEOUT, served.ask()).await;
                if !matches!(answer, Ok(Some(_))) {
                    // Its connection is gone.
                    served.open.set(served.open.get().saturating_sub(1));
                }
                let took = due.elapsed();
                let millis = took.as_secs_f64() * 1_000.0;
                let mut tally = tally.borrow_mut();
                match answer {
                    Ok(Some(200)) if took <= CALL_TIMEOUT => tally.served.push(millis),
                    Ok(Some(429)) if took <= CALL_TIMEOUT => tally.refused.push(millis),
                    Ok(Some(200 | 429)) | Err(_) => tally.late += 1,
                    Ok(_) => tally.failed += 1,
                }
            });
        }
        sent = due;
    }
    sleep_until(tokio::time::Instant::now() + CALL_TIMEOUT).await;
    tally.take()
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

fn show(name: &str, mut millis: Vec<f64>) {
    millis.sort_by(f64::total_cmp);
    let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(|part| quantile(&millis, part));
    println!(
        "{name:<28} {:>9}   p50 {p50:>8.2}  p99 {p99:>8.2}  p99.9 {p999:>8.2}  max {max:>8.2} ms",
        millis.len()
    );
}

async fn overload(time: Duration, times: u64) {
    let served = Served::start(|_| {});
    let end = Instant::now() + Duration::from_secs(5);
    let callers = (0..25).map(|_| async {
        let mut count = 0_u64;
        while Instant::now() < end {
            count += u64::from(served.ask().await == Some(200));
        }
        count
    });
    let counts = futures::future::join_all(callers).await;
    let capacity = counts.into_iter().sum::<u64>() as f64 / 5.0;
    println!("capacity, 25 callers in a closed loop: {capacity:.0}/s");

    let rate = capacity * times as f64;
    let tally = send(&served, rate, time).await;
    let goodput = tally.served.len() as f64 / time.as_secs_f64();
    println!("offered for {} s: {rate:.0}/s", time.as_secs());
    println!("served in time: {goodput:.0}/s, {:.1} % of capacity", 100.0 * goodput / capacity);
    let Tally { late, failed, unsent, .. } = tally;
    println!(
        "late {late}, failed {failed}, never sent because all {CONNECTIONS} connections waited {unsent}"
    );
    show("served", tally.served);
    show("refused with 429", tally.refused);

    let start = Instant::now();
    let mut good_in_a_row = 0;
    while good_in_a_row < 20 {
        let asked = Instant::now();
        let good = served.ask().await == Some(200) && asked.elapsed() < Duration::from_millis(20);
        good_in_a_row = if good { good_in_a_row + 1 } else { 0 };
    }
    println!(
        "20 good answers in a row below 20 ms: {:.0} ms after the last of them was due",
        start.elapsed().as_secs_f64() * 1_000.0
    );
}

async fn idle(time: Duration, callers: u64) {
    const RATE: f64 = 200.0;
    let served = Served::start(|_| {});
    // The first ones open connections.
    send(&served, RATE, Duration::from_secs(2)).await;
    let alone = send(&served, RATE, time).await;
    let crowd = Crowd::start(Way { address: served.address, connector: served.connector.clone() }, callers);
    sleep(Duration::from_secs(5)).await;
    let among = send(&served, RATE, time).await;
    drop(crowd);
    println!("{RATE:.0} reviews a second for {} s, {callers} other callers", time.as_secs());
    for (name, tally) in [("alone", &alone), ("among them", &among)] {
        let Tally { late, failed, unsent, .. } = tally;
        println!("{name}: refused {}, late {late}, failed {failed}, unsent {unsent}", tally.refused.len());
    }
    show("alone", alone.served);
    show("among them", among.served);
}

async fn replays(time: Duration, rate: u64, ration: u32) {
    const RATE: f64 = 200.0;
    let served = Served::start(|options| options.limits.handshakes = ration);
    send(&served, RATE, Duration::from_secs(2)).await;
    show("alone", send(&served, RATE, time).await.served);
    let [same, other] = [[127, 0, 0, 1], [127, 0, 0, 9]].map(IpAddr::from);
    let [at_once, later] = [Duration::ZERO, Duration::from_secs(1)];
    for (name, from, stay) in [
        ("another address, gone", other, at_once),
        ("another address, staying", other, later),
        ("the same address, gone", same, at_once),
        ("the same address, staying", same, later),
    ] {
        let flood = Flood::start(served.address, Arc::clone(&served.config), Manner { rate, from, stay });
        sleep(Duration::from_secs(1)).await;
        let newcomers = spawn_local(newcomers(Rc::clone(&served), time));
        let among = send(&served, RATE, time).await;
        let Tally { late, failed, unsent, .. } = among;
        println!("{name}: {:.0} replays a second", flood.rate());
        println!("  refused {}, late {late}, failed {failed}, unsent {unsent}", among.refused.len());
        show("  reviews", among.served);
        let (connected, of) = newcomers.await.expect("newcomers");
        show(&format!("  newcomers, of {of}"), connected);
        drop(flood);
        sleep(Duration::from_secs(2)).await;
    }
}

/// Connects ten times a second from an address that nobody else has; how long it took each, and how many there were.
async fn newcomers(served: Rc<Served>, time: Duration) -> (Vec<f64>, usize) {
    let (start, mut took, mut count) = (Instant::now(), Vec::new(), 0);
    while start.elapsed() < time {
        sleep(Duration::from_millis(100)).await;
        let began = Instant::now();
        count += 1;
        let connected = timeout(CALL_TIMEOUT, served.connect_from(IpAddr::from([127, 0, 0, 3]))).await;
        if let Ok(Some(_)) = connected {
            took.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
    }
    (took, count)
}

/// The way to a server.
#[derive(Clone)]
struct Way {
    address: SocketAddr,
    connector: TlsConnector,
}

/// Callers that hold what they can, each in one of four ways, and come again when they are cut. They have a thread
/// of their own, so that what they cost themselves is not taken for what they cost others.
struct Crowd {
    _stop: oneshot::Sender<()>,
}

impl Crowd {
    fn start(way: Way, callers: u64) -> Self {
        let (stop, stopped) = oneshot::channel();
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            LocalSet::new().block_on(&runtime, async {
                tokio::select! {
                    () = crowd(way, callers) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { _stop: stop }
    }
}

async fn crowd(way: Way, callers: u64) {
    for number in 0..callers {
        let way = way.clone();
        spawn_local(async move {
            loop {
                hold(&way, number % 4).await;
                sleep(Duration::from_millis(500)).await;
            }
        });
        if number % 50 == 0 {
            sleep(Duration::from_millis(10)).await;
        }
    }
    std::future::pending::<()>().await;
}

async fn hold(server: &Way, way: u64) -> Option<()> {
    const DRIP_INTERVAL: Duration = Duration::from_secs(1);
    let mut buffer = [0; 64];
    if way == 0 {
        let mut stream = TcpStream::connect(server.address).await.ok()?;
        stream.write_all(&[22, 3, 1, 2, 0, 1]).await.ok()?;
        return stream.read(&mut buffer).await.ok().map(drop);
    }
    let mut stream = connect(server.address, &server.connector).await?;
    let start: &[u8] = match way {
        1 => b"",
        2 => b"POST /mutate HTTP/1.1\r\nx-slow: ",
        _ => b"POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n",
    };
    stream.write_all(start).await.ok()?;
    stream.flush().await.ok()?;
    if way == 1 {
        return stream.read(&mut buffer).await.ok().map(drop);
    }
    loop {
        sleep(DRIP_INTERVAL).await;
        stream.write_all(b"x").await.ok()?;
        stream.flush().await.ok()?;
    }
}
