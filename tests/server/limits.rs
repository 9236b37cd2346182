//! Requests beyond the limits.

use crate::client::{head, post, review};
use crate::running::{Running, until};

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_and_the_next_one_is_not() {
    let server = Running::start(|options| options.limits.body_bytes = 1 << 20);
    let answer = server.ask(&head("/mutate", 4 << 20)).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    assert_eq!(server.ask(&post("/mutate", &review("u-1", None))).await.status, 200);
    let shed = "memgate_admission_shed_total{cause=\"bytes\"}";
    assert_eq!(server.metric(shed).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn announcing_large_bodies_does_not_keep_small_ones_out() {
    let server = Running::start(|_| {});
    let mut held = Vec::new();
    for _ in 0..10 {
        let mut connection = server.connect().await;
        connection.send(&head("/mutate", 8 << 20)).await;
        held.push(connection);
    }
    let in_flight = "memgate_admission_bytes_in_flight";
    let full = || async { server.metric(in_flight).await.as_deref() == Some("33554432") };
    until("four of 8 MiB should have found room", full).await;
    assert_eq!(server.ask(&post("/mutate", &review("u-1", None))).await.status, 200);
}

#[tokio::test]
async fn one_request_too_many_is_refused() {
    let server = Running::start(|options| options.limits.requests = 1);
    let mut first = server.connect().await;
    let body = review("u-1", None);
    first.send(&head("/mutate", body.len())).await;
    let busy = || async { server.metric("memgate_admission_in_flight").await.as_deref() == Some("1") };
    until("the first request should be in flight", busy).await;

    let mut second = server.connect().await;
    second.send(&post("/mutate", &body)).await;
    let answer = second.answer().await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    assert_eq!(answer.header("connection"), None, "its body was read, so it can try again on the same");

    first.send(&body).await;
    assert_eq!(first.answer().await.status, 200);
    second.send(&post("/mutate", &body)).await;
    assert_eq!(second.answer().await.status, 200);
}

#[tokio::test]
async fn who_only_holds_a_connection_must_go_for_another() {
    let server = Running::start(|options| options.limits.connections = 2);
    let mut useful = server.connect().await;
    useful.send(&post("/mutate", &review("u-1", None))).await;
    assert_eq!(useful.answer().await.status, 200);
    let mut silent = server.connect().await;
    let mut newcomer = server.connect().await;
    silent.closed().await;
    for connection in [&mut useful, &mut newcomer] {
        connection.send(&post("/mutate", &review("u-1", None))).await;
        assert_eq!(connection.answer().await.status, 200);
    }
}
