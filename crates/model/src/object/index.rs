//! Indexes on the objects of a kind: finds objects by a key without a scan of all objects.
//!
//! An index is made at the first search and then follows all changes, so kinds that are never searched need
//! none. A copy with a few changes makes it for what it is a copy of too: other copies need not make it again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock, OnceLock};

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

/// How many changes a copy keeps apart from what it shares. With more of them it is another state.
const MAX_CHANGES: usize = 16;

/// The indexes of one kind. Each is made when it is first needed.
#[derive(Debug, Clone, Default)]
pub(super) struct Indexes([Slot; MAX_INDEXES]);

/// The place of an index.
#[derive(Debug, Clone, Default)]
struct Slot {
    /// What copies share.
    shared: Arc<OnceLock<Entries>>,
    /// What was added since then, and what was removed: while nobody has made the index.
    changes: Vec<(bool, Arc<Object>)>,
    /// The index with these changes.
    changed: OnceLock<Entries>,
}

/// One index.
#[derive(Debug, Clone)]
struct Entries {
    index: &'static Index,
    /// Objects by the hash of their key, then by namespace and name, in the order of [`Part`].
    sorted: [Sorted; 3],
    /// How many objects have a key with this hash, once that was asked for.
    counts: OnceLock<Map<Hash, usize, CHUNK>>,
}

/// Which objects of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Those that are held and stay.
    Staying,
    /// Those that are held and being deleted.
    Leaving,
    /// Those that are not held.
    NotHeld,
}

impl Part {
    /// All that are held.
    pub(super) const HELD: [Self; 2] = [Self::Staying, Self::Leaving];

    fn of(object: &Object) -> Self {
        match object.held {
            true if object.deleting() => Self::Leaving,
            true => Self::Staying,
            false => Self::NotHeld,
        }
    }
}

type Sorted = Map<Position, Arc<Object>, CHUNK>;

/// The hash of a key. Its own keys are random, so that a user cannot prepare two keys with one hash: objects are found without
/// a look at theirs.
type Hash = u64;

/// The hash of a key, and the object that has it. A position without an object sorts before all objects with
/// that hash.
type Position = (Hash, Option<Key>);

impl Indexes {
    fn entries(&self, index: &'static Index, all: &Objects) -> Option<&Entries> {
        self.0.get(index.place).map(|slot| slot.entries(index, all))
    }

    /// The objects of a part that have this key, by namespace and name: in all namespaces, or in one. `all` are all objects of
    /// the kind.
    pub(super) fn find<'i>(
        &'i self,
        (index, key): (&'static Index, &str),
        namespace: Option<&str>,
        part: Part,
        all: &'i Objects,
    ) -> impl Iterator<Item = &'i Arc<Object>> + use<'i> {
        let sorted = self.entries(index, all).and_then(|entries| entries.sorted.get(part as usize));
        let found = sorted.filter(|sorted| sorted.len() > 0).map(|sorted| {
            let wanted = hash(key);
            let home: Option<Arc<str>> = namespace.map(Into::into);
            let first = (wanted, home.clone().map(|home| (home, "".into())));
            let is_it = move |object: &Object| home.as_ref().is_none_or(|home| *home == object.namespace);
            let found = sorted.range::<Position, _>(first..);
            let found = found.take_while(move |((hash, _), object)| *hash == wanted && is_it(object));
            // A range is large, and callers pass it on.
            Box::new(found.map(|(_, object)| object)) as Box<dyn Iterator<Item = &'i Arc<Object>> + 'i>
        });
        found.into_iter().flatten()
    }

    /// How many objects have this key, without a look at each of them.
    pub(super) fn count(&self, index: &'static Index, key: &str, all: &Objects) -> usize {
        let Some(entries) = self.entries(index, all) else { return 0 };
        entries.counts.get_or_init(|| entries.counted()).get(&hash(key)).copied().unwrap_or_default()
    }

    /// Whether the object of this namespace and name has this key, without a look at it.
    pub(super) fn has(
        &self,
        (index, key): (&'static Index, &str),
        object: (&str, &str),
        all: &Objects,
    ) -> bool {
        let position = (hash(key), Some((object.0.into(), object.1.into())));
        let entries = self.entries(index, all);
        entries.is_some_and(|entries| entries.sorted.iter().any(|sorted| sorted.get(&position).is_some()))
    }

    /// Adds an object that was not there, or removes one that was.
    pub(super) fn change(&mut self, is_added: bool, object: &Arc<Object>) {
        self.0.iter_mut().for_each(|slot| slot.change(is_added, object));
    }
}

impl Slot {
    fn entries(&self, index: &'static Index, all: &Objects) -> &Entries {
        if self.changes.is_empty() {
            return self.shared.get_or_init(|| Entries::of(index, all));
        }
        self.changed.get_or_init(|| {
            let Some(before) = self.shared.get() else {
                let entries = Entries::of(index, all);
                let mut before = entries.clone();
                self.changes.iter().rev().for_each(|(is_added, object)| before.change(!is_added, object));
                let _made_meanwhile = self.shared.set(before);
                return entries;
            };
            before.with(&self.changes)
        })
    }

