//! Which of the paths with objects that were given as state have one that a lookup of a decision found, and which of the
//! objects that stand twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::object::{Object, Reference};

/// The objects of each path of state, and whether a lookup found one of them.
#[derive(Debug, Default)]
pub struct StateUses {
    /// The number of the path that an object is from.
    paths: BTreeMap<Reference, usize>,
    found: Vec<AtomicBool>,
    /// The objects that stand twice, and whether a lookup found them.
    repeated: BTreeMap<Reference, AtomicBool>,
}

impl StateUses {
    /// The same objects, of which no lookup has found one yet.
    #[must_use]
    pub fn again(&self) -> Self {
        let unused = |count: usize| std::iter::repeat_with(AtomicBool::default).take(count);
        let repeated = self.repeated.keys().cloned().zip(unused(self.repeated.len()));
        Self {
            paths: self.paths.clone(),
            found: unused(self.found.len()).collect(),
            repeated: repeated.collect(),
        }
    }

    /// Adds a path. What is added from now on belongs to it.
    pub fn add_path(&mut self) {
        self.found.push(AtomicBool::default());
    }

    /// Takes back the path that was added last and has no file.
    pub fn drop_path(&mut self) {
        self.found.pop();
    }

    /// Adds an object.
    pub fn add(&mut self, object: Reference) {
        self.paths.insert(object, self.found.len().saturating_sub(1));
    }

    /// Counts the current path as used: it has something that is not looked up by its name.
    pub fn mark(&mut self) {
        self.mark_path(self.found.len().saturating_sub(1));
    }

    fn mark_path(&self, path: usize) {
        if let Some(found) = self.found.get(path) {
            found.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that a lookup found this object.
    pub fn note(&self, Object { kind, namespace, name, .. }: &Object) {
        let (namespace, name) = (namespace.to_string(), name.to_string());
        let object = Reference { kind, namespace, name };
        if let Some(path) = self.paths.get(&object) {
            self.mark_path(*path);
        }
        if let Some(found) = self.repeated.get(&object) {
            found.store(true, Ordering::Relaxed);
        }
    }

    /// Adds an object that stands twice.
    pub fn add_repeated(&mut self, object: Reference) {
        self.repeated.entry(object).or_default();
    }

    /// Whether a lookup found an object that stands twice.
    pub fn has_read_repeated(&self, object: &Reference) -> bool {
        self.repeated.get(object).is_some_and(|found| found.load(Ordering::Relaxed))
    }

    /// Whether there is neither a path nor an object that stands twice.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.repeated.is_empty()
    }

    /// How many objects there are.
    pub fn count(&self) -> usize {
        self.paths.len()
    }

    /// Whether a lookup found an object of each path, or one that `is_used`.
    pub fn are_used(&self, is_used: impl Fn(&Reference) -> bool) -> Vec<bool> {
        let mut used: Vec<bool> = self.found.iter().map(|found| found.load(Ordering::Relaxed)).collect();
        for (object, path) in &self.paths {
            if let Some(used) = used.get_mut(*path).filter(|used| !**used) {
                *used = is_used(object);
            }
        }
        used
    }
}
