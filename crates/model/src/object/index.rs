//! Indexes on the objects of a kind: finds objects by a key without a scan of all objects.
//!
//! An index is made at the first search and then follows all changes, so kinds that are never searched need
//! none.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, OnceLock};

use immutable_chunkmap::map::Map;

use crate::object::Object;
use crate::object::objects::{CHUNK, Key, Objects, key_of};

/// How many indexes a kind can have.
const MAX_INDEXES: usize = 4;

/// Keys by which objects of a kind are found.
#[derive(Debug)]
pub struct Index {
    /// The slot of the index, from 0 to 3. Each index of a kind has its own slot.
    pub place: usize,
    /// Returns the keys of an object, from the object alone; the fewer, the less an index takes.
    pub keys: for<'o> fn(&'o Object) -> Vec<Cow<'o, str>>,
}

/// Finds objects by name, in any namespace.
pub static BY_NAME: Index = Index { place: 0, keys: |object| vec![Cow::Borrowed(&object.name)] };

/// The indexes of one kind. Each is made when it is first needed.
#[derive(Debug, Clone, Default)]
pub(super) struct Indexes([OnceLock<Entries>; MAX_INDEXES]);

/// One index.
#[derive(Debug, Clone)]
struct Entries {
    index: &'static Index,
    /// Objects by the hash of their key, then by namespace and name.
    sorted: Map<Position, Arc<Object>, CHUNK>,
    /// How many objects have a key with this hash, once that was asked for.
    counts: OnceLock<Map<u64, usize, CHUNK>>,
}

/// The hash of a key, and the object that has it. A position without an object sorts before all objects with
/// that hash.
type Position = (u64, Option<Key>);

impl Indexes {
    /// The objects that have this key, by namespace and name; `all` are all objects of the kind.
    pub(super) fn find<'i>(
        &'i self,
        index: &'static Index,
        key: String,
        all: &'i Objects,
    ) -> impl Iterator<Item = &'i Arc<Object>> + use<'i> {
        let entries = self.0.get(index.place).map(|place| place.get_or_init(|| Entries::of(index, all)));
        let wanted = hash(&key);
        let from_first = |entries: &'i Entries| entries.sorted.range::<Position, _>((wanted, None)..);
        let same_hash = entries.map(from_first).into_iter().flatten();
        let same_hash = same_hash.take_while(move |((hash, _), _)| *hash == wanted);
        let objects = same_hash.map(|(_, object)| object);
        objects.filter(move |object| (index.keys)(object).iter().any(|found| **found == *key))
    }

    /// How many objects have this key, without a look at each of them. Keys with one hash count as one.
    pub(super) fn count(&self, index: &'static Index, key: &str, all: &Objects) -> usize {
        let Some(place) = self.0.get(index.place) else { return 0 };
        let entries = place.get_or_init(|| Entries::of(index, all));
        entries.counts.get_or_init(|| entries.counted()).get(&hash(key)).copied().unwrap_or_default()
    }

    /// Adds an object that was not there.
    pub(super) fn insert(&mut self, object: &Arc<Object>) {
        for entries in self.0.iter_mut().filter_map(OnceLock::get_mut) {
            for position in entries.index.positions(object) {
                entries.change_count(position.0, 1);
                entries.sorted.insert_cow(position, Arc::clone(object));
            }
        }
    }

    /// Removes an object that was there.
    pub(super) fn remove(&mut self, object: &Object) {
        for entries in self.0.iter_mut().filter_map(OnceLock::get_mut) {
            for position in entries.index.positions(object) {
                entries.change_count(position.0, -1);
                entries.sorted.remove_cow(&position);
            }
        }
    }
}

impl Index {
    /// The positions of an object in the index.
    fn positions(&self, object: &Object) -> Vec<Position> {
        (self.keys)(object).iter().map(|key| (hash(key), Some(key_of(object)))).collect()
    }
}

impl Entries {
    fn of(index: &'static Index, all: &Objects) -> Self {
        let entries = |object: &Arc<Object>| {
            let object = Arc::clone(object);
            index.positions(&object).into_iter().map(move |position| (position, Arc::clone(&object)))
        };
        Self { index, sorted: all.kept().flat_map(entries).collect(), counts: OnceLock::new() }
    }

    fn counted(&self) -> Map<u64, usize, CHUNK> {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for ((hash, _), _) in &self.sorted {
            *counts.entry(*hash).or_default() += 1;
        }
        counts.into_iter().collect()
    }

    fn change_count(&mut self, hash: u64, change: isize) {
        if let Some(counts) = self.counts.get_mut() {
            let count = counts.get(&hash).copied().unwrap_or_default();
            counts.insert_cow(hash, count.saturating_add_signed(change));
        }
    }
}

fn hash(key: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

#[cfg(test)]
mod tests {
    use crate::kind::SECRET;
    use crate::object::{Coverage, KindState};

    use super::*;

    static BY_START: Index = Index {
        place: 1,
        keys: |object| {
            let start = object.name.get(..2).filter(|start| *start != "no").map(Cow::Borrowed);
            start.into_iter().collect()
        },
    };

    fn object(namespace: &str, name: &str) -> Object {
        let text = format!(r#"{{"metadata": {{"namespace": "{namespace}", "name": "{name}"}}}}"#);
        let read = Object::read(&SECRET, &mut serde_json::Deserializer::from_str(&text));
        read.expect("an object").expect("a name")
    }

    fn found(state: &KindState, index: &'static Index, key: &str) -> Vec<String> {
        state.find(index, key).map(|object| format!("{}/{}", object.namespace, object.name)).collect()
    }

    #[test]
    fn finds_by_namespace_and_name_and_follows_changes() {
        let mut state = KindState::new(Coverage::Complete);
        for (namespace, name) in [("b", "ab1"), ("a", "ab2"), ("a", "ab1"), ("a", "cd"), ("a", "no1")] {
            state.insert(object(namespace, name));
        }
        assert_eq!(found(&state, &BY_START, "ab"), ["a/ab1", "a/ab2", "b/ab1"]);
        assert_eq!(found(&state, &BY_NAME, "ab1"), ["a/ab1", "b/ab1"]);
        assert_eq!((state.count(&BY_START, "ab"), state.count(&BY_START, "zz")), (3, 0));
        let before = state.clone();
        state.remove("a", "ab1");
        state.remove("a", "no1");
        state.insert(object("a", "ab0"));
        state.insert(object("b", "ab1"));
        state.insert(object("b", "no2"));
        assert_eq!(found(&state, &BY_START, "ab"), ["a/ab0", "a/ab2", "b/ab1"]);
        assert_eq!((state.count(&BY_START, "ab"), before.count(&BY_START, "ab")), (3, 3));
        assert_eq!(found(&state, &BY_NAME, "ab1"), ["b/ab1"]);
        assert_eq!(found(&state, &BY_NAME, "no2"), ["b/no2"]);
        assert_eq!(found(&state, &BY_START, "no"), [""; 0]);
        assert_eq!(found(&before, &BY_NAME, "ab1"), ["a/ab1", "b/ab1"]);
    }
}
