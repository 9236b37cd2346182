//! The state of the cluster in the server: one [`Snapshot`], which is replaced as a whole.
//!
//! ```text
//! apiserver ─▶ idle_timeout ─▶ watch ──Event──▶ apply_event ──StoreChange──▶ Store ──Arc<Snapshot>──▶ decide
//! ```
//!
//! `watch` also lists the API groups of the cluster, `idle_timeout` ends watches whose connection was lost, `missing`
//! remembers references to objects that do not exist.
//!
//! Readers take the current snapshot and may keep it, without a lock. Only the kinds that families use are watched. None
//! of them is a Secret.

pub(super) mod apply_event;
mod holdings;
pub(super) mod idle_timeout;
pub(super) mod missing;
mod policies;
pub(super) mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::logs::{LogRate, LogRateLimiter};
use crate::metrics::policies::Found;
use crate::store::apply_event::StoreChange;
use crate::store::holdings::{Holdings, Place};
use crate::store::missing::{MissingReferences, Wait};
use memgate_install::replica::SILENT_SECONDS;
use memgate_model::decision::FamilyShare;
use memgate_model::family::Family;
use memgate_model::kind::Kind;
use memgate_model::object::{Coverage, KindState, LookupAnswer, Object, Reference};
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_primitives::budget::Budget;

/// After this time without activity a watch is stale.
const STALE_AFTER: Duration = Duration::from_secs(SILENT_SECONDS);

/// How long a kind may hold a start up that cannot be read, while others can.
const UNREAD_AFTER: Duration = Duration::from_secs(30);

/// The rate of log lines about objects that are not held: any user may write such objects.
const NOT_HELD_LOG_RATE: LogRate = LogRate { burst: 1, refill: Duration::from_mins(1) };

/// The state, and the status of its watches.
#[derive(Debug)]
pub(super) struct Store {
    published: ArcSwap<Snapshot>,
    latest: Mutex<Latest>,
    /// Limits the log lines about objects that are not held.
    not_held_log: LogRateLimiter,
    watches: Mutex<BTreeMap<&'static Kind, Watch>>,
    /// The stale kinds, as [`Store::note_stale`] found them.
    stale: ArcSwap<Vec<KindHeard>>,
    started: Instant,
    families: Vec<&'static Family>,
    missing: MissingReferences,
    /// Whether the state comes from files, without watches.
    fixed: bool,
    /// What audits found of policies, of which the state keeps only the compiled form.
    found: Mutex<BTreeMap<String, Found>>,
}

/// The state that changes are applied to.
#[derive(Debug)]
struct Latest {
    snapshot: Snapshot,
    /// The objects of lists that are not complete yet. Those that have not changed are shared with the snapshot.
    lists: BTreeMap<&'static Kind, KindState>,
    /// The bytes of both.
    holdings: Holdings,
}

/// The status of one watch.
#[derive(Debug)]
struct Watch {
    /// Whether all objects were listed once, or the apiserver does not serve the kind.
    synced: bool,
    /// When the apiserver last sent anything; at first, when the store was made.
    last_activity: Instant,
    /// Why the last request failed, if none has succeeded since.
    failure: Option<String>,
}

/// When a kind was heard of last.
#[derive(Debug, Clone)]
pub(super) struct KindHeard {
    pub(super) kind: &'static Kind,
    pub(super) heard: Instant,
    /// Why nothing came since, if a request has failed.
    pub(super) why: Option<String>,
}

impl KindHeard {
    /// Why nothing came since, in words.
    pub(super) fn why(&self) -> &str {
        self.why.as_deref().unwrap_or("no answer yet")
    }
}

impl fmt::Display for KindHeard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} ({})", self.kind.api_version(), self.kind.kind, self.why())
    }
}

impl Store {
    /// A state that never changes. Missing objects will never be created, so no pod waits.
    pub(super) fn fixed(snapshot: Snapshot) -> Self {
        Self::new(snapshot, &[], true, Duration::ZERO)
    }

