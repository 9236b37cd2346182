//! Sets and maps by hash whose order is that of insertion, so that no output depends on the order of a hash table. They are
//! several times faster than sorted ones where ten thousand names are compared.

use std::hash::Hash;
use std::sync::Arc;

/// A set in the order of insertion.
pub type Members<T> = indexmap::IndexSet<T>;

/// A map in the order of insertion.
pub type ByKey<K, V> = indexmap::IndexMap<K, V>;

/// A map of which copies are cheap: they share what it had when it was settled.
#[derive(Debug, Clone)]
pub struct Layered<K, V> {
    settled: Arc<ByKey<K, V>>,
    own: ByKey<K, V>,
}

impl<K: Eq + Hash, V> Layered<K, V> {
    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.own.get(key).or_else(|| self.settled.get(key))
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: K, value: V) {
        self.own.insert(key, value);
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Layered<K, V> {
    /// Shares all that it has with its copies from now on.
    pub fn settle(&mut self) {
        let own = std::mem::take(&mut self.own);
        if self.settled.is_empty() {
            self.settled = Arc::new(own);
        } else {
            Arc::make_mut(&mut self.settled).extend(own);
        }
    }

    /// Adds all of another map.
    pub fn extend(&mut self, others: Self) {
        self.own.extend(Arc::unwrap_or_clone(others.settled));
        self.own.extend(others.own);
    }
}

impl<K, V> Default for Layered<K, V> {
    fn default() -> Self {
        Self { settled: Arc::default(), own: ByKey::default() }
    }
}
