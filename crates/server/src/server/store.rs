//! The state of the cluster in the server: one [`Snapshot`], which is replaced as a whole.
//!
//! ```text
//! apiserver ─▶ idle_timeout ─▶ watch ──Event──▶ apply_event ──StoreChange──▶ Store ──Arc<Snapshot>──▶ decide
//!                  discovery ──▲
//! ```
//!
//! `idle_timeout` ends watches whose connection was lost, `discovery` lists the API groups of the cluster, `missing`
//! remembers references to objects that do not exist.
//!
//! Readers take the current snapshot and may keep it, without a lock. Only the kinds that families use are watched. None
//! of them is a Secret.

pub(super) mod apply_event;
pub(super) mod discovery;
pub(super) mod idle_timeout;
pub(super) mod missing;
mod policies;
pub(super) mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::watch as watch_channel;

use crate::server::store::apply_event::StoreChange;
use crate::server::store::missing::{MissingReferences, Wait};
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::object::{Coverage, KindState, Object, Reference};
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::Budget;

/// After this time without activity a watch is stale: two bookmarks are missing, also on a new connection.
const STALE_AFTER: Duration = Duration::from_mins(2);

/// The state, and the status of its watches.
#[derive(Debug)]
pub(super) struct Store {
    published: ArcSwap<Snapshot>,
    latest: Mutex<Snapshot>,
    watches: Mutex<BTreeMap<&'static Kind, Watch>>,
    families: Vec<&'static Family>,
    missing: MissingReferences,
    /// Whether the state comes from files, without watches.
    fixed: bool,
    /// Counts changes of objects that audits judge.
    changes: watch_channel::Sender<u64>,
    /// The digests of policies and exemptions, of which the state keeps only the compiled form.
    specs: Mutex<policies::Specs>,
}

/// The status of one watch.
#[derive(Debug)]
struct Watch {
    /// Whether all objects were listed once, or the apiserver does not serve the kind.
    synced: bool,
    /// When the apiserver last sent anything; at first, when the store was made.
    last_activity: Instant,
}

impl Store {
    /// A state that never changes. Missing objects will never be created, so no pod waits.
    pub(super) fn fixed(snapshot: Snapshot) -> Self {
        Self::new(snapshot, &[], true, Duration::ZERO)
    }

    /// An empty state for the kinds of the families in `settings`, and for policies if objects are `judged_by` them. Pods
    /// wait up to `reference_grace` for missing objects.
    pub(super) fn watching(settings: Settings, reference_grace: Duration, judged_by: bool) -> Self {
        let mut snapshot = Snapshot::new(memgate_core::family::default_settings());
        snapshot.settings = settings;
        for kind in snapshot.settings.families.clone().into_iter().flat_map(|family| family.kinds.fetched) {
            // Such an object is not watched, but looked up when a decision needs it.
            snapshot.set(kind, KindState::new(Coverage::Watched));
        }
        let of_policies = if judged_by { policies::WATCHED.as_slice() } else { &[] };
        Self::new(snapshot, of_policies, false, reference_grace)
    }