    /// An empty state for the kinds of the families in `settings`, and for policies if objects are `judged_by` them. Pods
    /// wait up to `reference_grace` for missing objects.
    pub(super) fn watching(settings: Settings, reference_grace: Duration, judged_by: bool) -> Self {
        let mut snapshot = Snapshot::new(memgate_platforms::default_settings());
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
        let workloads = families.iter().flat_map(|family| family.kinds.in_files);
        let workloads = workloads
            .filter(|(_, selector)| selector.is_some() && snapshot.settings.platforms.watches_workloads);
        let kinds = families.iter().flat_map(|family| family.kinds.watched).chain(of_policies);
        let kinds = kinds.chain(workloads.map(|(kind, _)| kind));
        let started = Instant::now();
        let watch = |kind: &&'static Kind| (*kind, Watch { synced, last_activity: started, failure: None });
        let watches = kinds.map(watch).collect();
        Self {
            published: ArcSwap::from_pointee(snapshot.clone()),
            latest: Mutex::new(Latest {
                snapshot,
                lists: BTreeMap::new(),
                holdings: Holdings::new(usize::MAX),
            }),
            not_held_log: LogRateLimiter::new(NOT_HELD_LOG_RATE),
            watches: Mutex::new(watches),
            stale: ArcSwap::default(),
            started,
            families,
            missing: MissingReferences::new(reference_grace),
            fixed: synced,
            found: Mutex::default(),
        }
    }

    /// The same with at most so many bytes of objects.
    pub(super) fn holding(self, most_bytes: usize) -> Self {
        lock(&self.latest).holdings = Holdings::new(most_bytes);
        self
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
    pub(super) fn unread(&self) -> Vec<KindHeard> {
        self.heard_of(|watch| !watch.synced)
    }

    /// Whether the replica is not ready without this kind. After a while one of a platform is not needed if the apiserver listed
    /// others; policies are needed by every review.
    pub(super) fn is_needed(&self, kind: &Kind) -> bool {
        let is_late =
            || self.started.elapsed() > UNREAD_AFTER && self.watches().values().any(|watch| watch.synced);
        policies::is_compiled(kind) || !is_late()
    }

    fn heard_of(&self, is_chosen: impl Fn(&Watch) -> bool) -> Vec<KindHeard> {
        let watches = self.watches();
        let chosen = watches.iter().filter(|(_, watch)| is_chosen(watch));
        let heard = |(kind, watch): (&&'static Kind, &Watch)| KindHeard {
            kind,
            heard: watch.last_activity,
            why: watch.failure.clone(),
        };
        chosen.map(heard).collect()
    }

    /// What the last audit found of each policy.
    pub(super) fn found(&self) -> BTreeMap<String, Found> {
        lock(&self.found).clone()
    }

    /// Applies a change from a watch.
    pub(super) fn apply(&self, kind: &'static Kind, change: StoreChange) {
        let mut inserted = None;
        let change = match change {
            StoreChange::Begin => return lock(&self.latest).begin(kind),
            StoreChange::Listed(object) => return self.add_to_list(kind, object),
            StoreChange::Replace(state) => {
                let mut latest = lock(&self.latest);
                latest.begin(kind);
                latest.list(kind).is_installed = state.is_installed;
                drop(latest);
                for object in state.kept() {
                    self.add_to_list(kind, Object::clone(object));
                }
                return self.apply(kind, StoreChange::End);
            }
            StoreChange::End => {
                // A copy of the list shares its objects.
                let Some(listed) = lock(&self.latest).lists.get(kind).cloned() else { return };
                StoreChange::Replace(Box::new(listed))
            }
            StoreChange::Insert(object) => {
                let (namespace, name) = (object.namespace.to_string(), object.name.to_string());
                inserted = Some(Reference { kind, namespace, name });
                StoreChange::Insert(object)
            }
            StoreChange::Remove { .. } => change,
        };
        let is_removal = matches!(change, StoreChange::Remove { .. });
        let mut latest = lock(&self.latest);
        let mut before = Vec::new();
        let lost = if policies::is_compiled(kind) {
            policies::note_found(&mut lock(&self.found), kind, &change);
            policies::apply(&mut latest.snapshot, kind, &change);
            latest.lists.remove(kind);
            None
        } else {
            latest.apply(kind, change, &mut before)
        };
        let published = self.published.swap(Arc::new(latest.snapshot.clone()));
        drop(latest);
        // Dropped without the lock: they may hold the last references to ten thousand objects.
        drop((before, published));
        self.log_not_held(lost.as_deref());
        self.watches().insert(kind, Watch { synced: true, last_activity: Instant::now(), failure: None });
        // Only now: a review that finds the object missing from here on checks the state again.
        if !is_removal {
            self.forget_missing(kind, inserted.as_ref());
        }
    }

    /// Adds an object to a list that is not complete yet.
    fn add_to_list(&self, kind: &'static Kind, object: Object) {
        let mut latest = lock(&self.latest);
        if policies::is_compiled(kind) {
            latest.list(kind).insert(object);
            return;
        }
        let known = latest.snapshot.kind(kind).and_then(|it| it.kept_of(&object.namespace, &object.name));
        let lost = match known.filter(|known| known.held && known.tree() == object.tree()).cloned() {
            Some(known) => {
                let before = latest.list(kind).put_shared(&known);
                latest.release(before.as_ref());
                None
            }
            None => {
                let (object, before) = latest.list(kind).put(object);
                latest.release(before.as_ref());
                latest.holdings.add(Place::List, &object);
                latest.shed(&object)
            }
        };
        // Room for it may have been made elsewhere.
        let published = lost.as_ref().map(|_| self.published.swap(Arc::new(latest.snapshot.clone())));
        drop(latest);
        drop(published);
        self.log_not_held(lost.as_deref());
    }

    fn log_not_held(&self, lost: Option<&Object>) {
        let Some(object) = lost else { return };
        if let Ok(suppressed) = self.not_held_log.take("not held") {
            let latest = lock(&self.latest);
            let (bytes, count) = (latest.holdings.bytes(), latest.holdings.remembered());
            drop(latest);
            tracing::warn!(
                kind = object.kind.kind,
                namespace = &*object.namespace,
                name = &*object.name,
                bytes,
                count,
                suppressed,
                "objects are not held, since they take too much memory; they are looked up when they are needed"
            );
        }
    }

    /// How many bytes the state takes, and how many objects of each kind are not held.
    pub(super) fn holdings(&self) -> (usize, BTreeMap<&'static Kind, usize>) {
        let latest = lock(&self.latest);
        (latest.holdings.bytes(), latest.holdings.lost().collect())
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
    pub(super) fn record_found(&self, answers: &[(Reference, LookupAnswer)]) {
        if !self.missing.is_empty() {
            let found = answers.iter().filter(|(_, answer)| matches!(answer, Ok(Some(_))));
            self.missing.forget(found.map(|(reference, _)| reference), |_| true);
        }
    }

    /// The label selector of a kind of which not all objects are watched.
    pub(super) fn selector_of(&self, kind: &Kind) -> Option<&'static str> {
        let mut workloads = self.families.iter().flat_map(|family| family.kinds.in_files);
        workloads.find_map(|(workload, selector)| selector.filter(|_| *workload == kind))
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
            watch.failure = None;
        }
    }

