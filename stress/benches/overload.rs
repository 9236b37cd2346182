//! More reviews than can be decided, and more callers than there are connections: what the others notice.
//!
//! ```text
//! just soak overload [--seconds 60] [--times 5] [--cost 1000]
//! just soak worst    [--seconds 20] [--small 0] [--large 2]
//! ```
//!
//! `overload` measures how many reviews a second a server with one thread decides. Then it sends so many times that number
//! at fixed times, without waiting for answers (an open loop: a time counts from when its request was due). With
//! `--cost` each decision takes so many microseconds. Without it the load needs as much of the machine as the server, so
//! five times as many cannot be sent. The timeout of a call is two seconds, as in the entries for pods.
//!
//! `worst` sends 200 ordinary reviews a second, alone and then beside callers that send, one after the other, the reviews
//! that take the most time for their size: `--small` callers send 60 KB, `--large` callers 3 MB. It prints the slowest
//! answers, and the statuses of `/livez`.
//!
//! Everything stays on loopback. Results: stress/FAULTS.md.

#![allow(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![allow(clippy::print_stdout, reason = "the result")]
#![allow(clippy::cast_precision_loss, reason = "rates and shares")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]

mod common;
#[path = "../../tests/support/https.rs"]
mod https;
#[path = "overload/worst.rs"]
mod worst;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use https::{Caller, Connection, post};
use memgate_certs::tls::CertSource;
use memgate_core::decide::decide;
use memgate_model::decision::Decision;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_server::options::Options;
use memgate_server::{Addresses, Server, State, runtime_builder};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, sleep_until, timeout};

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
        Some("worst") => {
            let seconds = Duration::from_secs(number("--seconds", 20));
            let [small, large] = [("--small", 0), ("--large", 2)].map(|(flag, count)| number(flag, count));
            LocalSet::new().block_on(&runtime, worst::run(seconds, worst::Callers { small, large }));
        }
        // `cargo bench` runs all benchmarks without a command.
        _ => println!("overload: use `overload` or `worst`; see the head of stress/benches/overload.rs"),
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
    caller: Caller,
    health: SocketAddr,
    request: Arc<[u8]>,
    idle: RefCell<Vec<Connection>>,
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
        let ca = std::fs::read_to_string(ca).expect("a CA");
        let caller = Caller::new(address, &ca).expect("a good CA");
        let request =
            post("/mutate?timeout=2s", common::review("arkonis.dev/deployment", 20, 600, false)).into();
        let (idle, open) = (RefCell::default(), Cell::new(0));
        Rc::new(Self { caller, health, request, idle, open })
    }

    /// The status of one review on an idle connection, or on a new one; `None` without an answer.
    async fn ask(&self) -> Option<u16> {
        let idle = self.idle.borrow_mut().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => {
                self.open.set(self.open.get() + 1);
                self.caller.connect().await.ok()?
            }
        };
        let answer = connection.exchange(&self.request).await.ok()?;
        self.idle.borrow_mut().push(connection);
        Some(answer.status)
    }
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
