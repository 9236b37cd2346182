//! Which of the objects that stand twice among the inputs a lookup of a decision found.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::kind::Kind;
use crate::object::{Object, Reference};

/// The objects that stand twice by kind, namespace and name, and whether a lookup found them.
#[derive(Debug, Default)]
pub struct StateUses(BTreeMap<&'static Kind, BTreeMap<String, BTreeMap<String, AtomicBool>>>);

impl StateUses {
    /// These objects, of which no lookup has found one yet.
    pub fn of(objects: impl IntoIterator<Item = Reference>) -> Self {
        let mut uses = Self::default();
        for Reference { kind, namespace, name } in objects {
            uses.0.entry(kind).or_default().entry(namespace).or_default().insert(name, AtomicBool::default());
        }
        uses
    }

    /// Notes that a lookup found those of a kind of which this holds.
    pub(super) fn note_where(&self, kind: &Kind, is_found: impl Fn(&str, &str) -> bool) {
        for (namespace, names) in self.0.get(kind).into_iter().flatten() {
            let found = names.iter().filter(|(name, _)| is_found(namespace, name));
            found.for_each(|(_, found)| found.store(true, Ordering::Relaxed));
        }
    }

    fn of_object(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&AtomicBool> {
        self.0.get(kind)?.get(namespace)?.get(name)
    }

    /// Notes that a lookup found this object.
    pub fn note(&self, object: &Object) {
        if let Some(found) = self.of_object(object.kind, &object.namespace, &object.name) {
            found.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a lookup found this object.
    pub fn has_read(&self, Reference { kind, namespace, name }: &Reference) -> bool {
        self.of_object(kind, namespace, name).is_some_and(|found| found.load(Ordering::Relaxed))
    }
}
