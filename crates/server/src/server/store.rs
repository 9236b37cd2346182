//! The state of the cluster as the server knows it: one [`Snapshot`] that is replaced as a whole.
//!
//! ```text
//! apiserver ─▶ idle_timeout ─▶ watch ──Event──▶ apply_event ──StoreChange──▶ Store ──Arc<Snapshot>──▶ decide
//!                  discovery ──▲
//! ```
//!
//! `idle_timeout` ends watches whose connection has died, `discovery` says which API groups there are.
//!
//! Readers take the current snapshot and keep it for as long as they like, without a lock. Only the kinds that
//! families use are watched. None of them is a Secret.

pub(super) mod apply_event;
pub(super) mod discovery;
mod idle_timeout;
pub(super) mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::model::family::Family;
use crate::model::kind::Kind;
use crate::model::object::{Coverage, KindState};
use crate::model::settings::Settings;
use crate::model::snapshot::Snapshot;
use crate::server::store::apply_event::StoreChange;

/// After this time without activity a watch is stale: two bookmarks are missing, and another connection did
/// not help.
const STALE_AFTER: Duration = Duration::from_mins(2);

/// The state, and how well it is synced.
#[derive(Debug)]
pub(super) struct Store {
    published: ArcSwap<Snapshot>,
    latest: Mutex<Snapshot>,
    watches: Mutex<BTreeMap<&'static Kind, Watch>>,
    families: Vec<&'static Family>,
    /// Whether there is no cluster to watch.
    fixed: bool,
}

/// How one watch is doing.
#[derive(Debug)]
struct Watch {
    /// Whether all objects were listed once, or the apiserver does not serve the kind.
    synced: bool,
    /// When the apiserver last sent anything; at first, when the store was made.
    last_activity: Instant,
}

impl Store {
    /// A state that never changes.
    pub(super) fn fixed(snapshot: Snapshot) -> Self {
        Self::new(snapshot, true)
    }

    /// A state without any objects yet, for the kinds of the families in `settings`.
    pub(super) fn watching(settings: Settings) -> Self {
        let mut snapshot = Snapshot::default();
        snapshot.settings = settings;
        for kind in snapshot.settings.families.clone().into_iter().flat_map(|family| family.fetched) {
            // Not watched but fetched: such an object is looked up whenever a decision needs it.
            snapshot.set(kind, KindState::new(Coverage::Watched));
        }
        Self::new(snapshot, false)
    }

    fn new(snapshot: Snapshot, synced: bool) -> Self {
        let families = snapshot.settings.families.clone();
        let kinds = families.iter().flat_map(|family| family.watched);
        let last_activity = Instant::now();
        let watches = kinds.map(|kind| (*kind, Watch { synced, last_activity })).collect();
        Self {
            published: ArcSwap::from_pointee(snapshot.clone()),
            latest: Mutex::new(snapshot),
            watches: Mutex::new(watches),
            families,
            fixed: synced,
        }
    }

