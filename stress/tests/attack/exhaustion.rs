//! What a machine can run out of, and how much is logged of it.

use std::path::PathBuf;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::client::{head, post, review};
use crate::running::{Setup, Victim, object};
use crate::support;

/// R16 of stress/FAULTS.md.
#[tokio::test]
async fn with_256_descriptors_it_serves_and_can_be_probed() {
    let victim = Victim::start_with(Setup { descriptors: 256, ..Setup::default() }).await;
    let mut kept = victim.connect().await;
    kept.send(&post("/mutate", review("u-1", None))).await;
    assert_eq!(kept.answer().await.status, 200);
    let mut held = Vec::new();
    for _ in 0..10 {
        for _ in 0..60 {
            held.push(TcpStream::connect(victim.address()).await);
        }
        assert_eq!(victim.health("/livez").await.status, 200);
        assert_eq!(victim.health("/readyz").await.status, 200);
        // Connections are accepted in their order: all of the others are open or closed once this one is served. So
        // the kept one is never the one of 128 that has been idle the longest.
        assert_eq!(victim.ask(&post("/mutate", review("u-1", None))).await.status, 200);
        kept.send(&post("/mutate", review("u-1", Some("scout")))).await;
        assert!(kept.answer().await.review()["patch"].is_string());
    }
    assert!(victim.descriptors() <= 256);
    assert!(victim.log().lines().count() < 20, "{}", victim.log());
    victim.is_well().await;
}

/// R16 of stress/FAULTS.md.
#[tokio::test]
async fn a_log_that_cannot_be_written_stops_nothing() {
    let setup =
        Setup { log: Some(PathBuf::from("/dev/full")), flags: vec!["--log", "debug"], ..Setup::default() };
    let victim = Victim::start_with(setup).await;
    for _ in 0..20 {
        assert_eq!(victim.ask(&post("/mutate", review("u-1", Some("scout")))).await.status, 200);
        assert_eq!(victim.ask(&post("/mutate", b"hello")).await.status, 400);
    }
    victim.is_well().await;
}

/// R16 of stress/FAULTS.md.
#[tokio::test]
async fn it_keeps_no_file_open_and_writes_none() {
    let victim = Victim::start(&[]).await;
    let before = victim.files();
    assert_eq!(victim.ask(&post("/mutate", review("u-1", Some("scout")))).await.status, 200);
    assert_eq!(victim.files(), before, "what it needs a disk for, it has needed at the start");
    assert_eq!(victim.open_files().into_iter().collect::<Vec<_>>(), ["log"]);
}

/// Sends the same request so often, on a few connections; what it was answered with.
async fn flood(victim: &Victim, request: &[u8], times: usize) -> u16 {
    const CONNECTIONS: usize = 8;
    let one = async || {
        let mut connection = victim.connect().await;
        let mut status = 0;
        for _ in 0..times / CONNECTIONS {
            connection.send(request).await;
            status = connection.answer().await.status;
        }
        status
    };
    let statuses = join_all((0..CONNECTIONS).map(|_| one())).await;
    assert!(statuses.iter().all(|status| *status == statuses[0]), "{statuses:?}");
    statuses[0]
}

/// R16 of stress/FAULTS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_bad_requests_log_nothing() {
    let mut victim = Victim::start(&[]).await;
    victim.until("its log should say that it is ready", async |it| it.log().contains("\"ready\"")).await;
    let before = victim.log().len();
    for (request, status) in [
        (post("/mutate", b"hello"), 400),
        (post("/elsewhere", review("u-1", None)), 404),
        (post("/validate?timeout=never", review("u-1", None)), 400),
        (post("/mutate", review("u-1", None)), 200),
    ] {
        assert_eq!(flood(&victim, &request, 2_500).await, status);
    }
    assert_eq!(victim.log().len(), before, "{}", victim.log());
}

/// R16 of stress/FAULTS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_rejections_logs_a_few_lines() {
    let victim = Victim::start(&[]).await;
    let late = async || {
        for _ in 0..25 {
            let answer = victim.ask(&head("/mutate?timeout=1ms", 1_000)).await;
            assert_eq!((answer.status, answer.header("retry-after")), (504, None));
        }
    };
    let start = std::time::Instant::now();
    join_all((0..8).map(|_| late())).await;
    let seconds = usize::try_from(start.elapsed().as_secs()).unwrap() + 1;
    let lines = victim.lines().iter().filter(|line| line["reason"] == "late").count();
    assert!((1..=20 + seconds).contains(&lines), "{lines} lines in {seconds} s");
}

/// R16 of stress/FAULTS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_decisions_logs_at_a_bounded_rate() {
    let victim = Victim::start(&[]).await;
    let long = String::from_utf8(review("u-1", Some("scout"))).unwrap();
    let long = long.replace(r#""namespace":"team""#, &format!(r#""namespace":"{}""#, "n".repeat(1_000)));
    let start = std::time::Instant::now();
    assert_eq!(flood(&victim, &post("/mutate", long.as_bytes()), 12_000).await, 200);
    let seconds = usize::try_from(start.elapsed().as_secs()).unwrap() + 1;
    let lines = victim.lines().into_iter().filter(|line| line["message"] == "decided").count();
    assert!((1..=200 + 10 * seconds).contains(&lines), "{lines} lines in {seconds} s");
    assert!(victim.log().len() <= (lines + 10) * 1_024, "{} bytes in {lines} lines", victim.log().len());
}

