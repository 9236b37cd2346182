//! Reads the state for a decision. No other code looks up whether an object exists.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::kind::Kind;
use crate::makers::Makers;
use crate::object::index::{BY_NAME, Index};
use crate::object::{Coverage, DEFAULT_NAMESPACE, KindState, Kinds, Lookup, Object, Reference};
use crate::platform_settings::PlatformSettings;
use crate::request::Point;
use crate::state_uses::StateUses;
use memgate_primitives::budget::Budget;
use memgate_primitives::name::is_dns_subdomain;
use memgate_schema::crd::Crd;

/// The definitions among the inputs, by group and kind.
pub type GivenCrds = BTreeMap<(String, String), Arc<Crd>>;

/// How many unknown references are noted. A decision never looks up more.
const MAX_UNKNOWN: usize = 1_000;

/// Reads the snapshot for one decision. Notes references to unknown objects, so that the caller can look them up.
#[derive(Debug)]
pub struct StateReader<'s> {
    kinds: &'s Kinds,
    makers: &'s Makers,
    given: Option<&'s GivenCrds>,
    uses: Option<&'s StateUses>,
    platforms: &'s PlatformSettings,
    cluster_domain: &'s str,
    namespace_given: bool,
    names_others: bool,
    budget: &'s Budget<'s>,
    unknown: RefCell<BTreeSet<Reference>>,
    counted: Counted,
}

/// The numbers that were counted, by what was counted and the states of the kinds in which that was.
type Counted = Rc<RefCell<BTreeMap<(String, Vec<*const KindState>), usize>>>;

impl<'s> StateReader<'s> {
    /// A reader for the decision about an object whose namespace was given or not.
    pub fn of(
        (kinds, makers, given, uses): (&'s Kinds, &'s Makers, Option<&'s GivenCrds>, Option<&'s StateUses>),
        (platforms, cluster_domain): (&'s PlatformSettings, &'s str),
        namespace_given: bool,
        budget: &'s Budget<'s>,
    ) -> Self {
        let (names_others, unknown, counted) = (false, RefCell::default(), Counted::default());
        Self {
            kinds,
            makers,
            given,
            uses,
            platforms,
            cluster_domain,
            namespace_given,
            names_others,
            budget,
            unknown,
            counted,
        }
    }

    /// The same reader, which counts nothing again that this one has counted, as far as both have the same state.
    #[must_use]
    pub fn counting_with(self, other: &Self) -> Self {
        Self { counted: Rc::clone(&other.counted), ..self }
    }

