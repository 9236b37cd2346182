//! Which of the objects that stand twice among the inputs a lookup of a decision found.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::object::{Object, Reference};

/// The objects that stand twice, and whether a lookup found them.
#[derive(Debug, Default)]
pub struct StateUses(BTreeMap<Reference, AtomicBool>);

impl StateUses {
    /// These objects, of which no lookup has found one yet.
    pub fn of(objects: impl IntoIterator<Item = Reference>) -> Self {
        Self(objects.into_iter().map(|object| (object, AtomicBool::default())).collect())
    }

    /// Notes that a lookup found this object.
    pub fn note(&self, Object { kind, namespace, name, .. }: &Object) {
        let (namespace, name) = (namespace.to_string(), name.to_string());
        if let Some(found) = self.0.get(&Reference { kind, namespace, name }) {
            found.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a lookup found this object.
    pub fn has_read(&self, object: &Reference) -> bool {
        self.0.get(object).is_some_and(|found| found.load(Ordering::Relaxed))
    }
}