    fn new(
        snapshot: Snapshot,
        of_policies: &'static [&'static Kind],
        synced: bool,
        reference_grace: Duration,
    ) -> Self {
        let families = snapshot.settings.families.clone();
        let kinds = families.iter().flat_map(|family| family.kinds.watched).chain(of_policies);
        let last_activity = Instant::now();
        let watches = kinds.map(|kind| (*kind, Watch { synced, last_activity })).collect();
        Self {
            published: ArcSwap::from_pointee(snapshot.clone()),
            latest: Mutex::new(snapshot),
            watches: Mutex::new(watches),
            families,
            missing: MissingReferences::new(reference_grace),
            fixed: synced,
            changes: watch_channel::Sender::new(0),
            specs: Mutex::default(),
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

    /// Whether single objects of the kind may be looked up: it is a watched or a fetched kind.
    pub(super) fn can_look_up(&self, kind: &Kind) -> bool {
        self.watches().contains_key(kind)
            || self.families.iter().any(|family| family.kinds.fetched.contains(&kind))
    }

    /// Whether the kind was listed once, or is not watched.
    pub(super) fn is_synced(&self, kind: &Kind) -> bool {
        self.watches().get(kind).is_none_or(|watch| watch.synced)
    }

    /// Whether all policies and exemptions were listed once.
    pub(super) fn has_policies(&self) -> bool {
        policies::WATCHED
            .into_iter()
            .filter(|kind| policies::is_compiled(kind))
            .all(|kind| self.is_synced(kind))
    }

    /// The watched kinds that were not listed yet.
    pub(super) fn not_synced(&self) -> Vec<&'static Kind> {
        self.watches().iter().filter(|(_, watch)| !watch.synced).map(|(kind, _)| *kind).collect()
    }

    /// Whether all objects of the kind are watched.
    pub(super) fn is_watched(&self, kind: &Kind) -> bool {
        self.watches().contains_key(kind)
    }

    /// Notifies of each change of an audited object, a policy or an exemption, unless the fields that are read stay equal,
    /// as in most writes of a status.
    pub(super) fn changes(&self) -> watch_channel::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Applies a change from a watch.
    pub(super) fn apply(&self, kind: &'static Kind, change: StoreChange) {
        let inserted = match &change {
            StoreChange::Insert(object) => {
                let (namespace, name) = (object.namespace.to_string(), object.name.to_string());
                Some(Reference { kind, namespace, name })
            }
            StoreChange::Replace(_) | StoreChange::Remove { .. } => None,
        };
        let is_removal = matches!(change, StoreChange::Remove { .. });
        let is_news = self.is_news(kind, &change);
        let mut latest = lock(&self.latest);
        match change {
            change if policies::is_compiled(kind) => policies::apply(&mut latest, kind, &change),
            StoreChange::Replace(state) => latest.set(kind, state),
            StoreChange::Insert(object) => latest.kind_mut(kind).insert(object),
            StoreChange::Remove { namespace, name } => latest.kind_mut(kind).remove(&namespace, &name),
        }
        let before = self.published.swap(Arc::new(latest.clone()));
        drop(latest);
        // Dropped without the lock: it may hold the last reference to ten thousand objects.
        drop(before);
        self.watches().insert(kind, Watch { synced: true, last_activity: Instant::now() });
        // Only now: a review that finds the object missing from here on checks the state again.
        if !is_removal {
            self.forget_missing(kind, inserted.as_ref());
        }
        if is_news {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Whether a change differs from the state, in an object that audits judge.
    fn is_news(&self, kind: &'static Kind, change: &StoreChange) -> bool {
        if self.families.iter().any(|family| family.views.transient.contains(&kind)) {
            return false;
        }
        if policies::is_compiled(kind) {
            return policies::is_news(&mut lock(&self.specs), kind, change);
        }
        let snapshot = self.published.load();
        let known = snapshot.kind(kind);
        let is_known = |object: &Object| {
            let before = known.and_then(|state| state.object(&object.namespace, &object.name));
            before.is_some_and(|before| before.tree == object.tree)
        };
        match change {
            StoreChange::Insert(object) => !is_known(object),
            // A kind without a definition is replaced by an empty list every few seconds.
            StoreChange::Replace(state) => {
                state.len() != known.map_or(0, KindState::len) || !state.objects().all(is_known)
            }
            StoreChange::Remove { namespace, name } => {
                known.is_some_and(|state| state.object(namespace, name).is_some())
            }
        }
    }

    /// Forgets the missing references that a change may have brought: one object, or any of a kind.
    fn forget_missing(&self, kind: &'static Kind, inserted: Option<&Reference>) {
        if self.missing.is_empty() {
            return;
        }
        match inserted {
            Some(reference) => self.missing.forget([reference], |_| true),
            None => {
                let snapshot = self.snapshot();
                self.missing.forget_all(|reference| reference.kind == kind && holds(&snapshot, reference));
            }
        }
    }

    /// The missing reference that a pod must wait for, if its grace time is not over.
    pub(super) fn must_hold(&self, missing: &[Reference], now: tokio::time::Instant) -> Option<Wait> {
        let wait = self.missing.must_hold(missing, now)?;
        // A watch may have delivered one of them since it was looked up.
        let snapshot = self.snapshot();
        self.missing.forget(missing, |reference| holds(&snapshot, reference));
        Some(wait)
    }

    /// Forgets missing references that a lookup found: watches deliver only some of the kinds.
    pub(super) fn record_found(&self, answers: &[(Reference, Option<Object>)]) {
        if !self.missing.is_empty() {
            let found = answers.iter().filter(|(_, object)| object.is_some());
            self.missing.forget(found.map(|(reference, _)| reference), |_| true);
        }
    }

    /// The family whose decisions depend on the kind.
    pub(super) fn family_of(&self, kind: &Kind) -> Option<&'static Family> {
        let uses =
            |family: &&&Family| family.kinds.watched.contains(&kind) || family.kinds.fetched.contains(&kind);
        self.families.iter().find(uses).copied()
    }

    /// Records activity of a watch: the state of its kind is current.
    pub(super) fn record_activity(&self, kind: &Kind) {
        if let Some(watch) = self.watches().get_mut(kind) {
            watch.last_activity = Instant::now();
        }
    }

    /// For each family the number of objects, and the longest time without activity among its watches.
    pub(super) fn stats(&self) -> Vec<(&'static Family, usize, Duration)> {
        let snapshot = self.snapshot();
        let family = |family: &&'static Family| {
            let kinds = family.kinds.watched;
            let objects = kinds.iter().filter_map(|kind| snapshot.kind(kind)).map(KindState::len).sum();
            let age = kinds.iter().map(|kind| self.age(kind)).max();
            (*family, objects, age.unwrap_or_default())
        };
        self.families.iter().map(family).collect()
    }

    /// The kinds whose watches are stale, and their time without activity.
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

fn holds(snapshot: &Snapshot, reference: &Reference) -> bool {
    let Reference { kind, namespace, name } = reference;
    StateReader::new(snapshot, &Budget::default()).peek(kind, namespace, name).is_some()
}

/// Locks, also after a panic of another thread: every change under these locks is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::object::Coverage;

    #[test]
    fn is_not_synced_until_every_kind_is() {
        let store = Store::watching(memgate_core::family::default_settings(), Duration::ZERO, true);
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
        let store = Store::watching(memgate_core::family::default_settings(), Duration::ZERO, true);
        let kind = store.kinds()[0];
        store.record_activity(kind);
        assert!(!store.is_synced(kind));
    }

    #[test]
    fn the_age_of_a_family_is_that_of_its_most_silent_kind() {
        let store = Store::watching(memgate_core::family::default_settings(), Duration::ZERO, true);
        let (family, kinds) =
            store.families.iter().map(|family| (*family, family.kinds.watched)).next_back().unwrap();
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

    fn object(kind: &'static Kind, name: &str) -> Object {
        let value = serde_json::json!({"metadata": {"name": name, "namespace": "team"}});
        Object::read(kind, value).unwrap().unwrap()
    }

    #[test]
    fn what_a_watch_or_a_lookup_shows_is_no_longer_missing() {
        let grace = Duration::from_secs(30);
        let store = Store::watching(memgate_core::family::default_settings(), grace, true);
        let kind = store.kinds()[0];
        let reference = Reference { kind, namespace: "team".to_owned(), name: "a".to_owned() };
        let missing = std::slice::from_ref(&reference);
        let start = tokio::time::Instant::now();
        let (later, waits) = (start + grace, |at| store.must_hold(missing, at).is_some());
        let appear: [&dyn Fn(); 3] = [
            &|| store.apply(kind, StoreChange::Insert(object(kind, "a"))),
            &|| {
                let mut listed = KindState::new(Coverage::Watched);
                listed.insert(object(kind, "a"));
                store.apply(kind, StoreChange::Replace(listed));
            },
            &|| store.record_found(&[(reference.clone(), Some(object(kind, "a")))]),
        ];
        for appear in appear {
            assert!(waits(start));
            assert!(!waits(later));
            store.apply(kind, StoreChange::Insert(object(kind, "b")));
            store.record_found(&[(reference.clone(), None)]);
            assert!(!waits(later), "it still does not exist");
            appear();
            let (namespace, name) = ("team".to_owned(), "a".to_owned());
            store.apply(kind, StoreChange::Remove { namespace, name });
            assert!(waits(later), "it existed in between");
            store.missing.forget_all(|_| true);
        }
    }

    #[test]
    fn only_what_was_not_known_is_a_change() {
        let store = Store::watching(memgate_core::family::default_settings(), Duration::ZERO, true);
        let kind = store.families.iter().flat_map(|family| family.audited()).next().unwrap();
        let changes = store.changes();
        let count = |change| {
            store.apply(kind, change);
            *changes.borrow()
        };
        let list = |names: &[&str]| {
            let mut state = KindState::new(Coverage::Watched);
            for name in names {
                state.insert(object(kind, name));
            }
            StoreChange::Replace(state)
        };
        let gone = || StoreChange::Remove { namespace: "team".to_owned(), name: "a".to_owned() };
        assert_eq!([count(list(&[])), count(list(&[]))], [0, 0]);
        assert_eq!([count(list(&["a", "b"])), count(list(&["a", "b"])), count(list(&["a", "c"]))], [1, 1, 2]);
        assert_eq!(
            [count(StoreChange::Insert(object(kind, "a"))), count(StoreChange::Insert(object(kind, "d")))],
            [2, 3]
        );
        assert_eq!([count(gone()), count(gone())], [4, 4]);
    }

    #[test]
    fn what_came_while_it_was_looked_up_is_not_remembered_as_missing() {
        let store = Store::watching(memgate_core::family::default_settings(), Duration::from_secs(30), true);
        let kind = store.kinds()[0];
        store.apply(kind, StoreChange::Insert(object(kind, "a")));
        let reference = Reference { kind, namespace: "team".to_owned(), name: "a".to_owned() };
        assert!(store.must_hold(&[reference], tokio::time::Instant::now()).is_some());
        assert!(store.missing.is_empty());
    }

    #[test]
    fn a_fixed_state_is_always_synced_and_never_old() {
        let store = Store::fixed(Snapshot::new(memgate_core::family::default_settings()));
        assert!(store.not_synced().is_empty());
        assert!(store.stats().iter().all(|(_, _, age)| age.is_zero()));
    }
}
