//! Slow callers, and callers that are only quiet.

use std::time::Duration;

use axum::Router;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::client::{head, post, review};
use crate::running::{Running, TIMEOUT, until};

const SHORT_TIMEOUT: Duration = Duration::from_millis(150);

#[tokio::test]
async fn a_handshake_that_does_not_come_is_given_up() {
    let server = Running::start(|options| options.timers.handshake = SHORT_TIMEOUT);
    let mut silent = TcpStream::connect(server.addresses.webhook).await.unwrap();
    let read = timeout(TIMEOUT, silent.read(&mut [0; 64])).await.expect("the server should hang up");
    assert_eq!(read.unwrap_or(0), 0);
    let timed_out = "memgate_tls_handshakes_total{result=\"timeout\"}";
    assert_eq!(server.metric(timed_out).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_head_that_drips_is_cut_from_its_first_byte_on() {
    let server = Running::start(|options| options.timers.head = SHORT_TIMEOUT);
    let mut connection = server.connect().await;
    for byte in head("/mutate", 10) {
        if connection.try_send(&[byte]).await.is_err() {
            break;
        }
        sleep(Duration::from_millis(20)).await;
    }
    connection.closed().await;
    assert_eq!(server.health("/livez").await.status, 200);
}

#[tokio::test]
async fn an_idle_connection_stays_open() {
    let server = Running::start(|options| {
        options.timers.head = SHORT_TIMEOUT;
        options.timers.body = SHORT_TIMEOUT;
    });
    let mut connection = server.connect().await;
    for _ in 0..3 {
        sleep(SHORT_TIMEOUT * 3).await;
        connection.send(&post("/mutate", review("u-1", None))).await;
        assert_eq!(connection.answer().await.status, 200);
    }
}

#[tokio::test]
async fn an_idle_connection_ends_some_time() {
    let server = Running::start(|options| options.timers.idle = SHORT_TIMEOUT);
    let mut used = server.connect().await;
    used.send(&post("/mutate", review("u-1", None))).await;
    assert_eq!(used.answer().await.status, 200);
    let mut unused = server.connect().await;
    used.closed().await;
    unused.closed().await;
}

#[tokio::test]
async fn a_body_that_drips_is_refused() {
    let server = Running::start(|options| options.timers.body = SHORT_TIMEOUT);
    let mut connection = server.connect().await;
    connection.send(&head("/mutate", 1000)).await;
    connection.send(b"{").await;
    let answer = connection.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (408, Some("close")));
    let empty = || async { server.metric("memgate_admission_bytes_in_flight").await.as_deref() == Some("0") };
    until("its room should be free again", empty).await;
}

#[tokio::test]
async fn no_request_outlives_the_time_that_its_caller_gives() {
    let server = Running::start(|_| {});
    let mut connection = server.connect().await;
    connection.send(&head("/mutate?timeout=200ms", 1000)).await;
    let answer = connection.answer().await;
    assert_eq!((answer.status, answer.header("retry-after")), (504, None));
}

/// More than all the buffers between a server and a client that does not read.
const LONG_ANSWER: usize = 8 << 20;

const UNREAD: &str = "memgate_admission_shed_total{cause=\"unread\"}";

/// A server with a long answer to everything, and little time for it.
fn talkative() -> Running {
    let routes = Router::new().fallback(|| async { vec![b'x'; LONG_ANSWER] });
    Running::start_routes_with(routes, |options| options.timers.write = Duration::from_millis(500))
}

#[tokio::test]
async fn an_answer_that_is_not_read_is_given_up() {
    let server = talkative();
    let mut deaf = server.connect().await;
    deaf.send(&post("/mutate", b"{}")).await;
    until("it should be cut off", || async { server.metric(UNREAD).await.as_deref() == Some("1") }).await;
    assert!(deaf.answer_or_end().await.is_none(), "the rest of the answer is gone");
}

#[tokio::test]
async fn a_byte_now_and_then_prolongs_nothing() {
    let server = talkative();
    let mut slow = server.connect().await;
    slow.send(&post("/mutate", b"{}")).await;
    let reading = async {
        while slow.read_some(100_000).await.is_ok_and(|count| count > 0) {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TIMEOUT, reading).await.expect("the server should hang up");
    assert_eq!(server.metric(UNREAD).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn who_reads_gets_all_of_it_and_the_next_one() {
    let server = talkative();
    let mut connection = server.connect().await;
    for _ in 0..3 {
        connection.send(&post("/mutate", b"{}")).await;
        assert_eq!(connection.answer().await.text().len(), LONG_ANSWER);
        sleep(Duration::from_millis(600)).await;
    }
    assert_eq!(server.metric(UNREAD).await.as_deref(), Some("0"));
}
