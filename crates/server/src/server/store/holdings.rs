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

/// The bytes of the state, by namespace, and the objects that are not in it.
#[derive(Debug)]
pub(super) struct Holdings {
    /// How many bytes there may be.
    most: usize,
    bytes: usize,
    of_namespace: BTreeMap<Arc<str>, usize>,
    by_size: BTreeSet<(usize, Arc<str>)>,
    /// The hashes of the names of objects that are not held, by kind.
    lost: BTreeMap<&'static Kind, BTreeSet<u64>>,
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
        }
    }

    /// How many bytes there are.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + BYTES_PER_LOST * self.lost.values().map(BTreeSet::len).sum::<usize>()
    }

    /// Whether there are too many bytes.
    pub(super) fn exceeded(&self) -> bool {
        self.bytes() > self.most
    }

    /// Counts an object that is kept from now on.
    pub(super) fn add(&mut self, object: &Object) {
        self.change(object, object.bytes(), 0);
        if object.held {
            self.find(object.kind, &object.namespace, &object.name);
        } else {
            self.lose(object);
        }
    }

    /// Counts an object no more.
    pub(super) fn take(&mut self, object: &Object) {
        self.change(object, 0, object.bytes());
    }

    /// Remembers that an object is not held, as far as there is room to.
    pub(super) fn lose(&mut self, object: &Object) {
        let lost = self.lost.entry(object.kind).or_default();
        if lost.len() < self.most / (4 * BYTES_PER_LOST) {
            lost.insert(hash(&object.namespace, &object.name));
        }
    }

    /// Forgets that an object is not held: it is, or does not exist any more.
    pub(super) fn find(&mut self, kind: &'static Kind, namespace: &str, name: &str) {
        if let Some(lost) = self.lost.get_mut(kind).filter(|lost| !lost.is_empty()) {
            lost.remove(&hash(namespace, name));
        }
    }

    /// Forgets which objects of a kind are not held: a list will show them.
    pub(super) fn forget_lost(&mut self, kind: &'static Kind) {
        self.lost.insert(kind, BTreeSet::new());
    }

    /// How many objects of each kind are known not to be held.
    pub(super) fn lost(&self) -> impl Iterator<Item = (&'static Kind, usize)> {
        self.lost.iter().map(|(kind, lost)| (*kind, lost.len()))
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