    fn change(&mut self, is_added: bool, object: &Arc<Object>) {
        if let Some(entries) = self.changed.take() {
            (self.shared, self.changes) = (Arc::new(entries.into()), Vec::new());
        }
        // What others share is left to them: a copy that is never searched needs no index of its own.
        let own = Arc::get_mut(&mut self.shared).filter(|_| self.changes.is_empty());
        if let Some(entries) = own.and_then(OnceLock::get_mut) {
            return entries.change(is_added, object);
        }
        self.changes.push((is_added, Arc::clone(object)));
        if self.changes.len() > MAX_CHANGES {
            let entries = self.shared.get().map(|before| before.with(&self.changes));
            *self = Self {
                shared: Arc::new(entries.map_or_else(OnceLock::new, OnceLock::from)),
                ..Self::default()
            };
        }
    }
}

impl Index {
    /// The positions of an object in the index.
    fn positions(&self, object: &Object) -> Vec<Position> {
        let mut keys = (self.keys)(object);
        keys.sort_unstable();
        keys.dedup();
        keys.iter().map(|key| (hash(key), Some(key_of(object)))).collect()
    }
}

impl Entries {
    fn of(index: &'static Index, all: &Objects) -> Self {
        let mut sorted = [Vec::new(), Vec::new(), Vec::new()];
        for object in [true, false].into_iter().flat_map(|held| all.kept_if(held)) {
            if let Some(of_part) = sorted.get_mut(Part::of(object) as usize) {
                let positions = index.positions(object).into_iter();
                of_part.extend(positions.map(|position| (position, Arc::clone(object))));
            }
        }
        let sorted = sorted.map(|it| it.into_iter().collect());
        Self { index, sorted, counts: OnceLock::new() }
    }

    /// A copy with these changes.
    fn with(&self, changes: &[(bool, Arc<Object>)]) -> Self {
        let mut entries = self.clone();
        for (is_added, object) in changes {
            entries.change(*is_added, object);
        }
        entries
    }

    fn change(&mut self, is_added: bool, object: &Arc<Object>) {
        let part = Part::of(object) as usize;
        for position in self.index.positions(object) {
            self.change_count(position.0, if is_added { 1 } else { -1 });
            let Some(sorted) = self.sorted.get_mut(part) else { continue };
            if is_added {
                sorted.insert_cow(position, Arc::clone(object));
            } else {
                sorted.remove_cow(&position);
            }
        }
    }

    fn counted(&self) -> Map<Hash, usize, CHUNK> {
        let mut counts: BTreeMap<Hash, usize> = BTreeMap::new();
        for ((hash, _), _) in self.sorted.iter().flatten() {
            *counts.entry(*hash).or_default() += 1;
        }
        counts.into_iter().collect()
    }

    fn change_count(&mut self, hash: Hash, change: isize) {
        if let Some(counts) = self.counts.get_mut() {
            let count = counts.get(&hash).copied().unwrap_or_default();
            counts.insert_cow(hash, count.saturating_add_signed(change));
        }
    }
}

fn hash(key: &str) -> Hash {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one(key)
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
        read(&format!(r#""namespace": "{namespace}", "name": "{name}""#))
    }

    fn leaving(namespace: &str, name: &str) -> Object {
        read(&format!(r#""namespace": "{namespace}", "name": "{name}", "deletionTimestamp": "now""#))
    }

    fn read(metadata: &str) -> Object {
        let text = format!(r#"{{"metadata": {{{metadata}}}}}"#);
        let read = Object::read(&SECRET, &mut serde_json::Deserializer::from_str(&text));
        read.expect("an object").expect("a name")
    }

    fn found(state: &KindState, index: &'static Index, key: &str) -> Vec<String> {
        let found = state.find((index, key), None);
        found.map(|object| format!("{}/{}", object.namespace, object.name)).collect()
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
        assert!(state.has((&BY_START, "ab"), ("a", "ab1")) && !state.has((&BY_START, "cd"), ("a", "ab1")));
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
        state.insert(leaving("a", "ab0"));
        assert_eq!(found(&state, &BY_START, "ab"), ["a/ab2", "b/ab1", "a/ab0"]);
        state.insert(object("a", "ab0"));
        assert_eq!(found(&state, &BY_START, "ab"), ["a/ab0", "a/ab2", "b/ab1"]);
        state.insert(leaving("a", "ab0"));
        state.remove("a", "ab0");
        assert_eq!(found(&state, &BY_START, "ab"), ["a/ab2", "b/ab1"]);
        assert_eq!(found(&state, &BY_START, "no"), [""; 0]);
        assert_eq!(found(&before, &BY_NAME, "ab1"), ["a/ab1", "b/ab1"]);
    }

    #[test]
    fn a_copy_with_changes_makes_the_index_for_all_copies() {
        let mut state = KindState::new(Coverage::Complete);
        for number in 0..40 {
            state.insert(object("a", &format!("ab{number:02}")));
        }
        let mut changed = state.clone();
        changed.remove("a", "ab00");
        changed.insert(object("b", "ab01"));
        let made = |state: &KindState| state.indexes.0[BY_START.place].shared.get().is_some();
        assert!(!made(&state));
        assert_eq!(changed.count(&BY_START, "ab"), 40);
        assert!(made(&state));
        let mut other = state.clone();
        other.remove("a", "ab01");
        assert_eq!((other.count(&BY_START, "ab"), found(&other, &BY_START, "ab").len()), (39, 39));
        assert_eq!((state.count(&BY_START, "ab"), found(&state, &BY_START, "ab").len()), (40, 40));
        changed.insert(object("c", "ab01"));
        assert_eq!((changed.count(&BY_START, "ab"), found(&changed, &BY_START, "ab").len()), (41, 41));
        // With very many changes before the first search it is another state.
        let mut other = KindState::new(Coverage::Complete);
        for number in 0..40 {
            other.insert(object("a", &format!("ab{number:02}")));
            other.remove("a", &format!("ab{:02}", number / 2));
        }
        assert_eq!(found(&other, &BY_START, "ab").len(), 20);
    }
}
