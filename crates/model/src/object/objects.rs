//! The objects of a kind by namespace and name, in a map whose copies share their equal parts. A change copies
//! one chunk and the path to it, however many objects there are (docs/adr/0018).

use std::sync::{Arc, Mutex, PoisonError};

use immutable_chunkmap::map::Map;

use crate::object::Object;
use crate::recurring_texts::RecurringTexts;

/// How many entries a chunk holds. Larger chunks are faster to read and to fill, and slower to change.
pub(super) const CHUNK: usize = 64;

/// The namespace and the name of an object, shared with it.
pub(super) type Key = (Arc<str>, Arc<str>);

/// The key of an object.
pub(super) fn key_of(object: &Object) -> Key {
    (Arc::clone(&object.namespace), Arc::clone(&object.name))
}

/// All objects of a kind that are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Objects {
    map: Map<Key, Arc<Object>, CHUNK>,
    /// Those of them that are not held.
    not_held: Map<Key, Arc<Object>, CHUNK>,
    /// The texts that objects of this kind share, copies of this map among them.
    recurring: Arc<Mutex<RecurringTexts>>,
}

impl Objects {
    /// None yet. They will share texts with these.
    pub(super) fn emptied(&self) -> Self {
        Self { recurring: Arc::clone(&self.recurring), ..Self::default() }
    }

    /// An object as it is kept: it shares the texts that others have too.
    pub(super) fn settled(&self, mut object: Object) -> Arc<Object> {
        object.settle(&mut self.recurring.lock().unwrap_or_else(PoisonError::into_inner));
        Arc::new(object)
    }

    /// Adds an object; the one whose place it takes.
    pub(super) fn insert(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        let key = key_of(&object);
        if object.held {
            self.not_held.remove_cow(&key);
        } else {
            self.not_held.insert_cow(key.clone(), Arc::clone(&object));
        }
        self.map.insert_cow(key, object)
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let key = (namespace.into(), name.into());
        self.not_held.remove_cow(&key);
        self.map.remove_cow(&key)
    }

    /// What is kept of the object of this name.
    pub(super) fn kept_of(&self, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.map.get(&(namespace.into(), name.into()))
    }

    /// The object of this name.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&Object> {
        self.kept_of(namespace, name).map(AsRef::as_ref).filter(|object| object.held)
    }

    /// How many are held.
    pub(super) fn len(&self) -> usize {
        self.map.len() - self.not_held()
    }

    /// How many are not held.
    pub(super) fn not_held(&self) -> usize {
        self.not_held.len()
    }

    /// Whether there are no objects.
    pub(super) fn is_empty(&self) -> bool {
        self.map.len() == 0
    }

    /// Whether a namespace has any objects.
    pub(super) fn is_in_use(&self, namespace: &str) -> bool {
        self.in_namespace(namespace).next().is_some()
    }

    /// All of them, held or not, by namespace and name.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.map.into_iter().map(|(_, object)| object)
    }

    /// All objects, by namespace and name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Object> {
        self.kept_if(true).map(AsRef::as_ref)
    }

    /// Those that are held or those that are not, by namespace and name.
    pub(crate) fn kept_if(&self, held: bool) -> impl Iterator<Item = &Arc<Object>> {
        let all = if held { &self.map } else { &self.not_held };
        all.into_iter().map(|(_, object)| object).filter(move |object| object.held == held)
    }

    /// The objects of a namespace, by name.
    pub(crate) fn in_namespace<'o>(&'o self, namespace: &str) -> impl Iterator<Item = &'o Object> + use<'o> {
        in_namespace(&self.map, namespace).map(AsRef::as_ref).filter(|object| object.held)
    }

    /// All of a namespace, held or not, by name.
    pub(crate) fn kept_in<'o>(&'o self, namespace: &str) -> impl Iterator<Item = &'o Arc<Object>> + use<'o> {
        in_namespace(&self.map, namespace)
    }

    /// Those of a namespace that are not held, by name.
    pub(crate) fn not_held_in<'o>(
        &'o self,
        namespace: &str,
    ) -> impl Iterator<Item = &'o Arc<Object>> + use<'o> {
        in_namespace(&self.not_held, namespace)
    }
}

fn in_namespace<'o>(
    all: &'o Map<Key, Arc<Object>, CHUNK>,
    namespace: &str,
) -> impl Iterator<Item = &'o Arc<Object>> + use<'o> {
    let namespace: Arc<str> = namespace.into();
    let entries = all.range::<Key, _>((Arc::clone(&namespace), "".into())..);
    let entries = entries.take_while(move |((home, _), _)| *home == namespace);
    entries.map(|(_, object)| object)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use crate::kind::SECRET;

    use super::*;

    fn object(namespace: &str, name: &str, uid: usize) -> Object {
        let value = serde_json::json!({"metadata": {"name": name, "namespace": namespace}, "data": {uid.to_string(): ""}});
        Object::read(&SECRET, value).expect("an object").expect("a name")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// The map agrees with a sorted map after the same changes, and earlier copies stay unchanged.
        #[test]
        fn follows_any_changes(changes in prop::collection::vec((0_usize..4, 0_usize..400, prop::bool::weighted(0.7)), 0..1500)) {
            let (mut objects, mut expected) = (Objects::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for (step, (namespace, name, is_added)) in changes.into_iter().enumerate() {
                let (namespace, name) = (["", "a", "a-b", "b"][namespace].to_owned(), format!("n{name}"));
                let before = if is_added {
                    let before = objects.insert(objects.settled(object(&namespace, &name, step)));
                    prop_assert_eq!(before.is_some(), expected.insert((namespace.clone(), name.clone()), step).is_some());
                    before
                } else {
                    let before = objects.remove(&namespace, &name);
                    prop_assert_eq!(before.is_some(), expected.remove(&(namespace.clone(), name.clone())).is_some());
                    before
                };
                prop_assert!(before.is_none_or(|before| *before.namespace == *namespace && *before.name == *name));
                if step % 200 == 0 {
                    copies.push((objects.clone(), expected.clone()));
                }
            }
            copies.push((objects, expected));
            for (objects, expected) in copies {
                let place = |object: &Object| (object.namespace.to_string(), object.name.to_string());
                prop_assert_eq!(objects.all().map(place).collect::<Vec<_>>(), expected.keys().cloned().collect::<Vec<_>>());
                prop_assert_eq!((objects.len(), objects.is_empty()), (expected.len(), expected.is_empty()));
                for namespace in ["", "a", "a-", "a-b", "b", "c"] {
                    let wanted = expected.keys().filter(|(home, _)| home == namespace).cloned();
                    let wanted: Vec<_> = wanted.collect();
                    prop_assert_eq!(objects.is_in_use(namespace), !wanted.is_empty());
                    prop_assert_eq!(objects.in_namespace(namespace).map(place).collect::<Vec<_>>(), wanted);
                }
                for ((namespace, name), step) in &expected {
                    let found = objects.get(namespace, name);
                    prop_assert!(found.is_some_and(|found| found.has_data_key(&step.to_string())));
                }
            }
        }
    }

    #[test]
    fn objects_of_a_namespace_share_its_text() {
        let mut objects = Objects::default();
        for (namespace, name) in [("a", "one"), ("b", "one"), ("a", "two"), ("a", "one")] {
            objects.insert(objects.settled(object(namespace, name, 0)));
        }
        let texts: Vec<_> = objects.in_namespace("a").map(|object| object.namespace.as_ptr()).collect();
        assert_eq!(texts.len(), 2);
        assert_eq!(texts[0], texts[1]);
    }
}