    /// A number that is counted once a decision, named by this key, in the objects of these kinds.
    pub fn count_once(
        &mut self,
        key: String,
        kinds: impl IntoIterator<Item = &'static Kind>,
        count: impl FnOnce(&mut Self) -> usize,
    ) -> usize {
        let states = kinds.into_iter().filter_map(|kind| self.kinds.get(kind)).map(Arc::as_ptr);
        let key = (key, states.collect());
        let known = self.counted.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            let number = count(self);
            self.counted.borrow_mut().insert(key, number);
            number
        })
    }

    /// The same reader for a decision at this point.
    #[must_use]
    pub fn at(self, point: Point) -> Self {
        Self { names_others: point == Point::Ci, ..self }
    }

    /// Whether a message may name what exists in a namespace to which the object does not refer. One author gave all
    /// files of a repository; in a cluster it would tell one tenant of another.
    pub const fn names_others(&self) -> bool {
        self.names_others
    }

    /// Whether an object counts: the settings may say that it is as if it were not there.
    fn counts(&self, object: &'s Object) -> bool {
        self.counting()(&object)
    }

    /// The budget of the decision.
    pub const fn budget(&self) -> &'s Budget<'s> {
        self.budget
    }

    /// Whether the bundled definition of a kind is the one that counts: in files, without a definition among the inputs.
    pub fn goes_by_bundle(&self, kind: &Kind) -> bool {
        self.given.is_some_and(|given| !given.contains_key(&(kind.group.to_owned(), kind.kind.to_owned())))
    }

    /// The same as a filter that outlives the reader.
    fn counting(&self) -> impl Fn(&&'s Object) -> bool + use<'s> {
        let (platforms, uses) = (self.platforms, self.uses);
        move |object| {
            let counts =
                object.kind.counts.is_none_or(|counts| counts(object.tree(), &object.namespace, platforms));
            if let Some(uses) = uses.filter(|_| counts) {
                uses.note(object);
            }
            counts
        }
    }

    /// One object by name. An invalid name counts as absent, so that it never becomes part of a request to the
    /// apiserver.
    pub fn get(&mut self, kind: &'static Kind, namespace: &str, name: &str) -> Lookup<'s> {
        if !is_dns_subdomain(name) {
            return Lookup::Absent;
        }
        let state = self.kinds.get(kind);
        let lookup = match state.map_or(Lookup::Unknown(()), |state| state.get(namespace, name)) {
            Lookup::Found(object) if !self.counts(object) => Lookup::Absent,
            Lookup::Absent if self.may_be_made(kind, namespace, name) => Lookup::Unknown(()),
            lookup => lookup,
        };
        if matches!(lookup, Lookup::Unknown(())) {
            self.note_unknown(kind, namespace, name);
        }
        lookup
    }

    /// Whether something among the inputs may make an object of this name.
    pub fn may_be_made(&self, kind: &Kind, namespace: &str, name: &str) -> bool {
        self.kinds.contains_key(kind) && self.makers.of(kind, (namespace, name)).is_some()
    }

    /// One object by name, for kinds of which files seldom hold all objects. Without a cluster, the object counts
    /// as absent only if its kind was listed, or if another object of its kind is known. An object without a given
    /// namespace counts as an object of this one.
    pub fn get_if_known(&mut self, kind: &'static Kind, namespace: &str, name: &str) -> Lookup<'s> {
        let Some(state) = self.kinds.get(kind) else {
            self.note_unknown(kind, namespace, name);
            return Lookup::Unknown(());
        };
        if state.coverage == Coverage::Watched {
            return self.get(kind, namespace, name);
        }
        let without_namespace =
            || state.object(DEFAULT_NAMESPACE, name).filter(|object| !object.namespace_given);
        match state.object(namespace, name).or_else(without_namespace) {
            Some(object) if self.counts(object) => Lookup::Found(object),
            Some(_) => Lookup::Absent,
            None if matches!(state.coverage, Coverage::Listed(_) | Coverage::Unknown) => {
                self.get(kind, namespace, name)
            }
            None if !state.is_empty()
                && !state.lacks_some_in(Some(namespace))
                && !self.may_be_made(kind, namespace, name) =>
            {
                Lookup::Absent
            }
            None => {
                self.note_unknown(kind, namespace, name);
                Lookup::Unknown(())
            }
        }
    }

    /// Whether an object is missing, for kinds of which files seldom hold all objects: without a cluster, it counts as
    /// missing only if another object of its namespace is known.
    pub fn is_missing(&mut self, kind: &'static Kind, namespace: &str, name: &str) -> bool {
        let lookup = self.get(kind, namespace, name);
        let is_open = |state: &Arc<KindState>| {
            state.coverage == Coverage::Complete && state.first_of(namespace).is_none()
        };
        lookup == Lookup::Absent && !self.kinds.get(kind).is_some_and(is_open)
    }

    /// One object by name, if it is known. An unknown one is not noted, unless it exists and is not held.
    pub fn peek(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&'s Object> {
        let object = self.kinds.get(kind)?.kept_of(namespace, name)?;
        self.held(object).filter(|object| self.counts(object))
    }

    /// The object, unless it has to be looked up first, which is noted.
    fn held(&self, object: &'s Arc<Object>) -> Option<&'s Object> {
        if !object.held {
            self.note(object);
        }
        Some(&**object).filter(|object| object.held)
    }

    fn note(&self, object: &Object) {
        self.note_unknown(object.kind, &object.namespace, &object.name);
    }

    /// Notes those that are not held.
    fn note_not_held(&self, state: Option<&'s Arc<KindState>>, namespace: Option<&str>) {
        let not_held = state.map(|state| state.kept_not_held(namespace).take(MAX_UNKNOWN));
        self.looked_at(not_held.into_iter().flatten()).for_each(|object| self.note(object));
    }

    /// These objects, each of which counts for the budget; none once that has ended.
    fn looked_at<T, I: Iterator<Item = T>>(&self, objects: I) -> impl Iterator<Item = T> + use<'s, T, I> {
        let budget = self.budget;
        objects.take_while(move |_| budget.look())
    }

    /// Whether it is known which objects of a kind exist: in a cluster always, outside when there is
    /// at least one, or when they were listed.
    pub fn is_known(&self, kind: &Kind) -> bool {
        let is_listed = |state: &KindState| matches!(state.coverage, Coverage::Listed(_));
        let is_known =
            |state: &Arc<KindState>| !state.lacks_some_in(None) && (!state.is_empty() || is_listed(state));
        self.in_cluster(kind) || self.kinds.get(kind).is_some_and(is_known)
    }

    /// Whether the objects of a kind come from a cluster.
    pub fn in_cluster(&self, kind: &Kind) -> bool {
        self.kinds.get(kind).is_some_and(|state| state.coverage == Coverage::Watched)
    }

    /// Whether objects come from files, and none from a cluster.
    pub fn of_files(&self) -> bool {
        !self.kinds.is_empty() && self.kinds.values().all(|state| state.coverage != Coverage::Watched)
    }

    /// Whether the namespace of the object under review was given.
    pub const fn namespace_given(&self) -> bool {
        self.namespace_given
    }

    /// The state of a kind. Notes its list, of one namespace or of all, as unknown unless it counts as complete.
    fn note_unless_all(&self, kind: &'static Kind, namespace: Option<&str>) -> Option<&'s Arc<KindState>> {
        let state = self.kinds.get(kind);
        if state.is_none_or(|state| !state.knows_all(namespace)) {
            self.note_unknown(kind, namespace.unwrap_or_default(), "");
        }
        state
    }

    /// The known objects of one namespace, by name. Notes the list as unknown unless it counts as complete.
    pub fn list(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
    ) -> impl Iterator<Item = &'s Object> + use<'s> {
        let state = self.note_unless_all(kind, Some(namespace));
        self.note_not_held(state, Some(namespace));
        let listed = state.map(|state| state.objects.in_namespace(namespace)).into_iter().flatten();
        self.looked_at(listed).filter(self.counting())
    }

    /// The known objects of a kind, by namespace and name. Notes the list as unknown unless it counts as complete.
    pub fn everywhere(&mut self, kind: &'static Kind) -> impl Iterator<Item = &'s Object> + use<'s> {
        let state = self.note_unless_all(kind, None);
        self.note_not_held(state, None);
        self.looked_at(state.into_iter().flat_map(|state| state.objects.all())).filter(self.counting())
    }

    /// The known objects with this key, by namespace and name, those that are being deleted last. Notes the kind as unknown
    /// unless its list counts as complete.
    pub fn indexed(
        &mut self,
        kind: &'static Kind,
        index: &'static Index,
        key: &str,
    ) -> impl Iterator<Item = &'s Object> + use<'s> {
        self.indexed_in(kind, (index, key), None)
    }

    /// The same of one namespace, or of all for `None`.
    pub fn indexed_in(
        &mut self,
        kind: &'static Kind,
        by: (&'static Index, &str),
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &'s Object> + use<'s> {
        self.note_unless_all(kind, None);
        self.find(kind, by, namespace)
    }

    /// How many known objects have this key, with those that are yet to be named. Notes the kind as unknown unless its list counts as complete.
    pub fn count_indexed(&mut self, kind: &'static Kind, index: &'static Index, key: &str) -> usize {
        let state = self.note_unless_all(kind, None);
        self.note_not_held(state, None);
        let counted = |state: &'s KindState| {
            if kind.counts.is_some() {
                let by = (index, key);
                let all = state.find(by, None).chain(state.find_not_held(by, None));
                return self.looked_at(all).filter(|object| self.counts(object)).count();
            }
            let is_found = |namespace: &str, name: &str| {
                self.budget.look() && state.has((index, key), (namespace, name))
            };
            self.uses.into_iter().for_each(|uses| uses.note_where(kind, is_found));
            state.count(index, key)
        };
        let to_be_named = state.and_then(|state| state.to_be_named());
        state.map_or(0, |state| counted(state)) + to_be_named.map_or(0, counted)
    }

    /// Whether files have an object whose name is yet to be made and begins like this.
    pub fn has_to_be_named(&self, kind: &Kind, namespace: &str, prefix: &str) -> bool {
        let state = self.kinds.get(kind).and_then(|state| state.to_be_named());
        state.is_some_and(|state| state.kept_of(namespace, prefix).is_some())
    }

    /// The known objects with this key, by namespace and name. Notes those that are not held, as far as the key is in
    /// their name and annotations.
    pub fn peek_indexed(
        &self,
        kind: &Kind,
        index: &'static Index,
        key: &str,
    ) -> impl Iterator<Item = &'s Object> + use<'s> {
        self.find(kind, (index, key), None)
    }

    fn find(
        &self,
        kind: &Kind,
        by: (&'static Index, &str),
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &'s Object> + use<'s> {
        let state = self.kinds.get(kind);
        if let Some(state) = state.filter(|state| !state.holds_all()) {
            let found =
                self.looked_at(state.find_not_held(by, namespace)).filter(|object| self.counts(object));
            found.take(MAX_UNKNOWN).for_each(|object| self.note(object));
        }
        let found = state.map(|state| state.find(by, namespace)).into_iter().flatten();
        self.looked_at(found.map(AsRef::as_ref)).filter(self.counting())
    }

    /// Whether an object with this key may exist and not be held. If the state does not even keep the names
    /// of some, no search sees these, and the list is noted as unknown.
    pub fn may_lack(&self, kind: &'static Kind, (index, key): (&'static Index, &str)) -> bool {
        let Some(state) = self.kinds.get(kind) else { return false };
        let lacks_some = state.lacks_some_in(None);
        if lacks_some {
            self.note_unknown(kind, "", "");
        }
        let mut not_held = self.looked_at(state.find_not_held((index, key), None));
        lacks_some || not_held.any(|object| self.counts(object))
    }

    /// Whether at least one object of a kind is known, in any namespace.
    pub fn holds_any(&self, kind: &Kind) -> bool {
        self.kinds.get(kind).is_some_and(|state| !state.is_empty())
    }

    /// Whether at least one object of a kind is known in this namespace.
    pub fn holds_one_in(&self, kind: &Kind, namespace: &str) -> bool {
        self.kinds.get(kind).is_some_and(|state| state.first_of(namespace).is_some())
    }

    /// Whether a kind is known to be installed, with or without objects: the cluster serves it, or the inputs have something
    /// else of its group.
    pub fn is_installed(&self, kind: &Kind) -> bool {
        self.kinds.get(kind).is_some_and(|state| state.is_installed)
    }

    /// The settings that belong to one platform each.
    pub const fn settings(&self) -> &'s PlatformSettings {
        self.platforms
    }

    /// The domain of the cluster's Services.
    pub const fn cluster_domain(&self) -> &'s str {
        self.cluster_domain
    }

    /// The first other namespace that holds an object of this name, for a hint.
    pub fn elsewhere(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&'s str> {
        let mut homes = self.peek_indexed(kind, &BY_NAME, name).map(|object| &*object.namespace);
        homes.find(|home| *home != namespace)
    }

    /// The first unknown reference that `counts` and whose lookup failed, and why.
    pub fn failed_lookup(&self, counts: impl Fn(&Reference) -> bool) -> Option<(Reference, &'s str)> {
        let unknown = self.unknown.borrow();
        unknown.iter().filter(|reference| counts(reference)).find_map(|reference| {
            let state = self.kinds.get(reference.kind)?;
            let why = state.looked_up(&reference.namespace, &reference.name)?.as_ref().err()?;
            Some((reference.clone(), &**why))
        })
    }

    /// Reads without noting unknown references, so that they are not looked up.
    pub fn quietly<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let noted = self.unknown.take();
        let value = read(self);
        self.unknown.replace(noted);
        value
    }

    /// The unknown references, each once, in the order of kinds, namespaces and names.
    pub fn into_unknown(self) -> Vec<Reference> {
        self.unknown.into_inner().into_iter().collect()
    }

    /// Notes what another reader for the same decision did not know.
    pub fn note_all(&self, unknown: Vec<Reference>) {
        for Reference { kind, namespace, name } in unknown {
            self.note_unknown(kind, &namespace, &name);
        }
    }

    fn note_unknown(&self, kind: &'static Kind, namespace: &str, name: &str) {
        let mut unknown = self.unknown.borrow_mut();
        if unknown.len() < MAX_UNKNOWN {
            let reference = Reference { kind, namespace: namespace.to_owned(), name: name.to_owned() };
            unknown.insert(reference);
        }
    }
}
