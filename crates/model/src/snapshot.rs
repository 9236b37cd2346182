//! The state that a decision may read, as one immutable value.
//!
//! Nothing is fetched here. Cloning a snapshot is cheap: copies share a kind until it changes, and after a change
//! they still share all chunks of objects except the changed one.

use std::sync::Arc;

use crate::crds::Crds;
use crate::kind::Kind;
use crate::makers::Makers;
use crate::object::{Coverage, KindState, Kinds, LookupAnswer, Reference};
use crate::policy::Policies;
use crate::settings::Settings;
use crate::state_reader::{GivenCrds, StateReader};
use crate::state_uses::StateUses;
use memgate_primitives::budget::Budget;

/// The objects that decisions may read, and the settings that they follow.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The settings of this installation.
    pub settings: Settings,
    /// The schemas of kinds; `None` in a cluster, where the apiserver has already checked them.
    pub crds: Option<Crds>,
    /// The policies and exemptions, ready to judge.
    pub policies: Arc<Policies>,
    /// What may make other objects, in files.
    pub makers: Arc<Makers>,
    /// In files, which of the given state lookups find.
    pub uses: Option<Arc<StateUses>>,
    kinds: Kinds,
}

impl Snapshot {
    /// A snapshot in which nothing is known of any kind.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    fn for_readers(&self) -> (&Kinds, &Makers, Option<&GivenCrds>, Option<&StateUses>) {
        (&self.kinds, &self.makers, self.crds.as_ref().map(Crds::given), self.uses.as_deref())
    }

    /// What among files may make an object that is not there.
    pub fn maker_of(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&Arc<str>> {
        self.kind(kind)?;
        self.makers.of(kind, (namespace, name))
    }

    /// Sets the known objects of a kind.
    pub fn set(&mut self, kind: &'static Kind, state: KindState) {
        self.kinds.insert(kind, Arc::new(state));
    }

    /// The state of a kind, to change it; a kind that was never set starts as unknown.
    pub fn kind_mut(&mut self, kind: &'static Kind) -> &mut KindState {
        Arc::make_mut(self.kinds.entry(kind).or_default())
    }

    /// Forgets a kind: it is unknown again.
    pub fn forget(&mut self, kind: &Kind) {
        self.kinds.remove(kind);
    }

    /// The same without those of these kinds of which files hold no object: each of their objects is unknown.
    #[must_use]
    pub fn without_empty(&self, is_chosen: impl Fn(&Kind) -> bool) -> Self {
        let mut snapshot = self.clone();
        let is_empty = |state: &KindState| state.coverage == Coverage::Complete && state.is_empty();
        snapshot.kinds.retain(|kind, state| !(is_empty(state) && is_chosen(kind)));
        snapshot
    }

    /// The same for an object whose namespace is not known: each object of a namespace is unknown.
    #[must_use]
    pub fn without_namespaced(&self) -> Self {
        let mut snapshot = self.clone();
        snapshot.kinds.retain(|kind, _| !kind.namespaced);
        snapshot
    }

    /// The states of all kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &KindState> {
        self.kinds.values().map(AsRef::as_ref)
    }

    /// The state of a kind.
    pub fn kind(&self, kind: &Kind) -> Option<&KindState> {
        self.kinds.get(kind).map(AsRef::as_ref)
    }

    /// This snapshot overlaid with the answers of lookups.
    #[must_use]
    pub fn overlaid(&self, answers: impl IntoIterator<Item = (Reference, LookupAnswer)>) -> Self {
        let mut snapshot = self.clone();
        for (Reference { kind, namespace, name }, answer) in answers {
            let state = snapshot.kind_mut(kind);
            match answer {
                Ok(Some(object)) => drop(state.put_shared(&object)),
                Ok(None) => state.insert_without(namespace, name, Ok(())),
                Err(why) => state.insert_without(namespace, name, Err(why)),
            }
        }
        snapshot
    }
}

impl<'s> StateReader<'s> {
    /// A reader for a decision about an object in a known namespace.
    pub fn new(snapshot: &'s Snapshot, budget: &'s Budget<'s>) -> Self {
        Self::of(snapshot.for_readers(), snapshot.settings.for_readers(), true, budget)
    }

    /// A reader for a decision about an object whose namespace was not given.
    pub fn without_namespace(snapshot: &'s Snapshot, budget: &'s Budget<'s>) -> Self {
        Self::of(snapshot.for_readers(), snapshot.settings.for_readers(), false, budget)
    }
}