    /// Records why a request about a kind failed.
    pub(super) fn record_failure(&self, kind: &Kind, why: String) {
        if let Some(watch) = self.watches().get_mut(kind) {
            watch.failure = Some(why);
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

    /// Looks which kinds are stale, for the answers until the next look.
    pub(super) fn note_stale(&self) -> Arc<Vec<KindHeard>> {
        let is_stale = |watch: &Watch| watch.synced && watch.last_activity.elapsed() > STALE_AFTER;
        let stale = Arc::new(self.heard_of(|watch| !self.fixed && is_stale(watch)));
        self.stale.store(Arc::clone(&stale));
        stale
    }

    /// The stale kinds.
    pub(super) fn stale(&self) -> Arc<Vec<KindHeard>> {
        self.stale.load_full()
    }

    /// How old the oldest of the stale kinds is by which these platforms, and policies, decide.
    pub(super) fn state_age(&self, families: &[FamilyShare]) -> Option<Duration> {
        let is_used = |kind: &&'static Kind| {
            policies::WATCHED.contains(kind)
                || families.iter().any(|share| share.family.kinds.watched.contains(kind))
        };
        let stale = self.stale.load();
        stale.iter().filter(|stale| is_used(&stale.kind)).map(|stale| stale.heard.elapsed()).max()
    }

    /// How long ago the kind was heard of that was heard of longest ago.
    pub(super) fn silence(&self) -> Duration {
        let watches = self.watches();
        let heard = watches.values().filter(|watch| watch.synced).map(|watch| watch.last_activity);
        heard.min().filter(|_| !self.fixed).map_or(Duration::ZERO, |heard| heard.elapsed())
    }

    fn age(&self, kind: &Kind) -> Duration {
        let last_activity = self.watches().get(kind).filter(|_| !self.fixed).map(|watch| watch.last_activity);
        last_activity.map_or(Duration::ZERO, |last_activity| last_activity.elapsed())
    }

    fn watches(&self) -> MutexGuard<'_, BTreeMap<&'static Kind, Watch>> {
        lock(&self.watches)
    }
}

impl Latest {
    /// Begins a list. What was listed of an earlier one that broke off is forgotten.
    fn begin(&mut self, kind: &'static Kind) {
        let known = self.snapshot.kind(kind);
        let mut empty =
            known.map_or_else(|| KindState::new(Coverage::Watched), |it| it.emptied(Coverage::Watched));
        // What is not served is replaced without a list.
        empty.is_installed = true;
        let broken = self.lists.insert(kind, empty);
        for object in broken.iter().flat_map(KindState::kept) {
            self.release(Some(object));
        }
        self.holdings.begin_list(kind);
    }

