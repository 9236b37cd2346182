//! An idle timeout for watches, on the responses of the apiserver.
//!
//! A watch without events looks like a watch whose connection was lost without notice, for example in a firewall. An
//! apiserver sends a bookmark about once a minute on most watches, but not for kinds that have not changed since it
//! started, and kube's watcher does not pass bookmarks on. This layer is between the watcher and its client: every chunk
//! of a watch's response counts as activity, and a response without activity for too long ends as if the apiserver had
//! ended it. The watcher then resumes on another connection, without a new list: an answer is activity, and no answer is
//! an error. A kind without changes costs one request a minute.
//!
//! The pages of lists have a bound of bytes here too ([`Pages`]): objects of any size stand in them.
//!
//! The chunks are passed on unread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures::{Stream, StreamExt, stream};
use kube::Client;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use crate::store::lock;
use memgate_certs::kube_api::with_timeout;

/// How long an apiserver may take to begin a response. It ends its own requests after 60 s, but a list of a
/// family's kind takes milliseconds.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a watch lasts at least: kube's watcher resumes at once, and a server that ends each watch at once
/// would be asked as fast as it answers.
const MIN_WATCH_DURATION: Duration = Duration::from_secs(1);

/// How many bytes a page of a list may have. Reading it takes about three times as much.
const MOST_PAGE_BYTES: usize = 8 << 20;

/// From how many bytes on only one page of all kinds is read at a time.
const LARGE_PAGE_BYTES: usize = 512 << 10;

/// The turn to read a large page.
static LARGE_PAGE: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(1)));

/// A page of a list has too many bytes.
#[derive(Debug, Error)]
#[error("a page of the list has more than {MOST_PAGE_BYTES} bytes")]
struct PageTooLarge;

/// What is known of the pages of a kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pages {
    too_large: Arc<AtomicBool>,
    turn: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Pages {
    /// Whether a page was too large since this was asked last.
    pub(super) fn were_too_large(&self) -> bool {
        self.too_large.swap(false, Ordering::Relaxed)
    }

    /// Lets others read a large page: this one is not needed any more.
    pub(super) fn done(&self) {
        drop(lock(&self.turn).take());
    }

    /// Counts bytes of a page. Waits for its turn once the page is large.
    async fn count(&self, bytes: usize) -> Result<(), PageTooLarge> {
        if bytes > MOST_PAGE_BYTES {
            self.too_large.store(true, Ordering::Relaxed);
            return Err(PageTooLarge);
        }
        let has_turn = lock(&self.turn).is_some();
        if bytes > LARGE_PAGE_BYTES && !has_turn {
            let turn = Arc::clone(&LARGE_PAGE).acquire_owned().await.ok();
            *lock(&self.turn) = turn;
        }
        Ok(())
    }
}

/// A client like `client` that calls `on_activity` for each chunk of a watch, and ends every response that
/// pauses for longer than `idle_timeout`.
pub(crate) fn with_idle_timeout<F>(
    client: &Client,
    idle_timeout: Duration,
    pages: &Pages,
    on_activity: F,
) -> Client
where
    F: Fn() + Clone + Send + Sync + 'static,
{
    let namespace = client.default_namespace().to_owned();
    let (client, pages) = (client.clone(), pages.clone());
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let (client, on_activity) = (client.clone(), watches.then(|| on_activity.clone()));
        let pages = pages.clone();
        // The page before this request was read.
        pages.done();
        let list = (!watches).then_some(pages);
        async move {
            let limit = idle_timeout.min(RESPONSE_TIMEOUT);
            let answer = with_timeout(limit, client.send(request)).await?;
            let on_activity = on_activity.filter(|_| answer.status().is_success());
            if let Some(on_activity) = &on_activity {
                on_activity();
            }
            Ok::<_, axum::BoxError>(
                answer
                    .map(|body| Body::from_stream(chunks(Body::new(body), idle_timeout, list, on_activity))),
            )
        }
    });
    Client::new(service, namespace)
}

/// The chunks of a response until it ends, fails, or pauses for too long; each of them calls `on_activity`.
/// A list that is cut short like this is not valid JSON, so it fails.
fn chunks<F: Fn()>(
    body: Body,
    idle_timeout: Duration,
    list: Option<Pages>,
    on_activity: Option<F>,
) -> impl Stream<Item = Result<Bytes, axum::BoxError>> {
    let begun = Instant::now();
    stream::unfold(Some((body.into_data_stream(), on_activity, list, 0)), move |open| async move {
        let (mut body, on_activity, list, mut bytes) = open?;
        match timeout(idle_timeout, body.next()).await {
            Ok(Some(Ok(chunk))) => {
                if let Some(on_activity) = &on_activity {
                    on_activity();
                }
                bytes += chunk.len();
                if let Some(Err(error)) = match &list {
                    Some(list) => Some(list.count(bytes).await),
                    None => None,
                } {
                    return Some((Err(error.into()), None));
                }
                Some((Ok(chunk), Some((body, on_activity, list, bytes))))
            }
            Ok(Some(Err(error))) => Some((Err(error.into()), None)),
            Ok(None) => {
                if on_activity.is_some() {
                    sleep_until(begun + MIN_WATCH_DURATION).await;
                }
                None
            }
            Err(_) => None,
        }
    })
}
