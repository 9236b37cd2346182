//! Requests beyond the limits.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::client::{Connection, head, post, review};
use crate::running::{Running, until};

/// A body that is announced takes its bytes only until it is late. Large bodies leave room for small ones.
#[tokio::test]
async fn announced_bodies_make_room_when_they_do_not_come() {
    let server = Running::start(|options| options.timers.body = Duration::from_secs(3));
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut connection = server.connect().await;
        connection.send(&head("/mutate", 8 << 20)).await;
        held.push(connection);
    }
    let in_flight = async || server.metric("memgate_admission_bytes_in_flight").await;
    until("four bodies should be announced", async || in_flight().await == Some((32 << 20).to_string()))
        .await;
    let begin = [head("/mutate", 8 << 20), vec![b' '; 128 << 10]].concat();
    assert_eq!(server.ask(&begin).await.status, 429);
    assert_eq!(server.ask(&post("/mutate", review("u-1", None))).await.status, 200);
    for connection in &mut held {
        assert_eq!(connection.answer().await.status, 408);
    }
    assert_eq!(server.ask(&post("/mutate", review("u-1", None))).await.status, 200);
}

/// Callers that send slowly take no permits of others.
#[tokio::test]
async fn a_request_counts_when_its_body_is_there() {
    let server = Running::start(|options| options.limits.requests = 1);
    let mut slow = server.connect().await;
    let body = review("u-1", None);
    slow.send(&head("/mutate", body.len())).await;
    let reading = || async { server.metric("memgate_admission_in_flight").await.as_deref() == Some("1") };
    until("its head should have been read", reading).await;
    assert_eq!(server.ask(&post("/mutate", &body)).await.status, 200);
    slow.send(&body).await;
    assert_eq!(slow.answer().await.status, 200);
}

#[tokio::test]
async fn the_longest_idle_connection_is_closed_for_another() {
    let server = Running::start(|options| options.limits.connections = 2);
    let mut silent = server.connect().await;
    let mut used = server.connect().await;
    used.send(&post("/mutate", review("u-1", None))).await;
    assert_eq!(used.answer().await.status, 200);
    let mut newcomer = server.connect().await;
    silent.closed().await;
    for connection in [&mut used, &mut newcomer] {
        connection.send(&post("/mutate", review("u-1", None))).await;
        assert_eq!(connection.answer().await.status, 200);
    }
}

/// A handshake without a token is refused; connections that exist are still served.
#[tokio::test]
async fn handshakes_beyond_the_rate_are_refused() {
    let server = Running::start(|options| options.limits.handshakes = NonZeroU32::MIN);
    let mut connected = server.connect().await;
    let ca = std::fs::read_to_string(&server.ca).unwrap();
    let refused = || async { Connection::open(server.addresses.webhook, &ca, &["http/1.1"]).await.is_err() };
    until("one should be refused", refused).await;
    let rationed = "memgate_tls_handshakes_total{result=\"rationed\"}";
    until("it should be counted", || async { server.metric(rationed).await.as_deref() != Some("0") }).await;
    connected.send(&post("/mutate", review("u-1", None))).await;
    assert_eq!(connected.answer().await.status, 200);
}
