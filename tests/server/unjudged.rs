//! Reviews that cannot be judged. An error would let an object pass whose entry fails open, so each of them is refused, with
//! its id.

use serde_json::json;

use crate::client::{head, post, review};
use crate::running::{Running, options, until};
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use memgate_model::snapshot::Snapshot;
use memgate_server::{State, router};
use tempfile::TempDir;
use tower::ServiceExt;

/// The default limit of a body.
const MAX_BODY_BYTES: usize = 20 << 20;

const ESCAPED: &str = "\\u003c";

/// A review of a pod with one more field, which is what a tenant chooses.
fn with(value: &[u8]) -> Vec<u8> {
    let review = String::from_utf8(review("u-1", Some("scout"))).unwrap();
    let (before, after) = review.split_once(r#""metadata":{"#).unwrap();
    [before.as_bytes(), br#""metadata":{"annotations":{"a":"#, value, br"},", after.as_bytes()].concat()
}

fn text(bytes: usize) -> Vec<u8> {
    with(format!("\"{}\"", ESCAPED.repeat(bytes.div_ceil(ESCAPED.len()))).as_bytes())
}

/// Bodies, the code of their status, and what its message says.
fn rows() -> Vec<(&'static str, Vec<u8>, u16, &'static str)> {
    let good = review("u-1", Some("scout"));
    let name =
        |name: &str| String::from_utf8(good.clone()).unwrap().replace(r#""name":"agent""#, name).into_bytes();
    let large = "too large to be judged: the body is larger than 20971520 bytes (memgate)";
    let json = "the body is not an AdmissionReview in JSON: line 1, column";
    vec![
        ("a text too long", text(MAX_BODY_BYTES), 413, large),
        (
            "two objects too long",
            [&text(MAX_BODY_BYTES / 2)[..], &text(MAX_BODY_BYTES / 2)].concat(),
            413,
            large,
        ),
        ("much too long", text(3 * MAX_BODY_BYTES), 413, large),
        ("no UTF-8", with(b"\"\xff\""), 400, "the body is not UTF-8 (memgate)"),
        ("a control character", with(b"\"\x01\""), 400, json),
        ("a number that is none", with(b"NaN"), 400, json),
        ("a trailing comma", with(b"[1,]"), 400, json),
        ("a truncated review", good[..good.len() - 1].to_owned(), 400, json),
        ("more after the review", [&good[..], b"{}"].concat(), 400, json),
        ("half a surrogate in a name", name(r#""name":"\ud800""#), 400, "a string that is not Unicode text"),
        (
            "containers twice",
            name(r#""name":"agent"}],"containers":[{"name":"x""#),
            400,
            "or a field twice (memgate)",
        ),
        (
            "the object twice",
            name(r#""name":"agent"}]}},"object":{"spec":{"containers":[{"name":"x""#),
            400,
            json,
        ),
        ("half a surrogate in a key", name(r#""\udc00":1"#), 400, "a string that is not Unicode text"),
    ]
}

#[tokio::test]
async fn what_cannot_be_judged_is_refused() {
    let server = Running::start(|_| {});
    for (name, body, code, message) in rows() {
        let close = (body.len() > MAX_BODY_BYTES).then_some("close");
        for path in ["/mutate", "/validate?timeout=10s"] {
            let answer = server.connect().await.send_for_answer(&post(path, &body)).await;
            assert_eq!(
                (answer.status, answer.header("connection")),
                (200, close),
                "{name}: {}",
                answer.text()
            );
            let response = answer.review();
            assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(false)), "{name}");
            assert_eq!(response["status"]["code"], code, "{name}: {response}");
            let said = response["status"]["message"].as_str().unwrap();
            assert!(said.contains(message) && said.ends_with("(memgate)"), "{name}: {said}");
            let reason = if code == 413 { "over-limit" } else { "unreadable" };
            assert_eq!(response["auditAnnotations"], json!({"reason": reason, "uid": "u-1"}), "{name}");
            assert!(answer.text().len() < 1024, "{name}");
        }
    }
    let denied = |reason| {
        format!(
            r#"memgate_admission_requests_total{{webhook="mutate",operation="CREATE",verdict="denied",reason="{reason}"}}"#
        )
    };
    assert_eq!(server.metric(&denied("over-limit")).await.as_deref(), Some("3"));
    assert_eq!(server.metric(&denied("unreadable")).await.as_deref(), Some("10"));
    let claimed = server.metric("memgate_admission_bytes_in_flight").await;
    assert_eq!(claimed.as_deref(), Some("0"));
}

/// No decision refuses them: what cannot be read can be deleted.
#[tokio::test]
async fn a_deletion_and_a_subresource_are_not_refused() {
    let server = Running::start(|_| {});
    for (from, to) in [
        (r#""operation":"CREATE""#, r#""operation":"DELETE""#),
        (r#""operation":"CREATE""#, r#""operation":"UPDATE","subResource":"status""#),
    ] {
        let body = String::from_utf8(text(MAX_BODY_BYTES)).unwrap().replacen(from, to, 1);
        let answer = server.connect().await.send_for_answer(&post("/validate", body.as_bytes())).await;
        assert_eq!(answer.status, 413, "{to}: {}", answer.text());
    }
}

/// The same without a `Content-Length`, and without a socket.
#[tokio::test]
async fn a_chunked_body_is_refused_with_its_id() {
    let directory = TempDir::new().unwrap();
    let (options, _) = options(&directory);
    let router = router(&options, State::Fixed(Snapshot::new(memgate_platforms::default_settings())));
    for (name, body, code, _) in rows() {
        let chunks: Vec<_> =
            body.chunks(100_000).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect();
        let body = Body::from_stream(futures::stream::iter(chunks));
        let request = Request::post("/mutate").header("content-type", "application/json").body(body).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let review: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(review["response"]["uid"], "u-1", "{name}");
        assert_eq!(review["response"]["status"]["code"], code, "{name}");
    }
}

/// A tenant can fill the budget of bytes alone, with a few large pods at once. What finds no room is refused then, and clients
/// try again by themselves; an error would admit it where an entry fails open.
#[tokio::test]
async fn what_finds_no_room_is_refused() {
    const MIB: usize = 1 << 20;
    // The budget, what is announced before, and how much is sent.
    for (name, budget, held, bytes) in [
        ("the third beyond 8 MiB", 40, &[10, 10][..], 9 * MIB),
        ("a second of the largest", 40, &[20], 19 * MIB),
        ("a fifth of 8 MiB", 40, &[8, 8, 8, 8], 7 * MIB),
        ("a little more than a small one", 1, &[1], 300 << 10),
        ("more than there is for all", 1, &[], 2 * MIB),
    ] {
        let server = Running::start(|options| options.limits.body_bytes = budget * MIB);
        let mut holders = Vec::new();
        for bytes in held {
            let mut holder = server.connect().await;
            holder.send(&head("/mutate", bytes * MIB - (256 << 10))).await;
            holders.push(holder);
        }
        let claimed = held.iter().map(|bytes| bytes * MIB - (256 << 10)).sum::<usize>().to_string();
        let in_flight = async || server.metric("memgate_admission_bytes_in_flight").await;
        until("they should be announced", async || in_flight().await.as_ref() == Some(&claimed)).await;
        for path in ["/mutate", "/validate?timeout=10s"] {
            let answer = server.connect().await.send_for_answer(&post(path, text(bytes))).await;
            assert_eq!(answer.status, 200, "{name}: {}", answer.text());
            let response = answer.review();
            assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(false)), "{name}");
            let status = &response["status"];
            assert_eq!(status["message"], "too many large reviews at once: try again (memgate)", "{name}");
            assert_eq!((&status["code"], &status["reason"]), (&json!(429), &json!("TooManyRequests")));
            assert_eq!(status["details"]["retryAfterSeconds"], 1, "{name}");
            assert_eq!(response["auditAnnotations"], json!({"reason": "over-limit", "uid": "u-1"}), "{name}");
        }
        // What is no size keeps its answers.
        let deletion = String::from_utf8(text(bytes)).unwrap().replacen("CREATE", "DELETE", 1);
        let answer = server.connect().await.send_for_answer(&post("/mutate", deletion)).await;
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")), "{name}");
        assert_eq!(server.ask(&post("/mutate", review("u-1", None))).await.status, 200, "{name}");
        let shed = "memgate_admission_shed_total{cause=\"bytes\"}";
        assert_eq!(server.metric(shed).await.as_deref(), Some("3"), "{name}");
    }
}

/// Only a review whose id is read can be answered with it.
#[tokio::test]
async fn what_says_no_id_is_an_error() {
    let server = Running::start(|_| {});
    let late =
        |mark: &str| String::from_utf8(text(MAX_BODY_BYTES)).unwrap().replacen(mark, "", 1).into_bytes();
    let long = String::from_utf8(text(MAX_BODY_BYTES)).unwrap().replacen("u-1", &"u".repeat(257), 1);
    for (name, body, status) in [
        ("no id", late(r#""uid":"u-1","#), 413),
        ("no operation", late(r#""operation":"CREATE","#), 413),
        ("an id that is too long", long.into_bytes(), 413),
        ("another version", late("admission.k8s.io/v1"), 413),
        ("blanks", vec![b' '; MAX_BODY_BYTES + 1], 413),
        ("another order", br#"{"request":{"object":"#.to_vec(), 400),
    ] {
        let answer = server.connect().await.send_for_answer(&post("/mutate", &body)).await;
        assert_eq!(answer.status, status, "{name}: {}", answer.text());
        assert_eq!(answer.header("retry-after"), None, "{name}");
    }
}

/// An object of 3 MiB, the most that an apiserver takes, of which it writes each byte as six.
#[tokio::test]
async fn the_largest_object_is_judged() {
    let server = Running::start(|_| {});
    let answer = server.connect().await.send_for_answer(&post("/mutate", text(18 << 20))).await;
    assert_eq!(answer.review()["allowed"], true);
}

/// The id is at the beginning, so the rest need not come.
#[tokio::test]
async fn the_answer_does_not_wait_for_the_rest() {
    let server = Running::start(|_| {});
    let begin = [&head("/mutate", MAX_BODY_BYTES + 1)[..], &text(128 << 10)].concat();
    assert_eq!(server.ask(&begin).await.review()["status"]["code"], 413);
}
