//! Follows one kind in the cluster for as long as the server runs.
//!
//! A kind whose API group is not served has no objects. Where the group is there, the list itself
//! tells: 404 means that the kind's own CRD is not installed, and the list is asked for again every
//! few seconds. In between, a single object is looked up like any other that a watch has not
//! delivered, so that whoever installs the CRD and uses it at once is served. So no rule for CRDs is
//! needed. When a CRD is removed its objects are deleted one by one, the watch ends, and the list
//! answers 404.
//!
//! While the apiserver cannot be reached what is known stays. A watch that says nothing is given up
//! after a while (`pulse`); whatever fails is tried again after a pause that grows to a minute and
//! is never the same for two kinds or replicas.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio::sync::watch::Receiver;

use crate::model::kind::Kind;
use crate::model::snapshot::{Coverage, KindState};
use crate::server::options::Timers;
use crate::server::ration::Ration;
use crate::server::store::Store;
use crate::server::store::fold::{Change, Raw, UNREADABLE, fold};
use crate::server::store::groups::Groups;
use crate::server::store::pulse::listening;

/// The HTTP status of a kind that the apiserver does not serve.
const NOT_FOUND: u16 = 404;

/// The HTTP status of a resourceVersion that the apiserver no longer knows.
const GONE: u16 = 410;

/// How long until a list is asked for again because a watch could not go on, give or take a fifth: that
/// befalls all replicas at once.
const AFRESH: Duration = Duration::from_secs(1);

/// How long after one failure of a watch the next one is told; those between are counted.
const TELL_AGAIN: Duration = Duration::from_mins(5);

/// Keeps the store up to date with all objects of `kind`; never ends.
pub(in crate::server) async fn follow(
    store: Arc<Store>,
    client: Client,
    kind: &'static Kind,
    mut groups: Receiver<Groups>,
    timers: Arc<Timers>,
) {
    let (silence, pause) = (timers.silent_watch, timers.absent_kind);
    let mut troubles = Troubles { told: None, untold: 0, lines: Ration::new(UNREADABLE) };
    loop {
        until_served(&store, kind, &mut groups).await;
        match follow_until_gone(&store, &client, kind, silence, &mut troubles).await {
            Gone::NotServed => {
                not_installed(&store, kind);
                tokio::time::sleep(spread(pause)).await;
            }
            Gone::Perhaps => tokio::time::sleep(spread(AFRESH)).await,
        }
    }
}

/// Waits for the kind's API group; as long as it is not served, the kind has no objects, and each
/// answer of the apiserver that says so is as good as a sign of life of a watch.
async fn until_served(store: &Store, kind: &'static Kind, groups: &mut Receiver<Groups>) {
    let mut told = false;
    loop {
        let served = groups.borrow_and_update().serve(kind);
        match served {
            Some(true) => return,
            Some(false) if told => store.heard(kind),
            Some(false) => {
                not_installed(store, kind);
                told = true;
            }
            None => {}
        }
        if groups.changed().await.is_err() {
            // Nobody asks any more: the server is about to end.
            std::future::pending::<()>().await;
        }
    }
}

fn not_installed(store: &Store, kind: &'static Kind) {
    tracing::debug!(kind = kind.kind, group = kind.group, "not installed in this cluster");
    store.apply(kind, Change::Replace(KindState::new(Coverage::Watched)));
}

/// Why a watch was given up.
enum Gone {
    /// The apiserver does not serve the kind.
    NotServed,
    /// It said so to a watch, or that the list is too old to go on from; a new list will tell.
    Perhaps,
}

async fn follow_until_gone(
    store: &Arc<Store>,
    client: &Client,
    kind: &'static Kind,
    silence: Duration,
    troubles: &mut Troubles,
) -> Gone {
    let listener = Arc::clone(store);
    let client = listening(client, silence, move || listener.heard(kind));
    let api = Api::<Raw>::all_with(client, &kind);
    let mut events = pin!(watcher(api, watcher::Config::default()));
    let mut backoff = watcher::DefaultBackoff::default();
    let mut pending = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                // A list that is about to start is no sign of health, one that is complete is.
                if !matches!(event, Event::Init) {
                    backoff.reset();
                }
                if let Event::InitDone = event {
                    tracing::info!(kind = kind.kind, group = kind.group, "all objects are read");
                }
                if let Some(change) = fold(kind, &troubles.lines, &mut pending, event) {
                    store.apply(kind, change);
                }
            }
            Err(watcher::Error::InitialListFailed(error)) if has_code(&error, &[NOT_FOUND]) => {
                return Gone::NotServed;
            }
            Err(watcher::Error::WatchStartFailed(error)) if has_code(&error, &[NOT_FOUND, GONE]) => {
                return Gone::Perhaps;
            }
            // What was remembered is too old to go on from: the watcher lists again, and that is all.
            Err(watcher::Error::WatchError(status)) if status.code == GONE => {
                tracing::info!(kind = kind.kind, group = kind.group, "the watch starts over");
                tokio::time::sleep(spread(AFRESH)).await;
            }
            Err(error) => {
                let pause = backoff.next().unwrap_or(Duration::from_secs(30));
                troubles.tell(kind, &error, pause);
                tokio::time::sleep(pause).await;
            }
        }
    }
    Gone::Perhaps
}

/// What was told of a watch that fails, so that a long outage does not fill the log.
#[derive(Debug)]
struct Troubles {
    told: Option<Instant>,
    untold: u32,
    /// The lines about objects that cannot be read.
    lines: Ration,
}

impl Troubles {
    fn tell(&mut self, kind: &Kind, error: &watcher::Error, pause: Duration) {
        if self.told.is_some_and(|told| told.elapsed() < TELL_AGAIN) {
            self.untold += 1;
            tracing::debug!(kind = kind.kind, group = kind.group, %error, ?pause, "the watch failed");
            return;
        }
        let untold = std::mem::take(&mut self.untold);
        self.told = Some(Instant::now());
        tracing::warn!(kind = kind.kind, group = kind.group, %error, ?pause, untold, "the watch failed");
    }
}

fn has_code(error: &kube::Error, codes: &[u16]) -> bool {
    matches!(error, kube::Error::Api(status) if codes.contains(&status.code))
}

/// The duration give or take a fifth, so that replicas and kinds do not all ask at once.
pub(in crate::server) fn spread(duration: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 400;
    let permille = 800 + u32::try_from(random).unwrap_or_default();
    duration * permille / 1000
}

#[cfg(test)]
mod tests;
