//! The state of the cluster as the server knows it: one [`Snapshot`] that is replaced as a whole.
//!
//! ```text
//! apiserver ──watch──▶ store::watch ──events──▶ store::fold ──changes──▶ Store ──Arc<Snapshot>──▶ decide
//! ```
//!
//! `pulse` listens in between the apiserver and each watch, `groups` says which kinds there can be.
//!
//! Readers take the snapshot that is current and keep it for as long as they like; nobody waits for
//! anybody. Only the kinds that families ask for are watched. None of them is a Secret.

pub(super) mod fold;
pub(super) mod groups;
pub(super) mod pulse;
pub(super) mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::model::family::Family;
use crate::model::kind::Kind;
use crate::model::settings::Settings;
use crate::model::snapshot::{Coverage, KindState, Snapshot};
use crate::server::store::fold::Change;

/// From this age on what is known of a kind is called stale: two bookmarks were missed, and another
/// connection did not help.
const STALE: Duration = Duration::from_mins(2);

/// The state, and how well it is known.
#[derive(Debug)]
pub(super) struct Store {
    published: ArcSwap<Snapshot>,
    latest: Mutex<Snapshot>,
    watches: Mutex<BTreeMap<&'static Kind, Watch>>,
    families: Vec<&'static Family>,
    /// Whether nothing is watched.
    fixed: bool,
}

/// How one watch is doing.
#[derive(Debug)]
struct Watch {
    /// Whether all objects were read once, or the kind is known not to exist.
    known: bool,
    /// When it last gave a sign of life; at first, when it was set up.
    heard: Instant,
}

impl Store {
    /// A state that never changes.
    pub(super) fn fixed(snapshot: Snapshot) -> Self {
        Self::new(snapshot, true)
    }

    /// A state of which nothing is known yet, for the kinds of the families in `settings`.
    pub(super) fn watching(settings: Settings) -> Self {
        let mut snapshot = Snapshot::default();
        snapshot.settings = settings;
        for kind in snapshot.settings.families.clone().into_iter().flat_map(|family| family.fetched) {
            // Nothing is watched: every object is looked up when it is asked for.
            snapshot.set(kind, KindState::new(Coverage::Watched));
        }
        Self::new(snapshot, false)
    }

    fn new(snapshot: Snapshot, known: bool) -> Self {
        let families = snapshot.settings.families.clone();
        let kinds = families.iter().flat_map(|family| family.watched);
        let heard = Instant::now();
        let watches = kinds.map(|kind| (*kind, Watch { known, heard })).collect();
        Self {
            published: ArcSwap::from_pointee(snapshot.clone()),
            latest: Mutex::new(snapshot),
            watches: Mutex::new(watches),
            families,
            fixed: known,
        }
    }

    /// The state as it is known now.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// The kinds that the enabled families ask for.
    pub(super) fn kinds(&self) -> Vec<&'static Kind> {
        self.watches().keys().copied().collect()
    }

    /// Whether single objects of the kind may be looked up: it is one of those, or one that is only
    /// looked up.
    pub(super) fn can_look_up(&self, kind: &Kind) -> bool {
        self.watches().contains_key(kind) || self.families.iter().any(|family| family.fetched.contains(&kind))
    }

    /// Whether the kind is watched and nothing is known of it yet.
    pub(super) fn is_cold(&self, kind: &Kind) -> bool {
        self.watches().get(kind).is_some_and(|watch| !watch.known)
    }

    /// The watched kinds of which nothing is known yet.
    pub(super) fn cold(&self) -> Vec<&'static Kind> {
        self.watches().iter().filter(|(_, watch)| !watch.known).map(|(kind, _)| *kind).collect()
    }

    /// Takes in what a watch has told.
    pub(super) fn apply(&self, kind: &'static Kind, change: Change) {
        let mut latest = lock(&self.latest);
        match change {
            Change::Replace(state) => latest.set(kind, state),
            Change::Insert(object) => latest.kind_mut(kind).insert(object),
            Change::Remove { namespace, name } => latest.kind_mut(kind).remove(&namespace, &name),
        }
        self.published.store(Arc::new(latest.clone()));
        drop(latest);
        self.watches().insert(kind, Watch { known: true, heard: Instant::now() });
    }

    /// Notes a sign of life of a watch: what is known of the kind is still true.
    pub(super) fn heard(&self, kind: &Kind) {
        if let Some(watch) = self.watches().get_mut(kind) {
            watch.heard = Instant::now();
        }
    }

    /// For each family how many objects there are, and how long ago the one of its watches that has
    /// been silent for longest gave its last sign of life.
    pub(super) fn measure(&self) -> Vec<(&'static Family, usize, Duration)> {
        let snapshot = self.snapshot();
        let family = |family: &&'static Family| {
            let kinds = family.watched;
            let objects = kinds.iter().filter_map(|kind| snapshot.kind(kind)).map(KindState::len).sum();
            let age = kinds.iter().map(|kind| self.age(kind)).max();
            (*family, objects, age.unwrap_or_default())
        };
        self.families.iter().map(family).collect()
    }

    /// The kinds of which nothing was heard for long, and for how long.
    pub(super) fn stale(&self) -> Vec<(&'static Kind, Duration)> {
        let kinds = self.kinds().into_iter().map(|kind| (kind, self.age(kind)));
        kinds.filter(|(_, age)| *age > STALE).collect()
    }

    fn age(&self, kind: &Kind) -> Duration {
        let heard = self.watches().get(kind).filter(|_| !self.fixed).map(|watch| watch.heard);
        heard.map_or(Duration::ZERO, |heard| heard.elapsed())
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
    use crate::model::snapshot::Coverage;

    #[test]
    fn is_cold_until_every_kind_is_known() {
        let store = Store::watching(Settings::default());
        let kinds = store.kinds();
        assert_eq!(store.cold(), kinds);
        for kind in &kinds {
            assert!(store.is_cold(kind));
            store.apply(kind, Change::Replace(KindState::new(Coverage::Watched)));
        }
        assert!(store.cold().is_empty());
    }

    #[test]
    fn a_sign_of_life_is_no_knowledge() {
        let store = Store::watching(Settings::default());
        let kind = store.kinds()[0];
        store.heard(kind);
        assert!(store.is_cold(kind));
    }

    #[test]
    fn the_age_of_a_family_is_that_of_its_most_silent_kind() {
        let store = Store::watching(Settings::default());
        let (family, kinds) =
            store.families.iter().map(|family| (*family, family.watched)).next_back().unwrap();
        let age = |store: &Store| store.measure().iter().find(|(other, ..)| *other == family).unwrap().2;
        store.watches().get_mut(kinds[0]).unwrap().heard -= STALE * 2;
        for kind in &kinds[1..] {
            store.heard(kind);
        }
        assert!(age(&store) >= STALE * 2);
        assert!(store.stale().iter().any(|(kind, _)| *kind == kinds[0]));
        store.heard(kinds[0]);
        assert!(age(&store) < STALE);
        assert!(store.stale().is_empty());
    }

    #[test]
    fn a_fixed_state_is_never_cold_nor_old() {
        let store = Store::fixed(Snapshot::default());
        assert!(store.cold().is_empty());
        assert!(store.measure().iter().all(|(_, _, age)| age.is_zero()));
    }
}