    /// The current state.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// The kinds that are watched.
    pub(super) fn kinds(&self) -> Vec<&'static Kind> {
        self.watches().keys().copied().collect()
    }

    /// Whether single objects of the kind may be looked up: it is watched, or only ever looked up.
    pub(super) fn can_look_up(&self, kind: &Kind) -> bool {
        self.watches().contains_key(kind) || self.families.iter().any(|family| family.fetched.contains(&kind))
    }

    /// Whether decisions can use the kind: it was listed once, or it is not watched.
    pub(super) fn is_synced(&self, kind: &Kind) -> bool {
        self.watches().get(kind).is_none_or(|watch| watch.synced)
    }

    /// The watched kinds that were not listed yet.
    pub(super) fn not_synced(&self) -> Vec<&'static Kind> {
        self.watches().iter().filter(|(_, watch)| !watch.synced).map(|(kind, _)| *kind).collect()
    }

    /// Applies a change from a watch.
    pub(super) fn apply(&self, kind: &'static Kind, change: StoreChange) {
        let mut latest = lock(&self.latest);
        match change {
            StoreChange::Replace(state) => latest.set(kind, state),
            StoreChange::Insert(object) => latest.kind_mut(kind).insert(object),
            StoreChange::Remove { namespace, name } => latest.kind_mut(kind).remove(&namespace, &name),
        }
        self.published.store(Arc::new(latest.clone()));
        drop(latest);
        self.watches().insert(kind, Watch { synced: true, last_activity: Instant::now() });
    }

    /// Records that the watch of a kind is alive: what the state holds of it is current.
    pub(super) fn record_activity(&self, kind: &Kind) {
        if let Some(watch) = self.watches().get_mut(kind) {
            watch.last_activity = Instant::now();
        }
    }

    /// For each family how many objects there are, and for how long the most silent one of its watches has had
    /// no activity.
    pub(super) fn stats(&self) -> Vec<(&'static Family, usize, Duration)> {
        let snapshot = self.snapshot();
        let family = |family: &&'static Family| {
            let kinds = family.watched;
            let objects = kinds.iter().filter_map(|kind| snapshot.kind(kind)).map(KindState::len).sum();
            let age = kinds.iter().map(|kind| self.age(kind)).max();
            (*family, objects, age.unwrap_or_default())
        };
        self.families.iter().map(family).collect()
    }

    /// The kinds whose watches are stale, and for how long they have had no activity.
    pub(super) fn stale(&self) -> Vec<(&'static Kind, Duration)> {
        let kinds = self.kinds().into_iter().map(|kind| (kind, self.age(kind)));
        kinds.filter(|(_, age)| *age > STALE_AFTER).collect()
    }

    fn age(&self, kind: &Kind) -> Duration {
        let last_activity = self.watches().get(kind).filter(|_| !self.fixed).map(|watch| watch.last_activity);
        last_activity.map_or(Duration::ZERO, |last_activity| last_activity.elapsed())
    }

    fn watches(&self) -> MutexGuard<'_, BTreeMap<&'static Kind, Watch>> {
        lock(&self.watches)
    }
}

/// The lock, also after a panic elsewhere: every change under it is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::Coverage;

    #[test]
    fn is_not_synced_until_every_kind_is() {
        let store = Store::watching(Settings::default());
        let kinds = store.kinds();
        assert_eq!(store.not_synced(), kinds);
        for kind in &kinds {
            assert!(!store.is_synced(kind));
            store.apply(kind, StoreChange::Replace(KindState::new(Coverage::Watched)));
        }
        assert!(store.not_synced().is_empty());
    }

    #[test]
    fn activity_alone_does_not_sync() {
        let store = Store::watching(Settings::default());
        let kind = store.kinds()[0];
        store.record_activity(kind);
        assert!(!store.is_synced(kind));
    }

    #[test]
    fn the_age_of_a_family_is_that_of_its_most_silent_kind() {
        let store = Store::watching(Settings::default());
        let (family, kinds) =
            store.families.iter().map(|family| (*family, family.watched)).next_back().unwrap();
        let age = |store: &Store| store.stats().iter().find(|(other, ..)| *other == family).unwrap().2;
        store.watches().get_mut(kinds[0]).unwrap().last_activity -= STALE_AFTER * 2;
        for kind in &kinds[1..] {
            store.record_activity(kind);
        }
        assert!(age(&store) >= STALE_AFTER * 2);
        assert!(store.stale().iter().any(|(kind, _)| *kind == kinds[0]));
        store.record_activity(kinds[0]);
        assert!(age(&store) < STALE_AFTER);
        assert!(store.stale().is_empty());
    }

    #[test]
    fn a_fixed_state_is_always_synced_and_never_old() {
        let store = Store::fixed(Snapshot::default());
        assert!(store.not_synced().is_empty());
        assert!(store.stats().iter().all(|(_, _, age)| age.is_zero()));
    }
}