/// A review of a memory that is refused, or only warned about.
fn memory(namespace: &str, backend: &str) -> Vec<u8> {
    let spec = json!({"backend": backend, "redis": {"secretRef": {"name": "r"}}});
    let review = support::review::review(namespace, &object("ArkMemory", "notes", &spec));
    post("/validate", review.to_string().as_bytes())
}

/// R16 of stress/FAULTS.md: 7,000 denials, then as many warnings, of one namespace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_one_namespace_hides_no_line_of_another() {
    let mut victim = Victim::start(&[]).await;
    for (backend, verdict) in [("none", "denied"), ("in-context", "allowed")] {
        let lines_of = |namespace: &str| {
            let lines = victim.lines().into_iter();
            lines.filter(|line| line["namespace"] == namespace && line["verdict"] == verdict).count()
        };
        let start = std::time::Instant::now();
        assert_eq!(flood(&victim, &memory("flood", backend), 7_000).await, 200);
        let seconds = usize::try_from(start.elapsed().as_secs()).unwrap() + 1;
        for _ in 0..100 {
            assert_eq!(victim.ask(&memory("quiet", backend)).await.status, 200);
        }
        assert_eq!(lines_of("quiet"), 100, "{verdict}");
        assert!((200..=200 + 10 * seconds).contains(&lines_of("flood")), "{} {verdict}", lines_of("flood"));
    }
    // A line may be written a moment after the answer.
    let all_told = async |victim: &Victim| {
        let logged = victim.lines().into_iter().filter(|line| line["message"] == "decided").count();
        let left_out = victim.metric("memgate_decisions_not_logged_total").await;
        left_out + u64::try_from(logged).unwrap() == 14_200
    };
    victim.until("each decision should be logged or counted", all_told).await;
}

/// R16 of stress/FAULTS.md: 12,000 denials in forty namespaces, by one user and by a user of each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_forty_namespaces_hides_no_line_of_another() {
    let as_user = |request: &[u8], user: &str| {
        let review =
            String::from_utf8(request.split(|byte| *byte == b'\n').next_back().unwrap().to_vec()).unwrap();
        let mut review: Value = serde_json::from_str(&review).unwrap();
        review["request"]["userInfo"] = json!({"username": user});
        post("/validate", review.to_string().as_bytes())
    };
    for of_each in [false, true] {
        let victim = Victim::start(&[]).await;
        let floods = (0..40).map(|number| {
            let user = if of_each { format!("mallory-{number}") } else { "mallory".to_owned() };
            as_user(&memory(&format!("flood-{number}"), "none"), &user)
        });
        let floods: Vec<_> = floods.collect();
        for request in &floods {
            assert_eq!(flood(&victim, request, 300).await, 200);
        }
        let quiet = as_user(&memory("quiet", "none"), "ann");
        for _ in 0..30 {
            assert_eq!(victim.ask(&quiet).await.status, 200);
        }
        let lines = victim.lines();
        assert_eq!(lines.iter().filter(|line| line["namespace"] == "quiet").count(), 30, "{of_each}");
        let flooded = lines.iter().filter(|line| line["message"] == "decided").count() - 30;
        assert!(flooded < 12_000, "{flooded}");
    }
}

/// A pod of a controller has no name yet.
#[tokio::test]
async fn the_line_about_a_decision_names_the_controller_of_a_pod() {
    let victim = Victim::start(&[]).await;
    let pod = String::from_utf8(review("u-1", Some("scout"))).unwrap();
    let owner = r#""ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u","controller":true}]"#;
    let pod = pod.replace(r#""name":"p","object""#, r#""object""#);
    let pod = pod.replace(r#""name":"p","labels""#, &format!(r#""generateName":"p\n-",{owner},"labels""#));
    assert_eq!(victim.ask(&post("/mutate", pod.as_bytes())).await.status, 200);
    let line = victim.lines().into_iter().find(|line| line["message"] == "decided").unwrap();
    assert_eq!((&line["name"], &line["owner"]), (&Value::Null, &json!("ReplicaSet/r")));
    assert!(!line["generateName"].as_str().unwrap().contains('\n'), "{line}");
}

/// The one line about a decision says from where it was asked.
#[tokio::test]
async fn the_line_about_a_decision_names_the_peer() {
    let victim = Victim::start(&[]).await;
    for host in [2, 3] {
        let mut connection = victim.connect_from(host).await;
        let asked = connection.send_for_answer(&post("/mutate", review("u-1", Some("scout")))).await;
        assert_eq!(asked.status, 200);
    }
    let decided = victim.lines().into_iter().filter(|line| line["message"] == "decided");
    let peers: Vec<_> = decided.map(|line| line["peer"].clone()).collect();
    assert_eq!(peers, ["127.0.0.2", "127.0.0.3"]);
}
