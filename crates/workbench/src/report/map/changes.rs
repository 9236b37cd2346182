//! What changes between two maps: lines across namespaces, memory that loses users, and retention.

use std::collections::{BTreeMap, BTreeSet};

use super::{MappedMemory, MemoryMap, Presence};

/// One change, with the titles of objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapChange {
    /// An object now reaches memory in another namespace.
    LineAdded {
        /// The object.
        user: String,
        /// The memory.
        memory: String,
    },
    /// An object does not reach memory in another namespace any more.
    LineRemoved {
        /// The object.
        user: String,
        /// The memory.
        memory: String,
    },
    /// Memory has lost users.
    UsersLost {
        /// The memory.
        memory: String,
        /// The users that it had.
        lost: Vec<String>,
        /// How many users it has now.
        left: usize,
    },
    /// Memory keeps its entries for another time, or another number of them.
    Retention {
        /// The memory.
        memory: String,
        /// What it was; empty for the default of the platform.
        before: String,
        /// What it is.
        after: String,
    },
}

/// Identifies a memory resource: the unit, the family and the title.
type Key<'m> = (&'m str, &'static str, String);

/// The changes, by kind and name.
pub fn changes(before: &MemoryMap, after: &MemoryMap) -> Vec<MapChange> {
    let (before, after) = (memories(before), memories(after));
    let none = MappedMemory::default();
    let mut all = Vec::new();
    let keys: BTreeSet<&Key<'_>> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let (was, is) = (before.get(key), after.get(key));
        let memory = &key.2;
        let users = |of: Option<&&MappedMemory>, crosses: bool| -> BTreeSet<String> {
            let lines = of.copied().unwrap_or(&none).users.iter().filter(|line| !crosses || line.crosses);
            lines.map(|line| line.user.title()).collect()
        };
        let (had, has) = (users(was, true), users(is, true));
        let line = |user: &String| (user.clone(), memory.clone());
        all.extend(
            has.difference(&had).map(line).map(|(user, memory)| MapChange::LineAdded { user, memory }),
        );
        all.extend(
            had.difference(&has).map(line).map(|(user, memory)| MapChange::LineRemoved { user, memory }),
        );
        // Who still names memory that is gone has lost it.
        let is_found = |it: &&&MappedMemory| it.presence == Presence::Found;
        let (had, has) = (users(was.filter(is_found), false), users(is.filter(is_found), false));
        let lost: Vec<String> = had.difference(&has).cloned().collect();
        if !lost.is_empty() {
            all.push(MapChange::UsersLost { memory: memory.clone(), lost, left: has.len() });
        }
        if let (Some(was), Some(is)) = (was.filter(is_found), is.filter(is_found))
            && was.facts.retention != is.facts.retention
        {
            let [before, after] = [was, is].map(|it| it.facts.retention.to_string());
            all.push(MapChange::Retention { memory: memory.clone(), before, after });
        }
    }
    all.sort();
    all
}

fn memories(map: &MemoryMap) -> BTreeMap<Key<'_>, &MappedMemory> {
    let of_unit = map.units.iter().flat_map(|of| of.memories.iter().map(move |memory| (of, memory)));
    of_unit.map(|(of, memory)| ((of.unit.as_str(), memory.family, memory.object.title()), memory)).collect()
}
