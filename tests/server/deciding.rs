//! Decisions that panic, lack an object, or come before the state is synced.

use axum::Router;
use axum::routing::post as on_post;
use kube::{Client, Config};
use memgate_core::decide::decide;
use memgate_model::decision::Decision;
use memgate_model::object::Reference;
use memgate_model::reason::Reason;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_server::State;

use crate::client::{post, review};
use crate::running::Running;

fn panics_over_agents(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    assert!(!request.object.is_some_and(|object| object.contains("arkonis.dev")), "asked to panic");
    decide(request, snapshot)
}

#[tokio::test]
async fn a_panic_is_an_answer_and_the_process_lives() {
    let server = Running::start(|options| options.decide = panics_over_agents);
    let mut connection = server.connect().await;
    for _ in 0..3 {
        connection.send(&post("/mutate", review("u-1", Some("a")))).await;
        let answer = connection.answer().await;
        assert_eq!((answer.status, answer.header("retry-after")), (500, None));
        assert!(!answer.text().contains("asked to panic"));
    }
    connection.send(&post("/mutate", review("u-1", None))).await;
    assert_eq!(connection.answer().await.status, 200);
    assert_eq!(server.metric("memgate_panics_total").await.as_deref(), Some("3"));
    assert_eq!(server.metric("memgate_admission_in_flight").await.as_deref(), Some("0"));
    assert_eq!(server.health("/livez").await.status, 200);
}

/// A panic gives back the permits of its review, or the next reviews would get none.
#[tokio::test]
async fn panics_hold_no_permits() {
    let server = Running::start(|options| {
        options.decide = panics_over_agents;
        options.limits.requests = 1;
        options.limits.body_bytes = 2 * review("u-1", Some("a")).len();
    });
    for _ in 0..10 {
        let answer = server.ask(&post("/mutate", review("u-1", Some("a")))).await;
        assert_eq!((answer.status, answer.header("retry-after")), (500, None), "{}", answer.text());
    }
    assert_eq!(server.ask(&post("/mutate", review("u-1", None))).await.status, 200);
    assert_eq!(server.metric("memgate_admission_bytes_in_flight").await.as_deref(), Some("0"));
    let series = r#"memgate_admission_requests_total{webhook="mutate",operation="none",verdict="error",reason="panic"} 10"#;
    let metrics = server.health("/metrics").await.text();
    assert!(metrics.contains(series), "{metrics}");
}

fn open(required: bool) -> Decision {
    let [kind, ..] = memgate_platforms::arkonis::FAMILY.kinds.watched else { panic!("arkonis has kinds") };
    let reference = Reference { kind, namespace: "team".to_owned(), name: "a".to_owned() };
    Decision { unknown: vec![reference], required, ..Decision::pass(Reason::ReferenceUnknown) }
}

#[tokio::test]
async fn a_required_memory_that_is_unknown_is_tried_again() {
    let server = Running::start(|options| options.decide = |_, _| open(true));
    let answer = server.ask(&post("/mutate", review("u-1", None))).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    let server = Running::start(|options| options.decide = |_, _| open(false));
    let answer = server.ask(&post("/mutate", review("u-1", None))).await;
    assert_eq!(answer.review()["allowed"], true);
}

#[tokio::test]
async fn nothing_is_decided_on_a_state_that_is_not_synced() {
    let nowhere = Config::new("http://127.0.0.1:1".parse().unwrap());
    let client = Client::try_from(nowhere).unwrap();
    let server = Running::start_with(
        State::Cluster { client, settings: memgate_platforms::default_settings() },
        |_| {},
    );
    let answer = server.ask(&post("/mutate", review("u-1", Some("a")))).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    let ready = server.health("/readyz").await;
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("arkonis.dev/v1alpha1 ArkMemory"), "{}", ready.text());
    assert_eq!(server.health("/livez").await.status, 200);
    let answer = server.ask(&post("/mutate", review("u-1", None))).await;
    assert_eq!(
        answer.review()["allowed"],
        true,
        "a pod that does not belong to a family is decided without state"
    );
}

#[tokio::test]
async fn answers_a_constant_for_benchmarks() {
    let routes = Router::new().route("/mutate", on_post(async || r#"{"response":{"uid":"constant"}}"#));
    let server = Running::start_routes(routes);
    assert_eq!(server.ask(&post("/mutate", b"hello")).await.review()["uid"], "constant");
}

#[tokio::test]
async fn counts_what_was_decided() {
    let server = Running::start(|_| {});
    assert_eq!(server.ask(&post("/mutate", review("u-1", None))).await.status, 200);
    assert_eq!(server.ask(&post("/validate", b"")).await.status, 400);
    for series in [
        r#"memgate_admission_requests_total{webhook="mutate",operation="CREATE",verdict="allowed",reason="not-ours"} 1"#,
        r#"memgate_admission_requests_total{webhook="validate",operation="none",verdict="error",reason="body-malformed"} 1"#,
        r#"memgate_admission_duration_seconds_bucket{le="5.0",webhook="mutate"} 1"#,
        r#"memgate_store_objects{family="arkonis"} 0"#,
        r#"memgate_build_info{version="0.1.0"} 1"#,
    ] {
        let metrics = server.health("/metrics").await.text();
        assert!(metrics.contains(series), "{series}: {metrics}");
    }
}
