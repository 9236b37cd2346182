//! Slow callers, and more callers than there may be connections. Good callers must be answered all the while.

use std::net::SocketAddr;

use futures::future::join_all;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Connection, head, post, review};
use crate::running::Victim;

/// How many connections there may be by default.
const DEFAULT_MAX_CONNECTIONS: u64 = 2048;

/// What callers of the program hold besides its connections: sockets, pipes, its log.
const OTHER_DESCRIPTORS: u64 = 64;

/// A caller that keeps its connections, and asks again after a 429.
struct Apiserver(Vec<Connection>);

impl Apiserver {
    async fn connect(victim: &Victim) -> Self {
        let mut connections = Vec::new();
        for _ in 0..8 {
            connections.push(victim.connect().await);
        }
        let mut apiserver = Self(connections);
        apiserver.ask().await;
        apiserver
    }

    /// One review on each connection.
    async fn ask(&mut self) {
        for connection in &mut self.0 {
            let mut tries = 0;
            loop {
                connection.send(&post("/mutate?timeout=10s", review("good", Some("scout")))).await;
                let answer = connection.answer().await;
                if answer.status == 200 {
                    assert_eq!(answer.review()["uid"], "good");
                    break;
                }
                tries += 1;
                assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
                assert!(tries < 10, "the apiserver gives up after ten times");
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
    }
}

async fn tcp(address: SocketAddr) -> Option<TcpStream> {
    TcpStream::connect(address).await.ok()
}

/// S4 of stress/ATTACKS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_bodies_keep_no_caller_out() {
    let victim = Victim::start(&[]).await;
    let mut apiserver = Apiserver::connect(&victim).await;
    let mut drips = Vec::new();
    for number in 0..1_200 {
        let mut connection = victim.connect().await;
        let _ = connection.try_send(&[&head("/mutate", 100_000)[..], &[b' '; 8_000]].concat()).await;
        drips.push(connection);
        if number % 300 == 0 {
            apiserver.ask().await;
        }
    }
    for _ in 0..5 {
        apiserver.ask().await;
        join_all(drips.iter_mut().map(|drip| drip.try_send(b" "))).await;
    }
    assert!(victim.peak_mib() <= 192, "{} MiB", victim.peak_mib());
    victim.is_well().await;
}

/// S4 of stress/ATTACKS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_heads_and_stopped_handshakes_keep_no_caller_out() {
    let mut victim = Victim::with_settings("{timeoutHandshake: 1s, timeoutHead: 1s}").await;
    let mut apiserver = Apiserver::connect(&victim).await;
    let hello = [22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let (mut heads, mut halves) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        let mut connection = victim.connect().await;
        let _ = connection.try_send(b"POST /mutate HTTP/1.1\r\nx: ").await;
        heads.push(connection);
        let mut half = tcp(victim.address()).await.unwrap();
        half.write_all(&hello).await.unwrap();
        halves.push(half);
    }
    for _ in 0..10 {
        apiserver.ask().await;
        join_all(heads.iter_mut().map(|head| head.try_send(b"x"))).await;
    }
    victim
        .until("all of them should have been cut", async |victim| {
            victim.metric("memgate_connections").await == 8
        })
        .await;
    assert_eq!(victim.metric("memgate_tls_handshakes_total{result=\"timeout\"}").await, 400);
    apiserver.ask().await;
    victim.is_well().await;
}

/// S4 of stress/ATTACKS.md: 192 slow heads and 2,000 bare connections of one address, where 256 may be open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_one_address_closes_only_its_own_connections() {
    let victim = Victim::with_settings("{maxConnections: 256, maxRequests: 128}").await;
    let mut kept = Vec::new();
    for host in [2, 2, 2, 3, 4] {
        kept.push(victim.connect_from(host).await);
    }
    let mut apiserver = Apiserver(kept);
    apiserver.ask().await;
    // The flooding address also sends a review, which is not closed for its other connections.
    let (mut own, body) = (victim.connect_from(5).await, review("good", Some("scout")));
    own.send(&[&head("/mutate?timeout=30s", body.len())[..], &body[..20]].concat()).await;
    let mut held = Vec::new();
    for _ in 0..192 {
        let mut connection = victim.connect_from(5).await;
        let _ = connection.try_send(b"POST /mutate HTTP/1.1\r\nx: ").await;
        held.push(connection);
    }
    let mut silent = Vec::new();
    for number in 0..2_000 {
        silent.push(victim.tcp_from(5).await);
        if number % 200 == 0 {
            apiserver.ask().await;
        }
    }
    // All of the flood is accepted before this one.
    apiserver.0.push(victim.connect_from(6).await);
    apiserver.ask().await;
    own.send(&body[20..]).await;
    assert_eq!(own.answer().await.review()["uid"], "good");
    assert!(victim.metric("memgate_connections").await <= 256);
    assert!(victim.metric("memgate_admission_shed_total{cause=\"connections\"}").await > 1_900);
    victim.is_well().await;
}

/// S4 of stress/ATTACKS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_idle_connections_cost_the_apiserver_none() {
    // However long it takes to connect, none of them ends by itself.
    let victim = Victim::with_settings("timeoutHandshake: 10m").await;
    let mut apiserver = Apiserver::connect(&victim).await;
    let count = idle_connections();
    let mut held = Vec::new();
    let mut shaken = Vec::new();
    for number in 0..count {
        held.push(tcp(victim.address()).await);
        if number % 10 == 0 {
            shaken.push(Connection::open(victim.address(), &victim.ca(), &[]).await);
        }
        if number % 1_000 == 0 {
            apiserver.ask().await;
        }
    }
    apiserver.ask().await;
    let mut newcomer = Apiserver::connect(&victim).await;
    newcomer.ask().await;
    assert!(victim.metric("memgate_connections").await <= DEFAULT_MAX_CONNECTIONS);
    assert!(victim.descriptors() <= DEFAULT_MAX_CONNECTIONS + OTHER_DESCRIPTORS);
    assert!(victim.metric("memgate_admission_shed_total{cause=\"connections\"}").await > 0);
    assert!(victim.peak_mib() <= 192, "{} MiB", victim.peak_mib());
    apiserver.ask().await;
    victim.is_well().await;
}

/// Ten thousand, or as many as this process may have.
fn idle_connections() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let may: usize = line.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX);
    let count = (may.saturating_sub(4_000) / 2).clamp(200, 10_000);
    assert!(count > 2_500 || may < 9_000, "more than are allowed");
    count
}
