//! Large reviews: they have threads of their own, a deadline, and a flag that cancels their decision.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use memgate_core::decide::decide;
use memgate_model::decision::Decision;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_server::options::Options;

use crate::client::{Connection, post, review};
use crate::running::{Running, until};

/// The decisions of each test, by the value of the annotation `gate`; an open gate lets them end.
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

/// Decides about objects with an annotation `gate` when the gate of its value is open or the decision is cancelled, and
/// panics about objects with an annotation `panics`.
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
    post("/mutate", review(uid, None))
}

fn start(change: impl FnOnce(&mut Options)) -> Running {
    Running::start(|options| {
        options.decide = waits_at_gate;
        change(options);
    })
}

/// Sends a review that waits at a gate, on a connection of its own.
async fn send(server: &Running, path: &str, gate: &str) -> Connection {
    let mut connection = server.connect().await;
    connection.send(&post(path, large(gate))).await;
    connection
}

/// How many requests are being answered.
async fn in_flight(server: &Running) -> String {
    server.metric("memgate_admission_in_flight").await.unwrap()
}

#[tokio::test]
async fn small_reviews_are_answered_while_large_ones_take_their_time() {
    let server = start(|_| {});
    let mut stuck = Vec::new();
    for _ in 0..6 {
        stuck.push(send(&server, "/mutate", "while-stuck").await);
    }
    let begun = || async { gate("while-stuck").begun > 0 && in_flight(&server).await == "6" };
    until("some should be decided", begun).await;
    for uid in ["u-2", "u-3"] {
        assert_eq!(server.ask(&small(uid)).await.review()["uid"], uid);
    }
    for probe in ["/livez", "/readyz"] {
        assert_eq!(server.health(probe).await.status, 200, "{probe}");
    }
    assert!(gate("while-stuck").begun <= 4, "at most four at once");
    open("while-stuck");
    for connection in &mut stuck {
        assert_eq!(connection.answer().await.review()["uid"], "u-1");
    }
    assert_eq!(gate("while-stuck"), Gate { open: true, begun: 6, ended: 6, cancelled: 0 });
}

/// An error would admit it where its entry fails open.
#[tokio::test]
async fn a_large_review_that_no_thread_takes_is_refused() {
    let server = start(|_| {});
    let mut stuck = Vec::new();
    for _ in 0..4 {
        stuck.push(send(&server, "/mutate?timeout=30s", "no-thread").await);
    }
    until("all threads should be taken", || async { in_flight(&server).await == "4" }).await;
    let ask = async |bytes| {
        let body = with_annotation("gate", "no-thread", bytes);
        server.ask(&post("/mutate?timeout=2s", body)).await
    };
    for bytes in [70_000, 300_000] {
        let answer = ask(bytes).await.review();
        assert_eq!((&answer["uid"], &answer["status"]["code"]), (&"u-1".into(), &429.into()));
    }
    let shed = server.metric("memgate_admission_shed_total{cause=\"queue\"}").await;
    assert_eq!(shed.as_deref(), Some("2"));
    open("no-thread");
    for connection in &mut stuck {
        assert_eq!(connection.answer().await.review()["uid"], "u-1");
    }
}

#[tokio::test]
async fn a_review_past_its_deadline_is_504_and_its_decision_is_cancelled() {
    let server = start(|_| {});
    let mut late = send(&server, "/mutate?timeout=2s", "too-late").await;
    let answer = late.answer().await;
    assert_eq!((answer.status, answer.header("retry-after"), answer.header("connection")), (504, None, None));
    until("its decision should end", || async { gate("too-late").cancelled == 1 }).await;
    let series = r#"memgate_admission_requests_total{webhook="mutate",operation="none",verdict="error",reason="late"}"#;
    assert_eq!(server.metric(series).await.as_deref(), Some("1"));
    late.send(&small("u-2")).await;
    assert_eq!(late.answer().await.review()["uid"], "u-2", "its connection is good for another review");
}

#[tokio::test]
async fn a_caller_that_hangs_up_cancels_the_decision() {
    let server = start(|_| {});
    let begun = send(&server, "/mutate?timeout=30s", "hung-up").await;
    until("it should have begun", || async { gate("hung-up").begun == 1 }).await;
    drop(begun);
    until("its decision should end", || async { gate("hung-up").cancelled == 1 }).await;
    let abandoned = r#"memgate_admission_abandoned_total{webhook="mutate"}"#;
    until("it should be counted", || async { server.metric(abandoned).await.as_deref() == Some("1") }).await;
}

/// Decides without looking at the flag that cancels it.
fn ignores_cancellation(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    waits_at_gate(&Request { cancelled: None, ..request.clone() }, snapshot)
}

/// The bytes of bodies and answers that are in flight.
async fn claimed(server: &Running) -> usize {
    server.metric("memgate_admission_bytes_in_flight").await.unwrap().parse().unwrap()
}

/// Callers that give up must not be able to hold more than the budget of bytes.
#[tokio::test]
async fn a_body_is_claimed_until_its_decision_has_ended() {
    let server = start(|options| options.decide = ignores_cancellation);
    let body = large("claimed").len();
    let caller = send(&server, "/mutate?timeout=30s", "claimed").await;
    until("it should have begun", || async { gate("claimed").begun == 1 }).await;
    drop(caller);
    until("its request should have ended", || async { in_flight(&server).await == "0" }).await;
    assert!(claimed(&server).await >= body, "its decision goes on");
    open("claimed");
    until("nothing should be claimed", || async { claimed(&server).await == 0 }).await;
}

#[tokio::test]
async fn a_panic_about_a_large_review_is_a_500() {
    let server = start(|_| {});
    let mut connection = server.connect().await;
    for _ in 0..3 {
        connection.send(&post("/mutate", with_annotation("panics", "", 70_000))).await;
        let answer = connection.answer().await;
        assert_eq!((answer.status, answer.header("retry-after")), (500, None));
        assert!(!answer.text().contains("asked to panic"));
    }
    open("after-panics");
    connection.send(&post("/mutate", large("after-panics"))).await;
    assert_eq!(connection.answer().await.status, 200);
    assert_eq!(server.metric("memgate_panics_total").await.as_deref(), Some("3"));
}

#[tokio::test]
async fn a_server_that_ends_finishes_what_waits() {
    let mut server = start(|_| {});
    let mut held = Vec::new();
    for _ in 0..6 {
        held.push(send(&server, "/mutate?timeout=30s", "drained").await);
    }
    let begun = || async { gate("drained").begun > 0 && in_flight(&server).await == "6" };
    until("some should be decided", begun).await;
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