    /// The list of a kind that is not complete yet.
    fn list(&mut self, kind: &'static Kind) -> &mut KindState {
        self.lists.entry(kind).or_insert_with(|| KindState::new(Coverage::Watched))
    }

    /// Applies a change to the snapshot. Returns an object that is not held because of it, if there is any, and puts what
    /// it replaces into `before`.
    fn apply(
        &mut self,
        kind: &'static Kind,
        change: StoreChange,
        before: &mut Vec<KindState>,
    ) -> Option<Arc<Object>> {
        match change {
            StoreChange::Replace(_) => {
                before.extend(self.snapshot.kind(kind).cloned());
                // As it is now: it may have let go of objects.
                let listed = self.lists.remove(kind)?;
                self.snapshot.set(kind, listed);
                self.holdings.end_list(kind);
                self.mark(kind);
                for object in before.iter().flat_map(KindState::kept) {
                    self.release(Some(object));
                }
                None
            }
            StoreChange::Insert(object) => {
                let (object, before) = self.snapshot.kind_mut(kind).put(object);
                self.release(before.as_ref());
                self.holdings.add(Place::State, &object);
                self.mark(kind);
                self.shed(&object)
            }
            StoreChange::Remove { namespace, name } => {
                let before = self.snapshot.kind_mut(kind).remove(&namespace, &name);
                self.release(before.as_ref());
                self.holdings.find(Place::State, kind, &namespace, &name);
                self.mark(kind);
                None
            }
            StoreChange::Begin | StoreChange::Listed(_) | StoreChange::End => None,
        }
    }

    /// Has searches know whether the state lacks objects of a kind of which it does not even keep the name.
    fn mark(&mut self, kind: &'static Kind) {
        let Some(state) = self.snapshot.kind(kind) else { return };
        let lacks_some = self.holdings.lost_of(kind).is_some_and(|lost| lost.exceeds(state.not_held()));
        if state.lacks_some != lacks_some {
            self.snapshot.kind_mut(kind).lacks_some = lacks_some;
        }
    }

    /// Counts an object no more that was kept in a place, unless it is kept in the other one.
    fn release(&mut self, object: Option<&Arc<Object>>) {
        let Some(object) = object.filter(|object| !policies::is_compiled(object.kind)) else { return };
        let places = [self.snapshot.kind(object.kind), self.lists.get(object.kind)];
        let mut kept = places.into_iter().flatten();
        let is_it = |state: &KindState| {
            state.kept_of(&object.namespace, &object.name).is_some_and(|kept| Arc::ptr_eq(kept, object))
        };
        if !kept.any(is_it) {
            self.holdings.take(object);
        }
    }

