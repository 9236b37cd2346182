//! A hash set and a hash map that cannot be iterated, so that no output depends on the order of a hash table. They are
//! several times faster than sorted ones where ten thousand names are compared.

#![expect(clippy::disallowed_types, reason = "the order of a table is not visible")]

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// A set that cannot be iterated.
#[derive(Debug, Clone)]
pub struct Members<T>(HashSet<T>);

impl<T: Eq + Hash> Members<T> {
    /// An empty set with room for so many.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(HashSet::with_capacity(capacity))
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it contains a value.
    pub fn contains<Q: Eq + Hash + ?Sized>(&self, value: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.contains(value)
    }

    /// Adds a value; returns whether it is new.
    pub fn insert(&mut self, value: T) -> bool {
        self.0.insert(value)
    }
}

impl<T: Eq + Hash + Ord> Members<T> {
    /// Its values, sorted.
    pub fn sorted(&self) -> Vec<&T> {
        let mut sorted: Vec<&T> = self.0.iter().collect();
        sorted.sort_unstable();
        sorted
    }
}

impl<T: Eq + Hash> Extend<T> for Members<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        self.0.extend(values);
    }
}

impl<T: Eq + Hash> PartialEq for Members<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<T: Eq + Hash> FromIterator<T> for Members<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// A map that cannot be iterated. The last of several values of a key counts.
#[derive(Debug, Clone)]
pub struct ByKey<K, V>(HashMap<K, V>);

impl<K: Eq + Hash, V> ByKey<K, V> {
    /// An empty map with room for this many keys.
    pub fn with_capacity(keys: usize) -> Self {
        Self(HashMap::with_capacity(keys))
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }
}

impl<K: Eq + Hash, V> ByKey<K, V> {
    /// Sets the value of a key.
    pub fn insert(&mut self, key: K, value: V) {
        self.0.insert(key, value);
    }

    /// Adds all of another map.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }
}

impl<K: Eq + Hash, V: Default> ByKey<K, V> {
    /// The value of a key, to change it; inserts the default if it is missing.
    pub fn or_default(&mut self, key: K) -> &mut V {
        self.0.entry(key).or_default()
    }
}

impl<K, V> Default for ByKey<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, V> FromIterator<(K, V)> for ByKey<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// The same, of which copies are cheap: they share what it had when it was settled.
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
