//! Reviews that take long, and what becomes of the others meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use memgate::decide::decide;
use memgate::model::decision::Decision;
use memgate::model::request::Request;
use memgate::model::snapshot::Snapshot;
use memgate::server::options::Options;

use crate::client::{Connection, head, post, review};
use crate::running::{Running, until};

/// The decisions of each test that were begun, ended and given up, by the prefix of their uids; `open` lets
/// them end.
static GATES: Mutex<BTreeMap<String, Gate>> = Mutex::new(BTreeMap::new());
static CHANGED: Condvar = Condvar::new();

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Gate {
    open: bool,
    begun: usize,
    ended: usize,
    cancelled: usize,
}

fn gates() -> MutexGuard<'static, BTreeMap<String, Gate>> {
    GATES.lock().unwrap()
}

/// The gate of a test.
fn gate(name: &str) -> Gate {
    gates().get(name).copied().unwrap_or_default()
}

fn open(name: &str) {
    gates().entry(name.to_owned()).or_default().open = true;
    CHANGED.notify_all();
}

/// Decides about objects with an annotation `gate` only when the gate of its value is open, or when nobody waits
/// any more; with an annotation `panics` never.
fn waits_at_gate(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    let object = request.object.unwrap_or_default();
    assert!(!object.contains(r#""panics":"#), "asked to panic");
    let Some((_, rest)) = object.split_once(r#""gate":""#) else { return decide(request, snapshot) };
    let name = rest.split('"').next().unwrap().to_owned();
    let is_cancelled = || request.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed));
    let mut gates = gates();
    gates.entry(name.clone()).or_default().begun += 1;
    while !gates[&name].open && !is_cancelled() {
        gates = CHANGED.wait_timeout(gates, Duration::from_millis(5)).unwrap().0;
    }
    let gate = gates.get_mut(&name).unwrap();
    gate.ended += 1;
    gate.cancelled += usize::from(is_cancelled());
    drop(gates);
    decide(request, snapshot)
}

fn with_annotation(name: &str, value: &str, bytes: usize) -> Vec<u8> {
    let review = String::from_utf8(review("u-1", None)).unwrap();
    let annotations = format!(r#""annotations":{{"{name}":"{value}","fill":"{}"}},"#, "x".repeat(bytes));
    let (before, after) = review.split_once(r#""metadata":{"#).unwrap();
    format!(r#"{before}"metadata":{{{annotations}{after}"#).into_bytes()
}

/// A review that waits at a gate, too large to be decided where it was read.
fn large(gate: &str) -> Vec<u8> {
    with_annotation("gate", gate, 70_000)
}

fn small(uid: &str) -> Vec<u8> {
    post("/mutate", &review(uid, None))
}

fn start(change: impl FnOnce(&mut Options)) -> Running {
    Running::start(|options| {
        options.decide = waits_at_gate;
        options.workers = 1;
        change(options);
    })
}

/// Sends a review that waits at a gate, on a connection of its own.
async fn send(server: &Running, path: &str, gate: &str) -> Connection {
    let mut connection = server.connect().await;
    connection.send(&post(path, &large(gate))).await;
    connection
}

async fn pool(server: &Running) -> [String; 2] {
    let queue = server.metric("memgate_pool_queue").await.unwrap();
    [queue, server.metric("memgate_pool_busy").await.unwrap()]
}

#[tokio::test]
async fn small_reviews_are_answered_while_large_ones_take_their_time() {
    let server = start(|_| {});
    let mut stuck = Vec::new();
    for _ in 0..3 {
        stuck.push(send(&server, "/mutate", "while-stuck").await);
    }
    let full = || async { pool(&server).await == ["2", "1"] };
    until("one should be decided while two wait", full).await;
    for uid in ["u-2", "u-3"] {
        assert_eq!(server.ask(&small(uid)).await.review()["uid"], uid);
    }
    for probe in ["/livez", "/readyz"] {
        assert_eq!(server.health(probe).await.status, 200, "{probe}");
    }
    assert_eq!(gate("while-stuck"), Gate { begun: 1, ..Gate::default() });
    open("while-stuck");
    for connection in &mut stuck {
        assert_eq!(connection.answer().await.review()["uid"], "u-1");
    }
    assert_eq!(gate("while-stuck"), Gate { open: true, begun: 3, ended: 3, cancelled: 0 });
    until("nothing should be left to do", || async { pool(&server).await == ["0", "0"] }).await;
}

#[tokio::test]
async fn a_review_past_its_deadline_is_504_and_its_decision_is_told() {
    let server = start(|_| {});
    let mut runs = send(&server, "/mutate?timeout=3s", "too-late").await;
    until("it should be begun", || async { gate("too-late").begun == 1 }).await;
    let mut waits = send(&server, "/mutate?timeout=500ms", "never").await;
    for connection in [&mut waits, &mut runs] {
        let answer = connection.answer().await;
        assert_eq!(
            (answer.status, answer.header("retry-after"), answer.header("connection")),
            (504, None, None)
        );
    }
    until("it should have been told", || async { gate("too-late").cancelled == 1 }).await;
    let idle = || async { pool(&server).await == ["0", "0"] };
    until("nothing should be left to do", idle).await;
    assert_eq!(gate("never").begun, 0, "its time was up before a thread was free");
    let late = r#"memgate_admission_requests_total{webhook="mutate",operation="none",verdict="error",reason="late"}"#;
    let counted = [
        late,
        r#"memgate_pool_jobs_total{result="cancelled"}"#,
        r#"memgate_pool_jobs_total{result="dropped"}"#,
    ];
    for (series, count) in counted.into_iter().zip(["2", "1", "1"]) {
        assert_eq!(server.metric(series).await.as_deref(), Some(count), "{series}");
    }
    runs.send(&small("u-2")).await;
    assert_eq!(runs.answer().await.review()["uid"], "u-2", "its connection is good for another review");
}

#[tokio::test]
async fn who_hangs_up_cancels_the_decision() {
    let server = start(|_| {});
    let runs = send(&server, "/mutate?timeout=30s", "hung-up").await;
    until("it should be begun", || async { gate("hung-up").begun == 1 }).await;
    let waits = send(&server, "/mutate?timeout=30s", "hung-up").await;
    until("one should wait", || async { pool(&server).await == ["1", "1"] }).await;
    drop(waits);
    until("none should wait", || async { pool(&server).await == ["0", "1"] }).await;
    drop(runs);
    until("none should be decided", || async { pool(&server).await == ["0", "0"] }).await;
    assert_eq!(gate("hung-up"), Gate { open: false, begun: 1, ended: 1, cancelled: 1 });
    let results =
        ["cancelled", "dropped"].map(|result| format!("memgate_pool_jobs_total{{result=\"{result}\"}}"));
    for result in results {
        assert_eq!(server.metric(&result).await.as_deref(), Some("1"), "{result}");
    }
    let abandoned = r#"memgate_admission_abandoned_total{webhook="mutate"}"#;
    assert_eq!(server.metric(abandoned).await.as_deref(), Some("2"));
}

/// Goes on although nobody waits any more.
fn is_deaf(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    waits_at_gate(&Request { cancelled: None, ..request.clone() }, snapshot)
}

/// The bytes of bodies and answers that are in flight.
async fn claimed(server: &Running) -> usize {
    server.metric("memgate_admission_bytes_in_flight").await.unwrap().parse().unwrap()
}

/// Callers that give up must not be able to hold more than the budget of bytes.
#[tokio::test]
async fn a_body_is_claimed_until_its_decision_has_let_go_of_it() {
    let server = start(|options| options.decide = is_deaf);
    let body = large("claimed").len();
    let runs = send(&server, "/mutate?timeout=30s", "claimed").await;
    until("it should be begun", || async { gate("claimed").begun == 1 }).await;
    drop(runs);
    let alone = || async { server.metric("memgate_admission_in_flight").await.as_deref() == Some("0") };
    until("its request should have ended", alone).await;
    assert!(claimed(&server).await >= body, "its decision goes on");
    let waits = send(&server, "/mutate?timeout=30s", "claimed").await;
    until("one should wait", || async { pool(&server).await == ["1", "1"] }).await;
    assert!(claimed(&server).await >= 2 * body);
    drop(waits);
    until("none should wait", || async { pool(&server).await == ["0", "1"] }).await;
    let claimed_once = || async { (body..2 * body).contains(&claimed(&server).await) };
    until("what waited should be free again, and only that", claimed_once).await;
    open("claimed");
    until("nothing should be claimed", || async { claimed(&server).await == 0 }).await;
}

/// More than the pool can do is refused before its body has come.
#[tokio::test]
async fn what_finds_no_place_in_the_queue_is_refused_without_its_body() {
    let server = start(|_| {});
    let mut held = vec![send(&server, "/mutate?timeout=30s", "full").await];
    until("it should be begun", || async { gate("full").begun == 1 }).await;
    held.push(send(&server, "/mutate?timeout=30s", "full").await);
    until("one should wait", || async { pool(&server).await == ["1", "1"] }).await;
    // The one that waits has waited for longer than a second review of this timeout may.
    let refused = || async {
        let answer = server.ask(&head("/mutate?timeout=500ms", 100_000)).await;
        match (answer.status, answer.header("retry-after")) {
            (429, Some("1")) => true,
            (504, None) => false,
            other => panic!("{other:?}"),
        }
    };
    until("one more should be refused", refused).await;
    let shed = server.metric("memgate_admission_shed_total{cause=\"queue\"}").await;
    assert_eq!(shed.as_deref(), Some("1"));
    assert_eq!(server.ask(&small("u-2")).await.status, 200, "what is small is not");
    open("full");
    for connection in &mut held {
        assert_eq!(connection.answer().await.status, 200);
    }
}

#[tokio::test]
async fn a_panic_in_the_pool_is_an_answer_and_the_thread_lives() {
    let server = start(|_| {});
    let mut connection = server.connect().await;
    for _ in 0..3 {
        connection.send(&post("/mutate", &with_annotation("panics", "", 70_000))).await;
        let answer = connection.answer().await;
        assert_eq!((answer.status, answer.header("retry-after")), (500, None));
        assert!(!answer.text().contains("asked to panic"));
    }
    open("after-panics");
    connection.send(&post("/mutate", &large("after-panics"))).await;
    assert_eq!(connection.answer().await.status, 200);
    assert_eq!(server.metric("memgate_panics_total").await.as_deref(), Some("3"));
    assert_eq!(server.metric("memgate_pool_jobs_total{result=\"failed\"}").await.as_deref(), Some("3"));
}

#[tokio::test]
async fn the_probe_fails_when_the_pool_finishes_nothing() {
    let server = start(|options| options.timers.stall = Duration::from_secs(1));
    assert_eq!(server.health("/livez").await.status, 200);
    let mut stuck = send(&server, "/mutate?timeout=30s", "stalled").await;
    until("it should be begun", || async { gate("stalled").begun == 1 }).await;
    let dead = || async { server.health("/livez").await.status == 500 };
    until("the probe should fail", dead).await;
    assert!(server.health("/livez").await.text().starts_with("no review has been finished for"));
    assert_eq!(server.health("/readyz").await.status, 503);
    open("stalled");
    assert_eq!(stuck.answer().await.status, 200);
    let alive = || async { server.health("/livez").await.status == 200 };
    until("it should be alive again", alive).await;
}

/// What is stuck past its deadline is not seen by callers any more; the probe sees it.
#[tokio::test]
async fn the_probe_fails_when_a_decision_outlives_its_caller() {
    let server = start(|options| {
        options.decide = is_deaf;
        options.timers.stall = Duration::from_secs(1);
    });
    let mut stuck = send(&server, "/mutate?timeout=100ms", "deaf").await;
    assert_eq!(stuck.answer().await.status, 504);
    let dead = || async { server.health("/livez").await.status == 500 };
    until("the probe should fail", dead).await;
    open("deaf");
    let alive = || async { server.health("/livez").await.status == 200 };
    until("it should be alive again", alive).await;
}

#[tokio::test]
async fn a_server_that_ends_finishes_what_waits() {
    let mut server = start(|_| {});
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(send(&server, "/mutate?timeout=30s", "drained").await);
    }
    until("one should be decided while two wait", || async { pool(&server).await == ["2", "1"] }).await;
    server.stop();
    let not_ready = || async { server.health("/readyz").await.status == 503 };
    until("the server should no longer be ready", not_ready).await;
    open("drained");
    for connection in &mut held {
        let answer = connection.answer().await;
        assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
        assert_eq!(answer.review()["uid"], "u-1");
    }
    drop(held);
    server.ended().await;
}
