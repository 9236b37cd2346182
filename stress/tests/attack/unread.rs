//! Callers that send a small review with a large answer, and never read it. The answer waits in the program, in TLS and
//! in the kernel, within bounds of bytes and time.

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::client::{Connection, post, review, trusting};
use crate::running::{Setup, Victim, object, scene};

const CALLERS: usize = 500;

/// Less than the largest patch that there may be, and far more than the buffers of a connection.
const VALUE_BYTES: usize = 600_000;

/// Three quarters of the memory limit that the installation gives.
const BOUND_MIB: u64 = 192;

const CLAIMED: &str = "memgate_admission_bytes_in_flight";
const ANSWERED: &str = "memgate_admission_duration_seconds_count{webhook=\"mutate\"}";
const CUT_OFF: &str = "memgate_admission_shed_total{cause=\"unread\"}";
const REFUSED: &str = "memgate_admission_shed_total{cause=\"bytes\"}";

/// The usual scene with a second agent, whose memory has a collection with a very long name.
fn talkative() -> Value {
    let store = json!({
        "provider": "qdrant", "endpoint": "http://qdrant.data.svc:6333", "collection": "x".repeat(VALUE_BYTES),
    });
    let mut state = scene();
    state["items"].as_array_mut().unwrap().extend([
        object("ArkAgent", "talker", &json!({"memoryRef": {"name": "long"}})),
        object("ArkMemory", "long", &json!({"backend": "vector-store", "vectorStore": store})),
    ]);
    state
}

async fn start(settings: &'static str) -> Victim {
    Victim::start_with(Setup { state: talkative(), settings, ..Setup::default() }).await
}

/// A caller with a very small receive buffer.
async fn deaf(victim: &Victim) -> Connection {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let stream = socket.connect(victim.address()).await.unwrap();
    Connection::over(stream, trusting(&victim.ca(), &["http/1.1"]), "localhost").await.unwrap()
}

/// What waits in the kernel on the side of the program, in MiB; the kernel keeps as much again beside it.
fn socket_mib(victim: &Victim) -> u64 {
    let std::net::SocketAddr::V4(address) = victim.address() else { panic!("IPv4") };
    let own = format!("{:08X}:{:04X}", u32::from_le_bytes(address.ip().octets()), address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let queues = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let queues = queues.filter(|fields| fields.get(1) == Some(&own.as_str()));
    let bytes = queues.map(|fields| {
        let (send, receive) = fields[4].split_once(':').unwrap();
        [send, receive].map(|hex| u64::from_str_radix(hex, 16).unwrap()).iter().sum::<u64>()
    });
    (2 * bytes.sum::<u64>()) >> 20
}

/// Waits until there are answers to so many.
async fn answered(victim: &mut Victim, count: usize) {
    victim
        .until("there should be answers", async |victim| {
            victim.metric(ANSWERED).await >= u64::try_from(count).unwrap()
        })
        .await;
}

/// S20 of stress/ATTACKS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_callers_that_never_read_hold_little_memory() {
    let mut victim = start("timeoutWrite: 20s").await;
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        callers.push(deaf(&victim).await);
    }
    // Each sends a second request, so that it waits as well. They send in pairs, since more at once would be
    // answered with 429, which holds nothing.
    let request = post("/mutate", review("deaf", Some("talker"))).repeat(2);
    let (mut claimed, mut peak) = (0, 0);
    for (number, some) in (1..).zip(callers.chunks_mut(2)) {
        join_all(some.iter_mut().map(|caller| caller.try_send(&request))).await;
        answered(&mut victim, number * 2).await;
        claimed = claimed.max(victim.metric(CLAIMED).await);
        peak = peak.max(victim.peak_mib() + socket_mib(&victim));
    }
    assert!((30 << 20..=40 << 20).contains(&claimed), "{claimed}");
    let made_room = victim.metric(REFUSED).await + victim.metric(CUT_OFF).await;
    assert!(made_room > 0, "there should have been no room for some");
    victim.until("they should be cut off", async |victim| victim.metric(CLAIMED).await == 0).await;
    assert!(victim.metric(CUT_OFF).await >= 30, "{}", victim.metric(CUT_OFF).await);
    println!("at most {peak} MiB, sockets included");
    assert!(peak <= BOUND_MIB, "{peak} MiB");
    victim.is_well().await;
    drop(callers);
}

/// S20 of stress/ATTACKS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_answers_make_room_when_they_are_late() {
    let mut victim = start("timeoutWrite: 3s").await;
    let mut callers = Vec::new();
    let request = post("/mutate", review("deaf", Some("talker")));
    // Until there is no room for one more, or the first has made room.
    while victim.metric(REFUSED).await == 0 && victim.metric(CUT_OFF).await == 0 {
        let mut caller = deaf(&victim).await;
        caller.send(&request).await;
        callers.push(caller);
        answered(&mut victim, callers.len()).await;
        assert!(callers.len() < 200, "more answers than there is room for");
    }
    victim
        .until("a caller that reads should be served", async |victim| {
            victim.ask(&request).await.status == 200
        })
        .await;
    assert!(victim.metric(CUT_OFF).await > 0);
    victim.is_well().await;
    drop(callers);
}
