//! Keeps the objects of one kind in the store up to date for as long as the server runs.
//!
//! A kind whose API group is not served has no objects. If the group is served, a list shows whether the kind is: a 404
//! means that its CRD is not installed, and the list is repeated every few seconds. Until then single objects are looked
//! up, so a CRD can be used right after it was installed. When a CRD is removed, its objects are deleted one by one, the
//! watch ends, and the list answers 404. So CRDs themselves need not be watched.
//!
//! While the apiserver cannot be reached the store keeps what it has. A silent watch is resumed on another
//! connection (`idle_timeout`); a failed one after a backoff of up to a minute, with jitter.
//!
//! The served API groups are read every few seconds for all kinds together. Without that, each kind of a platform that is
//! not installed would cost a failing list. Every authenticated account has this permission (the role system:discovery).
//! If it was taken away, every group counts as served, and the list of a kind shows whether it is.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio::sync::watch::{self, Receiver};
use tokio::task::{spawn_blocking, yield_now};

use crate::logs::LogRateLimiter;
use crate::options::Timers;
use crate::store::Store;
use crate::store::apply_event::{RawObject, StoreChange, UNREADABLE_LOG_RATE, apply_event};
use crate::store::idle_timeout::{Pages, with_idle_timeout};
use memgate_certs::kube_api::{jitter, with_timeout};
use memgate_certs::library_error::explained;
use memgate_model::kind::Kind;
use memgate_model::object::{Coverage, KindState};

/// The HTTP status of a kind that the apiserver does not serve.
const HTTP_NOT_FOUND: u16 = 404;

/// The HTTP status of a resourceVersion that the apiserver no longer knows.
const HTTP_GONE: u16 = 410;

/// The pause, with jitter, before a new list when a watch cannot be resumed: that happens to all replicas at
/// once.
const RELIST_DELAY: Duration = Duration::from_secs(1);

/// The timeout of one list of the API groups; it takes milliseconds.
const GROUPS_TIMEOUT: Duration = Duration::from_secs(10);

/// How many objects of a list are read before other tasks may run: it takes less than half a millisecond.
const OBJECTS_PER_TURN: usize = 50;

/// How many objects a page of a list has; a fifth of it, again and again, if such a page has too many bytes.
const PAGE_SIZE: u32 = 500;

/// Keeps the store up to date with all objects of `kind`; never ends.
pub(crate) async fn follow(
    store: Arc<Store>,
    client: Client,
    kind: &'static Kind,
    mut groups: Receiver<ApiGroups>,
    timers: Arc<Timers>,
) {
    let (idle_timeout, discovery_interval) = (timers.watch_idle, timers.discovery_interval);
    let selector = store.selector_of(kind).map(str::to_owned);
    let mut watched = Watched {
        store: Arc::clone(&store),
        client,
        kind,
        selector,
        idle_timeout,
        page_size: PAGE_SIZE,
        unreadable: LogRateLimiter::new(UNREADABLE_LOG_RATE),
    };
    loop {
        until_served(&store, kind, &mut groups).await;
        match watched.until_it_ends().await {
            WatchEnd::NotServed => {
                not_installed(&store, kind);
                tokio::time::sleep(jitter(discovery_interval)).await;
            }
            WatchEnd::SmallerPages => {}
            WatchEnd::Relist => tokio::time::sleep(jitter(RELIST_DELAY)).await,
        }
    }
}

/// Waits until the API group of the kind is served. Until then the kind has no objects, and each answer of discovery
/// counts as activity.
async fn until_served(store: &Store, kind: &'static Kind, groups: &mut Receiver<ApiGroups>) {
    let mut reported = false;
    loop {
        let served = groups.borrow_and_update().serves(kind);
        match served {
            Some(true) => return,
            Some(false) if reported => store.record_activity(kind),
            Some(false) => {
                not_installed(store, kind);
                reported = true;
            }
            None => {}
        }
        if groups.changed().await.is_err() {
            // Discovery has ended: so will the server.
            std::future::pending::<()>().await;
        }
    }
}

fn not_installed(store: &Store, kind: &'static Kind) {
    tracing::debug!(kind = kind.kind, group = kind.group_in_words(), "not installed in this cluster");
    store.apply(kind, StoreChange::Replace(Box::new(KindState::new(Coverage::Watched))));
}

/// Why a watch ended.
enum WatchEnd {
    /// The apiserver does not serve the kind.
    NotServed,
    /// A page of the list has too many bytes; the next list has smaller ones.
    SmallerPages,
    /// The watch cannot be resumed; a new list shows whether the kind is still served.
    Relist,
}

/// All objects of a kind that have the labels of a selector.
struct Watched {
    store: Arc<Store>,
    client: Client,
    kind: &'static Kind,
    selector: Option<String>,
    idle_timeout: Duration,
    page_size: u32,
    unreadable: LogRateLimiter,
}

