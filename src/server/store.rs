//! The state of the cluster as the server knows it: one [`Snapshot`] that is replaced as a whole.
//!
//! ```text
//! apiserver ──watch──▶ store::watch ──events──▶ store::fold ──changes──▶ Store ──Arc<Snapshot>──▶ decide
//! ```
//!
//! Readers take the snapshot that is current and keep it for as long as they like; nobody waits for
//! anybody. Only the kinds that families ask for are watched. None of them is a Secret.

pub(super) mod fold;
pub(super) mod groups;
pub(super) mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::family::{asked, watched};
use crate::model::kind::Kind;
use crate::model::settings::{Family, Settings};
use crate::model::snapshot::{Coverage, KindState, Snapshot};
use crate::server::store::fold::Change;

/// After so long without another error a watch counts as well again: its errors come at least
/// every 60 s, from a connection timeout and a pause of 30 s each, and its health makes no event.
const RECOVERED: Duration = Duration::from_secs(90);

/// The state, and how well it is known.
#[derive(Debug)]
pub(super) struct Store {
    published: ArcSwap<Snapshot>,
    latest: Mutex<Snapshot>,
    watches: Mutex<BTreeMap<&'static Kind, Watch>>,
    families: Vec<Family>,
}

/// How one watch is doing.
#[derive(Debug, Default)]
struct Watch {
    /// Whether all objects were read once, or the kind is known not to exist.
    known: bool,
    trouble: Option<Trouble>,
}

#[derive(Debug, Clone, Copy)]
struct Trouble {
    since: Instant,
    last: Instant,
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
        for kind in snapshot.settings.families.clone().into_iter().flat_map(asked) {
            // Nothing is watched: every object is looked up when it is asked for.
            snapshot.set(kind, KindState::new(Coverage::Watched));
        }
        Self::new(snapshot, false)
    }

    fn new(snapshot: Snapshot, known: bool) -> Self {
        let families = snapshot.settings.families.clone();
        let kinds = families.iter().flat_map(|family| watched(*family));
        let watches = kinds.map(|kind| (*kind, Watch { known, trouble: None })).collect();
        Self {
            published: ArcSwap::from_pointee(snapshot.clone()),
            latest: Mutex::new(snapshot),
            watches: Mutex::new(watches),
            families,
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
        self.watches().contains_key(kind) || self.families.iter().any(|family| asked(*family).contains(&kind))
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
        self.watches().insert(kind, Watch { known: true, trouble: None });
    }

    /// Notes that a watch has failed; what is known stays.
    pub(super) fn note_trouble(&self, kind: &'static Kind) {
        let now = Instant::now();
        let mut watches = self.watches();
        let watch = watches.entry(kind).or_default();
        let since = watch.trouble.filter(|trouble| !trouble.over(now)).map_or(now, |trouble| trouble.since);
        watch.trouble = Some(Trouble { since, last: now });
    }

    /// For each family how many objects there are, and how long ago its watches were all well.
    pub(super) fn measure(&self) -> Vec<(Family, usize, Duration)> {
        let snapshot = self.snapshot();
        let now = Instant::now();
        let watches = self.watches();
        let family = |family: &Family| {
            let kinds = watched(*family);
            let objects = kinds.iter().filter_map(|kind| snapshot.kind(kind)).map(KindState::len).sum();
            let troubles = kinds.iter().filter_map(|kind| watches.get(kind)?.trouble);
            let ages = troubles.filter(|trouble| !trouble.over(now)).map(|trouble| now - trouble.since);
            (*family, objects, ages.max().unwrap_or_default())
        };
        self.families.iter().map(family).collect()
    }

    fn watches(&self) -> MutexGuard<'_, BTreeMap<&'static Kind, Watch>> {
        lock(&self.watches)
    }
}

impl Trouble {
    fn over(&self, now: Instant) -> bool {
        now - self.last > RECOVERED
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
    fn trouble_does_not_forget_what_was_known() {
        let store = Store::watching(Settings::default());
        let kind = store.kinds()[0];
        store.note_trouble(kind);
        assert!(store.is_cold(kind));
        store.apply(kind, Change::Replace(KindState::new(Coverage::Watched)));
        store.note_trouble(kind);
        assert!(!store.is_cold(kind));
    }

    #[test]
    fn a_fixed_state_is_never_cold() {
        let store = Store::fixed(Snapshot::default());
        assert!(store.cold().is_empty());
    }
}