    /// Lets go of objects until the rest fits, of this new one first if its namespace has the most bytes. Returns one that
    /// is not held.
    fn shed(&mut self, object: &Arc<Object>) -> Option<Arc<Object>> {
        let mut lost = (!object.held).then(|| Arc::clone(object));
        let mut new = Some(object).filter(|object| object.held);
        while self.holdings.exceeded() {
            let Some(namespace) = self.holdings.largest() else { break };
            let next = new.take_if(|object| object.namespace == namespace).cloned().or_else(|| {
                let mut states = self.snapshot.kinds().chain(self.lists.values());
                states.find_map(|state| state.first_of(&namespace)).cloned()
            });
            let Some(next) = next else { break };
            let Object { kind, namespace, name, .. } = &*next;
            let is_known = self.snapshot.kind(kind).is_some();
            let first = is_known.then(|| self.snapshot.kind_mut(kind).remove(namespace, name)).flatten();
            let second = self.lists.get_mut(kind).and_then(|list| list.remove(namespace, name));
            let is_same = matches!((&first, &second), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
            self.release(first.as_ref());
            self.release(second.as_ref().filter(|_| !is_same));
            if first.is_some() {
                self.holdings.lose(Place::State, &next);
                self.mark(kind);
            }
            if second.is_some() {
                self.holdings.lose(Place::List, &next);
            }
            lost = Some(next);
        }
        lost
    }
}

fn holds(snapshot: &Snapshot, reference: &Reference) -> bool {
    let Reference { kind, namespace, name } = reference;
    StateReader::new(snapshot, &Budget::default()).peek(kind, namespace, name).is_some()
}

/// Locks, also after a panic of another thread: every change under these locks is a single step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgate_model::object::Coverage;

    #[test]
    fn is_not_synced_until_every_kind_is() {
        let store = Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true);
        let kinds = store.kinds();
        assert_eq!(store.unread().len(), kinds.len());
        for kind in &kinds {
            assert!(!store.is_synced(kind));
            store.apply(kind, StoreChange::Replace(Box::new(KindState::new(Coverage::Watched))));
        }
        assert!(store.unread().is_empty());
    }

    #[test]
    fn a_kind_has_the_selector_that_any_family_gives_it() {
        let mut settings = memgate_platforms::default_settings();
        for _ in 0..2 {
            settings.families.reverse();
            let store = Store::watching(settings.clone(), Duration::ZERO, true);
            let workloads = || store.families.iter().flat_map(|family| family.kinds.in_files);
            for (kind, selector) in workloads() {
                let given = workloads().filter_map(|(other, selector)| selector.filter(|_| other == kind));
                assert_eq!(store.selector_of(kind), given.into_iter().next(), "{} {selector:?}", kind.kind);
            }
        }
    }