impl Watched {
    /// Lists and watches until a new list is needed.
    async fn until_it_ends(&mut self) -> WatchEnd {
        let kind = self.kind;
        let pages = Pages::default();
        let store = Arc::clone(&self.store);
        let note_activity = move || store.record_activity(kind);
        let client = with_idle_timeout(&self.client, self.idle_timeout, &pages, note_activity);
        let api = Api::<RawObject>::all_with(client, &kind);
        let config = watcher::Config { label_selector: self.selector.clone(), ..<_>::default() };
        let page_size = self.page_size;
        let mut events = pin!(watcher(api, config.page_size(page_size)));
        let mut backoff = watcher::DefaultBackoff::default();
        let mut listed = 0;
        while let Some(event) = events.next().await {
            if event.is_err() {
                pages.done();
            }
            match event {
                Ok(event) => {
                    // `Init` only announces a list; it comes before the first answer of the apiserver.
                    if !matches!(event, Event::Init) {
                        backoff.reset();
                    }
                    if let Event::InitApply(_) = event {
                        listed += 1;
                        if listed % OBJECTS_PER_TURN == 0 {
                            yield_now().await;
                        }
                    }
                    apply(&self.store, kind, &self.unreadable, event).await;
                }
                Err(watcher::Error::InitialListFailed(error)) if has_code(&error, &[HTTP_NOT_FOUND]) => {
                    return WatchEnd::NotServed;
                }
                Err(watcher::Error::InitialListFailed(_)) if pages.were_too_large() && page_size > 1 => {
                    self.page_size = page_size.div_ceil(5);
                    return WatchEnd::SmallerPages;
                }
                Err(watcher::Error::WatchStartFailed(error))
                    if has_code(&error, &[HTTP_NOT_FOUND, HTTP_GONE]) =>
                {
                    return WatchEnd::Relist;
                }
                // The resourceVersion has expired. The watcher lists again by itself; without the pause all
                // replicas would list at the same moment.
                Err(watcher::Error::WatchError(status)) if status.code == HTTP_GONE => {
                    tracing::info!(kind = kind.kind, group = kind.group_in_words(), "the watch starts over");
                    tokio::time::sleep(jitter(RELIST_DELAY)).await;
                }
                Err(error) => {
                    let pause = backoff.next().unwrap_or(Duration::from_secs(30));
                    self.note_failure(&error, pause);
                    tokio::time::sleep(pause).await;
                }
            }
        }
        WatchEnd::Relist
    }

    /// Remembers why a request failed. An outage fails for all kinds, so the replica logs it, and not each watch.
    fn note_failure(&self, error: &watcher::Error, pause: Duration) {
        let (kind, group, error) = (self.kind.kind, self.kind.group_in_words(), explained(error));
        let again_in_ms = pause.as_millis();
        tracing::debug!(
            kind,
            group,
            error,
            again_in_ms,
            "the watch failed; the objects that are known count"
        );
        self.store.record_failure(self.kind, error);
    }
}

/// Applies an event to the store.
async fn apply(
    store: &Arc<Store>,
    kind: &'static Kind,
    log_limiter: &LogRateLimiter,
    event: Event<RawObject>,
) {
    if let Event::InitDone = event {
        tracing::info!(kind = kind.kind, group = kind.group_in_words(), "all objects are read");
    }
    match apply_event(kind, log_limiter, event) {
        Some(StoreChange::End) => replace_aside(store, kind).await,
        Some(change) => store.apply(kind, change),
        None => {}
    }
}

/// Replaces the objects of a kind on another thread: comparing and dropping ten thousand objects takes tens of
/// milliseconds, and would delay reviews.
async fn replace_aside(store: &Arc<Store>, kind: &'static Kind) {
    let store = Arc::clone(store);
    let replacing = spawn_blocking(move || store.apply(kind, StoreChange::End));
    match replacing.await {
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down.
        Ok(()) | Err(_) => {}
    }
}

fn has_code(error: &kube::Error, codes: &[u16]) -> bool {
    matches!(error, kube::Error::Api(status) if codes.contains(&status.code))
}

/// The served API groups, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApiGroups {
    /// They were not read yet.
    Unknown,
    /// The list is forbidden; any group may be served.
    Any,
    /// These groups are served.
    Only(BTreeSet<String>),
}

impl ApiGroups {
    /// Whether the group of a kind is served; `None` before the first answer. The core group always is.
    fn serves(&self, kind: &Kind) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::Any => Some(true),
            Self::Only(groups) => Some(kind.group.is_empty() || groups.contains(kind.group)),
        }
    }
}

/// Keeps `groups` up to date; never ends. Its receivers are notified of every answer, also when nothing has
/// changed. While the apiserver cannot be reached the last answer stays.
pub(crate) async fn poll_groups(client: Client, groups: watch::Sender<ApiGroups>, pause: Duration) {
    loop {
        match with_timeout(GROUPS_TIMEOUT, client.list_api_groups()).await {
            Ok(list) => {
                let names = list.groups.into_iter().map(|group| group.name).collect();
                groups.send_replace(ApiGroups::Only(names));
            }
            Err(kube::Error::Api(status)) if status.code == 403 => {
                groups.send_replace(ApiGroups::Any);
            }
            Err(error) => tracing::debug!(error = explained(&error), "the API groups could not be listed"),
        }
        tokio::time::sleep(jitter(pause)).await;
    }
}

#[cfg(test)]
mod tests;
