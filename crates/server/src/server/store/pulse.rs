//! Signs of life of a watch, read off the connection under it.
//!
//! A watch on which nothing happens looks just like one whose connection died without a word: a
//! firewall forgot it, a machine is gone. An apiserver sends a bookmark about once a minute on most
//! watches, but none of kinds that did not change since it started, and kube's watcher keeps them to
//! itself. So this stands between the watcher and its client: every piece of a watch's answer is a
//! sign of life, and an answer without one for too long ends as if the apiserver had ended it. The
//! watcher then takes up where it was, on another connection; that this one answers is the sign of
//! life, and that it does not is an error. So nothing is listed again, and a quiet kind costs one
//! request a minute.
//!
//! It does not read what it passes on.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures::{Stream, StreamExt, stream};
use kube::Client;
use thiserror::Error;
use tokio::time::{Instant, sleep_until, timeout};

/// How long an apiserver may take to begin an answer. It ends its own requests after 60 s, but a
/// list of a family's kind takes milliseconds.
const HEAD: Duration = Duration::from_secs(30);

/// How long a watch lasts at least: kube's watcher takes up at once what has ended, and a server
/// that ends each watch at once would be asked as fast as it answers.
const SHORTEST: Duration = Duration::from_secs(1);

/// An answer that did not begin.
#[derive(Debug, Error)]
#[error("nothing was answered for {0:?}")]
struct Silent(Duration);

/// A client like `client` that calls `heard` at each sign of life of a watch, and lets no answer
/// pause for longer than `silence`.
pub(super) fn listening<F>(client: &Client, silence: Duration, heard: F) -> Client
where
    F: Fn() + Clone + Send + Sync + 'static,
{
    let namespace = client.default_namespace().to_owned();
    let client = client.clone();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let (client, sign) = (client.clone(), watches.then(|| heard.clone()));
        async move {
            let limit = silence.min(HEAD);
            let answer = timeout(limit, client.send(request)).await.map_err(|_| Silent(limit))??;
            let sign = sign.filter(|_| answer.status().is_success());
            if let Some(heard) = &sign {
                heard();
            }
            Ok::<_, axum::BoxError>(
                answer.map(|body| Body::from_stream(pieces(Body::new(body), silence, sign))),
            )
        }
    });
    Client::new(service, namespace)
}

/// The pieces of an answer until it ends, fails, or pauses for too long; each of them calls `sign`.
/// A list that ends too early is no JSON, and fails for that.
fn pieces<F: Fn()>(
    body: Body,
    silence: Duration,
    sign: Option<F>,
) -> impl Stream<Item = Result<Bytes, axum::BoxError>> {
    let begun = Instant::now();
    stream::unfold(Some((body.into_data_stream(), sign)), move |open| async move {
        let (mut body, sign) = open?;
        match timeout(silence, body.next()).await {
            Ok(Some(Ok(piece))) => {
                if let Some(heard) = &sign {
                    heard();
                }
                Some((Ok(piece), Some((body, sign))))
            }
            Ok(Some(Err(error))) => Some((Err(error.into()), None)),
            Ok(None) => {
                if sign.is_some() {
                    sleep_until(begun + SHORTEST).await;
                }
                None
            }
            Err(_) => None,
        }
    })
}
