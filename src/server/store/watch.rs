//! Follows one kind in the cluster for as long as the server runs.
//!
//! A kind whose API group is not served has no objects. Where the group is there, the list itself
//! tells: 404 means that the kind's own CRD is not installed, and the list is asked for again every
//! few seconds. In between, a single object is looked up like any other that a watch has not
//! delivered, so that whoever installs the CRD and uses it at once is served. So no rule for CRDs is
//! needed. When a CRD is removed its objects are deleted one by one, the watch ends, and the list
//! answers 404.
//!
//! While the apiserver cannot be reached what is known stays.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio::sync::watch::Receiver;

use crate::model::kind::Kind;
use crate::model::snapshot::{Coverage, KindState};
use crate::server::store::Store;
use crate::server::store::fold::{Change, Raw, fold};
use crate::server::store::groups::Groups;

/// The HTTP status of a resourceVersion that the apiserver no longer knows.
const GONE: u16 = 410;

/// Keeps the store up to date with all objects of `kind`; never ends.
pub(in crate::server) async fn follow(
    store: Arc<Store>,
    client: Client,
    kind: &'static Kind,
    mut groups: Receiver<Groups>,
    pause: Duration,
) {
    loop {
        until_served(&store, kind, &mut groups).await;
        match follow_until_gone(&store, client.clone(), kind).await {
            Gone::NotServed => {
                not_installed(&store, kind);
                tokio::time::sleep(spread(pause)).await;
            }
            Gone::Perhaps => {}
        }
    }
}

/// Waits for the kind's API group; as long as it is not served, the kind has no objects.
async fn until_served(store: &Store, kind: &'static Kind, groups: &mut Receiver<Groups>) {
    loop {
        let served = groups.borrow_and_update().serve(kind);
        match served {
            Some(true) => return,
            Some(false) => not_installed(store, kind),
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
    /// It said so to a watch; a list will tell.
    Perhaps,
}

async fn follow_until_gone(store: &Store, client: Client, kind: &'static Kind) -> Gone {
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
                if let Some(change) = fold(kind, &mut pending, event) {
                    store.apply(kind, change);
                }
            }
            Err(watcher::Error::InitialListFailed(error)) if is_not_found(&error) => return Gone::NotServed,
            Err(watcher::Error::WatchStartFailed(error)) if is_not_found(&error) => return Gone::Perhaps,
            // What was remembered is too old to go on from: the watcher lists again, and that is all.
            Err(watcher::Error::WatchError(status)) if status.code == GONE => {
                tracing::info!(kind = kind.kind, group = kind.group, "the watch starts over");
            }
            Err(error) => {
                store.note_trouble(kind);
                let pause = backoff.next().unwrap_or(Duration::from_secs(30));
                tracing::warn!(kind = kind.kind, group = kind.group, %error, ?pause, "the watch failed");
                tokio::time::sleep(pause).await;
            }
        }
    }
    Gone::Perhaps
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// The duration give or take a fifth, so that replicas and kinds do not all ask at once.
pub(in crate::server) fn spread(duration: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 400;
    let permille = 800 + u32::try_from(random).unwrap_or_default();
    duration * permille / 1000
}

#[cfg(test)]
mod tests;
