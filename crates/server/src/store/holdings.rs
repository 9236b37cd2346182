//! How many bytes the state takes, and which objects it lets go of when that is too much.
//!
//! Tenants write the objects, so the bytes are counted for each namespace, and the namespace with the most of them lets go
//! first: the objects of others stay. An object that is let go of is looked up when a decision needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use memgate_model::kind::Kind;
use memgate_model::object::Object;

/// How many bytes the memory of one object that was let go of counts for.
const BYTES_PER_LOST: usize = 24;

/// The hashes of the names of objects of one kind that are not held.
#[derive(Debug, Default)]
pub(super) struct Lost {
    names: BTreeSet<u64>,
    /// Whether there are more, for which there was no room.
    more: bool,
}

impl Lost {
    /// Whether there are more than this.
    pub(super) fn exceeds(&self, objects: usize) -> bool {
        self.more || self.names.len() > objects
    }
}

/// Where an object is kept: in the state, or in a list that is not complete yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    State,
    List,
}

/// The bytes of the state, by namespace, and the objects that are not in it.
#[derive(Debug)]
pub(super) struct Holdings {
    /// How many bytes there may be.
    most: usize,
    bytes: usize,
    of_namespace: BTreeMap<Arc<str>, usize>,
    by_size: BTreeSet<(usize, Arc<str>)>,
    /// The objects that are not held, by kind: those of the state, and those of lists that are not complete yet.
    lost: BTreeMap<&'static Kind, Lost>,
    lost_of_lists: BTreeMap<&'static Kind, Lost>,
}

impl Holdings {
    /// Nothing yet, and at most so many bytes.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            bytes: 0,
            of_namespace: BTreeMap::new(),
            by_size: BTreeSet::new(),
            lost: BTreeMap::new(),
            lost_of_lists: BTreeMap::new(),
        }
    }

    /// How many bytes there are.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + BYTES_PER_LOST * self.remembered()
    }

    /// How many objects that are not held are remembered.
    pub(super) fn remembered(&self) -> usize {
        self.lost.values().chain(self.lost_of_lists.values()).map(|lost| lost.names.len()).sum()
    }

    /// Whether there are too many bytes.
    pub(super) fn exceeded(&self) -> bool {
        self.bytes() > self.most
    }

    /// Counts an object that is kept from now on.
    pub(super) fn add(&mut self, place: Place, object: &Object) {
        self.change(object, object.bytes(), 0);
        if object.held {
            self.find(place, object.kind, &object.namespace, &object.name);
        } else {
            self.lose(place, object);
        }
    }

    /// Counts an object no more.
    pub(super) fn take(&mut self, object: &Object) {
        self.change(object, 0, object.bytes());
    }

    /// Remembers that an object is not held, in at most a quarter of all bytes.
    pub(super) fn lose(&mut self, place: Place, object: &Object) {
        let has_room = self.remembered() < self.most / (4 * BYTES_PER_LOST);
        let lost = self.lost_at(place).entry(object.kind).or_default();
        if has_room {
            lost.names.insert(hash(&object.namespace, &object.name));
        } else {
            lost.more = true;
        }
    }

    /// Forgets that an object is not held: it is, or does not exist any more.
    pub(super) fn find(&mut self, place: Place, kind: &'static Kind, namespace: &str, name: &str) {
        if let Some(lost) = self.lost_at(place).get_mut(kind).filter(|lost| !lost.names.is_empty()) {
            lost.names.remove(&hash(namespace, name));
        }
    }

    /// Begins a list of a kind.
    pub(super) fn begin_list(&mut self, kind: &'static Kind) {
        self.lost_of_lists.remove(kind);
    }

    /// What a list has not held is what the state does not hold from now on.
    pub(super) fn end_list(&mut self, kind: &'static Kind) {
        let lost = self.lost_of_lists.remove(kind).unwrap_or_default();
        self.lost.insert(kind, lost);
    }

    /// How many objects of each kind are known not to be held.
    pub(super) fn lost(&self) -> impl Iterator<Item = (&'static Kind, usize)> {
        self.lost.iter().map(|(kind, lost)| (*kind, lost.names.len() + usize::from(lost.more)))
    }

    /// The objects of a kind that the state does not hold.
    pub(super) fn lost_of(&self, kind: &Kind) -> Option<&Lost> {
        self.lost.get(kind)
    }

    const fn lost_at(&mut self, place: Place) -> &mut BTreeMap<&'static Kind, Lost> {
        match place {
            Place::State => &mut self.lost,
            Place::List => &mut self.lost_of_lists,
        }
    }

    /// The namespace with the most bytes. What is in none, such as Namespaces, tenants do not write: it comes last.
    pub(super) fn largest(&self) -> Option<Arc<str>> {
        let mut namespaces = self.by_size.iter().rev().map(|(_, namespace)| namespace);
        let named = namespaces.find(|namespace| !namespace.is_empty());
        named.or_else(|| self.by_size.first().map(|(_, namespace)| namespace)).cloned()
    }

    fn change(&mut self, object: &Object, more: usize, less: usize) {
        let namespace = &object.namespace;
        let before = self.of_namespace.get(namespace).copied().unwrap_or_default();
        let after = (before + more).saturating_sub(less);
        self.bytes = (self.bytes + more).saturating_sub(less);
        self.by_size.remove(&(before, Arc::clone(namespace)));
        if after == 0 {
            self.of_namespace.remove(namespace);
        } else {
            self.by_size.insert((after, Arc::clone(namespace)));
            self.of_namespace.insert(Arc::clone(namespace), after);
        }
    }
}

fn hash(namespace: &str, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (namespace, name).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