    #[test]
    fn activity_alone_does_not_sync() {
        let store = Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true);
        let kind = store.kinds()[0];
        store.record_activity(kind);
        assert!(!store.is_synced(kind));
    }

    #[test]
    fn the_age_of_a_family_is_that_of_its_most_silent_kind() {
        let store = Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true);
        let (family, kinds) =
            store.families.iter().map(|family| (*family, family.kinds.watched)).next_back().unwrap();
        let age = |store: &Store| store.stats().iter().find(|(other, ..)| *other == family).unwrap().2;
        store.watches().get_mut(kinds[0]).unwrap().last_activity -= STALE_AFTER * 2;
        for kind in &kinds[1..] {
            store.record_activity(kind);
        }
        assert!(age(&store) >= STALE_AFTER * 2);
        store.record_activity(kinds[0]);
        assert!(age(&store) < STALE_AFTER);
    }

    #[test]
    fn an_answer_is_as_old_as_the_kinds_that_it_goes_by() {
        let store = Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true);
        for kind in store.kinds() {
            store.apply(kind, StoreChange::Replace(Box::new(KindState::new(Coverage::Watched))));
        }
        let share = |family| FamilyShare { family, edits: 0 };
        let [ark, orka] = [share(&memgate_platforms::ark::FAMILY), share(&memgate_platforms::orka::FAMILY)];
        let old =
            |kind: &'static Kind| store.watches().get_mut(kind).unwrap().last_activity -= STALE_AFTER * 2;
        old(ark.family.kinds.watched[0]);
        store.record_failure(ark.family.kinds.watched[0], "500".to_owned());
        assert_eq!(store.state_age(&[ark]), None, "it was not looked at yet");
        let stale = store.note_stale();
        assert_eq!((stale.len(), stale[0].why.as_deref()), (1, Some("500")));
        assert!(store.state_age(&[orka, ark]).is_some_and(|age| age >= STALE_AFTER * 2));
        assert_eq!((store.state_age(&[orka]), store.state_age(&[])), (None, None));
        old(&memgate_model::kind::MEMORY_POLICY);
        store.note_stale();
        assert!(store.state_age(&[orka]).is_some() && store.state_age(&[]).is_some(), "policies judge all");
        store.record_activity(ark.family.kinds.watched[0]);
        store.record_activity(&memgate_model::kind::MEMORY_POLICY);
        store.note_stale();
        assert_eq!(store.state_age(&[ark]), None);
    }

    #[test]
    fn a_kind_that_cannot_be_read_holds_a_start_up_for_a_while() {
        let mut store = Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true);
        let [broken, policies] =
            [memgate_platforms::ark::FAMILY.kinds.watched[0], &memgate_model::kind::MEMORY_POLICY];
        store.record_failure(broken, "500: no conversion".to_owned());
        let needed = |store: &Store| -> Vec<_> {
            store
                .unread()
                .into_iter()
                .map(|unread| unread.kind)
                .filter(|kind| store.is_needed(kind))
                .collect()
        };
        store.started -= UNREAD_AFTER * 2;
        assert_eq!(needed(&store).len(), store.kinds().len(), "the apiserver does not answer at all");
        for kind in store.kinds().into_iter().filter(|kind| ![broken, policies].contains(kind)) {
            store.apply(kind, StoreChange::Replace(Box::new(KindState::new(Coverage::Watched))));
        }
        assert_eq!(needed(&store), [policies]);
        let texts: Vec<_> = store.unread().iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.ends_with("Memory (500: no conversion)")), "{texts:?}");
        store.started = Instant::now();
        assert_eq!(needed(&store).len(), 2);
    }

    fn object(kind: &'static Kind, name: &str) -> Object {
        let value = serde_json::json!({"metadata": {"name": name, "namespace": "team"}});
        Object::read(kind, value).unwrap().unwrap()
    }

    #[test]
    fn a_kind_is_installed_while_it_is_listed() {
        let store = Store::watching(memgate_platforms::default_settings(), Duration::ZERO, true);
        let kind = store.kinds()[0];
        let is_installed = || {
            let snapshot = store.snapshot();
            StateReader::new(&snapshot, &Budget::default()).is_installed(kind)
        };
        assert!(!is_installed(), "nothing is known yet");
        store.apply(kind, StoreChange::Replace(Box::new(KindState::new(Coverage::Watched))));
        assert!(!is_installed(), "it is not served");
        store.apply(kind, StoreChange::Begin);
        store.apply(kind, StoreChange::End);
        assert!(is_installed(), "its list is empty");
        store.apply(kind, StoreChange::Replace(Box::new(KindState::new(Coverage::Watched))));
        assert!(!is_installed(), "its definition was removed");
    }

    #[test]
    fn what_a_watch_or_a_lookup_shows_is_no_longer_missing() {
        let grace = Duration::from_secs(30);
        let store = Store::watching(memgate_platforms::default_settings(), grace, true);
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
                store.apply(kind, StoreChange::Replace(Box::new(listed)));
            },
            &|| store.record_found(&[(reference.clone(), Ok(Some(Arc::new(object(kind, "a")))))]),
        ];
        for appear in appear {
            assert!(waits(start));
            assert!(!waits(later));
            store.apply(kind, StoreChange::Insert(object(kind, "b")));
            store.record_found(&[(reference.clone(), Ok(None))]);
            assert!(!waits(later), "it still does not exist");
            appear();
            let (namespace, name) = ("team".to_owned(), "a".to_owned());
            store.apply(kind, StoreChange::Remove { namespace, name });
            assert!(waits(later), "it existed in between");
            store.missing.forget_all(|_| true);
        }
    }

    #[test]
    fn what_came_while_it_was_looked_up_is_not_remembered_as_missing() {
        let store = Store::watching(memgate_platforms::default_settings(), Duration::from_secs(30), true);
        let kind = store.kinds()[0];
        store.apply(kind, StoreChange::Insert(object(kind, "a")));
        let reference = Reference { kind, namespace: "team".to_owned(), name: "a".to_owned() };
        assert!(store.must_hold(&[reference], tokio::time::Instant::now()).is_some());
        assert!(store.missing.is_empty());
    }

    #[test]
    fn a_fixed_state_is_always_synced_and_never_old() {
        let store = Store::fixed(Snapshot::new(memgate_platforms::default_settings()));
        assert!(store.unread().is_empty());
        assert!(store.stats().iter().all(|(_, _, age)| age.is_zero()));
    }
}
