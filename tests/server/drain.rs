//! How the server ends.

use std::time::Duration;

use tokio::time::sleep;

use crate::client::{head, post, review};
use crate::running::{Running, until};

#[tokio::test]
async fn serves_on_and_sends_callers_elsewhere() {
    let mut server = Running::start(|_| {});
    let mut idle = server.connect().await;
    idle.send(&post("/mutate", review("u-0", None))).await;
    assert_eq!(idle.answer().await.status, 200);
    let mut busy = server.connect().await;
    let body = review("u-1", None);
    busy.send(&head("/mutate", body.len())).await;
    assert_eq!(server.health("/readyz").await.status, 200);

    server.stop();
    let not_ready = || async { server.health("/readyz").await.status == 503 };
    until("the server should no longer be ready", not_ready).await;
    assert_eq!(server.health("/livez").await.status, 200);

    busy.send(&body).await;
    let answer = busy.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    busy.closed().await;

    let answer = server.ask(&post("/mutate", review("u-2", None))).await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));

    sleep(Duration::from_millis(300)).await;
    assert!(!server.has_ended(), "an idle connection is left");
    idle.send(&post("/mutate", review("u-3", None))).await;
    let answer = idle.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    drop(idle);
    drop(busy);
    server.ended().await;
}

#[tokio::test]
async fn ends_at_once_without_connections() {
    let mut server = Running::start(|_| {});
    server.stop();
    server.ended().await;
}

#[tokio::test]
async fn does_not_wait_longer_than_the_grace_time() {
    let mut server = Running::start(|options| options.timers.drain_grace = Duration::from_millis(200));
    let mut idle = server.connect().await;
    server.stop();
    server.ended().await;
    idle.closed().await;
}
