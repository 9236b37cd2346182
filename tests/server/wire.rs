//! What is answered to which request, over TLS and through the router alone.

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use memgate_model::snapshot::Snapshot;
use memgate_server::{State, router};
use tempfile::TempDir;
use tower::ServiceExt;

use crate::client::{Connection, head, post, request, review};
use crate::running::{Running, options};

/// The default limit of a body.
const MAX_BODY_BYTES: usize = 20 << 20;

/// Something sent and what comes back.
struct Row {
    name: &'static str,
    method: &'static str,
    target: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: Vec<u8>,
    status: u16,
    /// What the body says, among others.
    says: &'static str,
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

fn rows() -> Vec<Row> {
    let good = review("u-1", None);
    let row = |name, status, says, method, target, headers, body: &[u8]| Row {
        name,
        method,
        target,
        headers,
        body: body.to_owned(),
        status,
        says,
    };
    let body = |name, says, body: &[u8]| row(name, 400, says, "POST", "/mutate", JSON, body);
    let media =
        |name, status, headers| row(name, status, "", "POST", "/validate", headers, &review("u-1", None));
    let beta = String::from_utf8(good.clone()).unwrap().replace("k8s.io/v1", "k8s.io/v1beta1");
    vec![
        row("a good review", 200, "\"allowed\":true", "POST", "/mutate", JSON, &good),
        row("the other call", 200, "u-1", "POST", "/validate?timeout=10s", JSON, &good),
        row("GET", 405, "POST", "GET", "/mutate", JSON, b""),
        row("PUT", 405, "POST", "PUT", "/validate", JSON, &good),
        row("the method comes before the path", 405, "POST", "GET", "/", JSON, b""),
        row("another path", 404, "/mutate or /validate", "POST", "/", JSON, &good),
        row("a path below", 404, "not found", "POST", "/mutate/", JSON, &good),
        media("no content type", 415, &[]),
        media("plain text", 415, &[("content-type", "text/plain")]),
        media("another charset", 415, &[("content-type", "application/json; charset=latin1")]),
        media("UTF-8 said aloud", 200, &[("content-type", "Application/JSON; charset=\"UTF-8\"")]),
        media("gzip", 415, &[("content-type", "application/json"), ("content-encoding", "gzip")]),
        media("identity", 200, &[("content-type", "application/json"), ("content-encoding", "identity")]),
        row("a timeout without unit", 400, "10s", "POST", "/mutate?timeout=10", JSON, &good),
        row(
            "a body beyond the limit",
            413,
            "20971520",
            "POST",
            "/mutate",
            JSON,
            &vec![b' '; MAX_BODY_BYTES + 1],
        ),
        body("an empty body", "empty", b""),
        body("no JSON", "JSON", b"hello"),
        body("a byte order mark", "JSON", &[b"\xef\xbb\xbf", &good[..]].concat()),
        body("no UTF-8", "UTF-8", b"\xff\xfe"),
        body("another version", "admission.k8s.io/v1", beta.as_bytes()),
        body("null", "", b"null"),
    ]
}

#[tokio::test]
async fn answers_over_tls() {
    let server = Running::start(|_| {});
    for row in rows() {
        let bytes = request(row.method, row.target, row.headers, &row.body);
        let mut connection = server.connect().await;
        // A body that is refused for its length may not get through.
        let _ = connection.try_send(&bytes).await;
        let answer = connection.answer().await;
        assert_eq!(answer.status, row.status, "{}: {}", row.name, answer.text());
        assert!(answer.text().contains(row.says), "{}: {}", row.name, answer.text());
        assert_eq!(answer.header("retry-after"), None, "{}", row.name);
        if row.status == 405 {
            assert_eq!(answer.header("allow"), Some("POST"));
        }
        if row.status == 200 {
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(answer.review()["uid"], "u-1", "{}", row.name);
        }
    }
    assert_eq!(server.health("/livez").await.status, 200);
}

#[tokio::test]
async fn answers_the_same_through_the_router() {
    let directory = TempDir::new().unwrap();
    let (options, _) = options(&directory);
    let router = router(&options, State::Fixed(Snapshot::new(memgate_platforms::default_settings())));
    for row in rows() {
        let mut request = Request::builder().method(row.method).uri(row.target);
        for (name, value) in row.headers {
            request = request.header(*name, *value);
        }
        let response = router.clone().oneshot(request.body(Body::from(row.body)).unwrap()).await.unwrap();
        assert_eq!(response.status(), row.status, "{}", row.name);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains(row.says), "{}", row.name);
    }
}

