//! Requests that no apiserver sends, and bodies that are too long or lie about their length.

use crate::client::{head, post, request, review};
use crate::running::Victim;

const MAX_BODY_BYTES: usize = 20 << 20;

/// What would be found in an answer that repeats what was sent.
const MARK: &str = "x-marks-the-spot";

/// S1 of stress/ATTACKS.md.
#[tokio::test]
async fn no_rejection_repeats_what_was_sent() {
    let victim = Victim::start(&[]).await;
    let json = &[("content-type", "application/json"), ("x-mark", MARK)];
    let marked = format!(r#"{{"{MARK}":"#);
    let mut connection = victim.connect().await;
    for (name, status, sent) in [
        ("no body", 400, request("POST", "/mutate", json, b"")),
        ("no JSON", 400, request("POST", "/mutate", json, marked.as_bytes())),
        ("no UTF-8", 400, request("POST", "/mutate", json, &[marked.as_bytes(), b"\xff"].concat())),
        ("a type", 415, request("POST", "/validate", &[("content-type", MARK)], b"{}")),
        (
            "a charset",
            415,
            request(
                "POST",
                "/mutate",
                &[("content-type", "application/json; charset=x-marks-the-spot")],
                b"{}",
            ),
        ),
        ("an encoding", 415, request("POST", "/mutate", &[json[0], ("content-encoding", MARK)], b"{}")),
        ("a path", 404, request("POST", &format!("/{MARK}"), json, b"{}")),
        ("a path upwards", 404, request("POST", &format!("/mutate/../{MARK}"), json, b"{}")),
        ("an escaped path", 404, request("POST", "/mut%61te", json, b"{}")),
        ("a timeout", 400, request("POST", &format!("/mutate?timeout={MARK}"), json, b"{}")),
        ("a method", 405, request("DELETE", "/mutate", json, marked.as_bytes())),
        ("a method of its own", 405, request("MARK", "/mutate", json, b"")),
    ] {
        connection.send(&sent).await;
        let answer = connection.answer().await;
        assert_eq!(answer.status, status, "{name}: {}", answer.text());
        assert!(!format!("{answer:?}{}", answer.text()).contains(MARK), "{name}: {answer:?}");
    }
    connection.send(&post("/mutate", review("u-1", None))).await;
    assert_eq!(connection.answer().await.review()["uid"], "u-1", "the connection still serves");
    victim.is_well().await;
}

/// S2 of stress/ATTACKS.md.
#[tokio::test]
async fn connections_without_http_are_closed() {
    let victim = Victim::start(&[]).await;
    for sent in [
        &b"hello\r\n\r\n"[..],
        b"POST /mutate HTTP/9.9\r\n\r\n",
        b"POST  /mutate  HTTP/1.1\r\nhost: a\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nhost : a\r\ncontent-length: 0\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFF\r\n",
        b"POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
    ] {
        let mut connection = victim.connect().await;
        connection.send(sent).await;
        let refused = connection.answer_or_end().await.is_none_or(|answer| answer.status == 400);
        assert!(refused, "{}", String::from_utf8_lossy(sent));
        connection.closed().await;
    }
    victim.is_well().await;
}

/// S2 of stress/ATTACKS.md.
#[tokio::test]
async fn two_lengths_are_never_two_requests() {
    let victim = Victim::start(&[]).await;
    let smuggled = String::from_utf8(post("/mutate", review("smuggled", None))).unwrap();
    for lengths in
        ["content-length: 4\r\ntransfer-encoding: chunked", "transfer-encoding: chunked\r\ncontent-length: 4"]
    {
        let sent = format!(
            "POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n{lengths}\r\n\r\n0\r\n\r\n{smuggled}"
        );
        let mut connection = victim.connect().await;
        connection.send(sent.as_bytes()).await;
        if let Some(answer) = connection.answer_or_end().await {
            assert_eq!(answer.status, 400);
        }
        // A server that believes one of the two, as RFC 9112 allows, must not believe the other.
        let mut rest = 0;
        while let Some(answer) = connection.answer_or_end().await {
            rest += 1;
            assert!(rest < 2, "{}", answer.text());
        }
    }
    victim.is_well().await;
}

/// S2 of stress/ATTACKS.md.
#[tokio::test]
async fn an_endless_body_costs_no_memory() {
    let victim = Victim::start(&[]).await;
    // A first answer takes pages of the program itself.
    victim.is_well().await;
    let announce = |length| [&head("/mutate", length)[..], &vec![b' '; 128 << 10]].concat();
    assert_eq!(victim.ask(&announce(MAX_BODY_BYTES + 1)).await.status, 413);
    let before = victim.peak_mib();
    let start = "POST /mutate HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = [b"40000\r\n", &vec![b' '; 0x40000][..], b"\r\n"].concat();
    let mut connection = victim.connect().await;
    connection.send(start.as_bytes()).await;
    for _ in 0..4 * MAX_BODY_BYTES / 0x40000 {
        if connection.try_send(&chunk).await.is_err() {
            break;
        }
    }
    assert_eq!(connection.answer().await.status, 413);
    for announced in [MAX_BODY_BYTES + 1, 1 << 30, usize::MAX / 2] {
        let answer = victim.ask(&announce(announced)).await;
        assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
    }
    let grown = victim.peak_mib() - before;
    assert!(grown < 32, "{grown} MiB for bodies that were refused");
    victim.is_well().await;
}

/// S2 of stress/ATTACKS.md.
#[tokio::test]
async fn the_limit_of_a_body_can_be_set() {
    let victim = Victim::with_settings("{maxBodyBytes: 4Ki, maxBytesInFlight: 64Ki}").await;
    assert_eq!(victim.ask(&post("/mutate", [b' '; 4097])).await.status, 413);
    let mut body = review("u-1", None);
    body.resize(4096, b' ');
    assert_eq!(victim.ask(&post("/mutate", &body)).await.review()["uid"], "u-1");
}