#[tokio::test]
async fn a_connection_goes_on_after_refusals_and_reviews() {
    let server = Running::start(|_| {});
    let mut connection = server.connect().await;
    for (bytes, status) in [
        (post("/mutate", review("a", None)), 200),
        (post("/else", review("b", None)), 404),
        (post("/validate", b"hello"), 400),
        (post("/validate", review("c", None)), 200),
    ] {
        connection.send(&bytes).await;
        let answer = connection.answer().await;
        assert_eq!((answer.status, answer.header("connection")), (status, None));
    }
}

#[tokio::test]
async fn a_body_at_the_limit_is_read() {
    let server = Running::start(|_| {});
    let mut body = review("u-1", None);
    body.resize(MAX_BODY_BYTES, b' ');
    assert_eq!(server.ask(&post("/mutate", &body)).await.review()["uid"], "u-1");
}

#[tokio::test]
async fn a_length_beyond_the_limit_is_refused_before_the_end_of_the_body() {
    let server = Running::start(|_| {});
    let begin = [&head("/mutate", MAX_BODY_BYTES + 1)[..], &vec![b' '; 128 << 10]].concat();
    let answer = server.ask(&begin).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.header("connection"), Some("close"));
}

#[tokio::test]
async fn a_chunked_body_is_read_and_one_without_end_is_refused() {
    let server = Running::start(|options| options.limits.body = 64 << 10);
    let head = "POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut connection = server.connect().await;
    connection.send(head.as_bytes()).await;
    for chunk in review("u-1", None).chunks(50) {
        let chunk = [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
        connection.send(&chunk).await;
    }
    connection.send(b"0\r\n\r\n").await;
    assert_eq!(connection.answer().await.review()["uid"], "u-1");

    connection.send(head.as_bytes()).await;
    let chunk = [b"1000\r\n", &[b' '; 4096][..], b"\r\n"].concat();
    for _ in 0..64 {
        if connection.try_send(&chunk).await.is_err() {
            break;
        }
    }
    assert_eq!(connection.answer().await.status, 413);
}

#[tokio::test]
async fn wrong_lengths_hurt_no_other_request() {
    let server = Running::start(|_| {});
    let good = review("u-1", None);

    let mut longer = server.connect().await;
    longer.send(&head("/mutate", good.len() + 10)).await;
    longer.send(&good).await;
    longer.finish().await;
    longer.closed().await;

    let mut shorter = server.connect().await;
    shorter.send(&head("/mutate", good.len() - 10)).await;
    shorter.send(&good).await;
    assert_eq!(shorter.answer().await.review()["status"]["code"], 400);
    assert_eq!(shorter.answer().await.status, 400, "the rest is not a request");

    let both = "POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello";
    assert_eq!(server.ask(both.as_bytes()).await.status, 400);
    assert_eq!(server.ask(&post("/mutate", &good)).await.status, 200);
}

#[tokio::test]
async fn says_whether_to_go_on_when_asked() {
    let server = Running::start(|_| {});
    let good = review("u-1", None);
    let ask = |length: usize| {
        let head = String::from_utf8(head("/mutate", length)).unwrap();
        head.replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n").into_bytes()
    };
    let mut connection = server.connect().await;
    connection.send(&ask(good.len())).await;
    assert_eq!(connection.answer().await.status, 100);
    connection.send(&good).await;
    assert_eq!(connection.answer().await.review()["uid"], "u-1");
    connection.send(&ask(MAX_BODY_BYTES + 1)).await;
    assert_eq!(connection.answer().await.status, 100, "its head says which review it is");
}

#[tokio::test]
async fn refuses_a_head_that_is_too_large_and_http_2() {
    let server = Running::start(|_| {});
    let large = "a".repeat(64 << 10);
    let mut connection = server.connect().await;
    let _ = connection.try_send(&request("POST", "/mutate", &[("x", &large)], b"")).await;
    assert_eq!(connection.answer().await.status, 431);
    let mut connection = server.connect().await;
    connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    connection.closed().await;

    let ca = std::fs::read_to_string(&server.ca).unwrap();
    assert!(Connection::open(server.addresses.webhook, &ca, &["h2"]).await.is_err());
    assert!(Connection::open(server.addresses.webhook, &ca, &[]).await.is_ok());
    assert_eq!(server.metric("memgate_tls_handshakes_total{result=\"failed\"}").await.as_deref(), Some("1"));
}
