//! The part of a map that a user asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{MappedObject, MemoryMap};
use memgate_primitives::plain_text::{plain, shown_name};
use memgate_primitives::suggest::nearest;

/// The objects around one, up to a number of lines away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    kind: String,
    namespace: String,
    name: String,
    /// How many lines the farthest object is away.
    depth: usize,
}

/// What a map shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Part {
    /// Everything.
    #[default]
    All,
    /// These namespaces, and what their lines reach.
    Namespaces(BTreeSet<String>),
    /// What is around an object.
    Around,
}

/// The number of lines where none is given: an agent, its memory, and what else uses that.
const DEPTH: usize = 2;

impl Around {
    /// Reads `KIND/NAMESPACE/NAME`, or `KIND/NAME` of an object without a namespace, with `:DEPTH` or without.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.split_once('/').is_some_and(|(kind, _)| kind.eq_ignore_ascii_case("host")) {
            return Err("a host cannot be chosen; name a memory resource that has it".to_owned());
        }
        let (path, depth) = match text.split_once(':') {
            Some((path, depth)) => {
                let number = depth.parse().ok().filter(|depth| *depth > 0);
                (path, number.ok_or("behind the colon stands a number of lines, 1 or more")?)
            }
            None => (text, DEPTH),
        };
        let parts: Vec<&str> = path.split('/').collect();
        let (kind, namespace, name) = match *parts {
            [kind, namespace, name] => (kind, namespace, name),
            [kind, name] => (kind, "", name),
            _ => ("", "", ""),
        };
        if kind.is_empty() || name.is_empty() {
            return Err("write it like KIND/NAMESPACE/NAME, or KIND/NAMESPACE/NAME:DEPTH".to_owned());
        }
        let [kind, namespace, name] = [kind, namespace, name].map(str::to_owned);
        Ok(Self { kind, namespace, name, depth })
    }

    /// The object with the names that a map gives it.
    fn object(&self) -> MappedObject {
        let [namespace, name] = [&self.namespace, &self.name].map(|name| shown_name(name).into_owned());
        MappedObject { namespace, kind: plain(&self.kind).into_owned(), name, group: String::new() }
    }
}

impl fmt::Display for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&path(&self.object()))
    }
}

/// An object in the form of `--around`.
fn path(MappedObject { kind, namespace, name, .. }: &MappedObject) -> String {
    if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{namespace}/{name}") }
}

impl MemoryMap {
    fn objects(&self) -> impl Iterator<Item = &MappedObject> {
        let memories = self.sets.iter().flat_map(|set| &set.memories);
        memories.flat_map(|it| std::iter::once(&it.object).chain(it.users.iter().map(|line| &line.user)))
    }

    /// The namespaces of its objects.
    pub fn namespaces(&self) -> BTreeSet<&str> {
        self.objects().map(|object| &*object.namespace).filter(|name| !name.is_empty()).collect()
    }

    /// Keeps the memory of these namespaces with all that reaches it, and the memory that objects of them reach.
    pub fn keep_namespaces(&mut self, namespaces: &BTreeSet<String>) {
        self.part = Part::Namespaces(namespaces.clone());
        for set in &mut self.sets {
            set.memories.retain_mut(|memory| {
                if namespaces.contains(&memory.object.namespace) {
                    return true;
                }
                memory.users.retain(|line| namespaces.contains(&line.user.namespace));
                !memory.users.is_empty()
            });
        }
    }

    /// Keeps what is around an object. Whether it is there.
    pub fn keep_around(&mut self, around: &Around) -> bool {
        self.part = Part::Around;
        let (mut is_there, wanted) = (false, around.object());
        let is_it = |object: &MappedObject| {
            object.kind.eq_ignore_ascii_case(&wanted.kind)
                && (&object.namespace, &object.name) == (&wanted.namespace, &wanted.name)
        };
        for set in &mut self.sets {
            let mut lines: BTreeMap<&MappedObject, Vec<&MappedObject>> = BTreeMap::new();
            for memory in &set.memories {
                lines.entry(&memory.object).or_default();
                for line in &memory.users {
                    lines.entry(&memory.object).or_default().push(&line.user);
                    lines.entry(&line.user).or_default().push(&memory.object);
                }
            }
            let mut reached: BTreeSet<&MappedObject> =
                lines.keys().copied().filter(|object| is_it(object)).collect();
            is_there |= !reached.is_empty();
            let mut last: Vec<&MappedObject> = reached.iter().copied().collect();
            for _ in 0..around.depth {
                let next = last.iter().filter_map(|object| lines.get(object)).flatten().copied();
                last = next.filter(|object| reached.insert(object)).collect();
                if last.is_empty() {
                    break;
                }
            }
            let reached: BTreeSet<MappedObject> = reached.into_iter().cloned().collect();
            set.memories.retain_mut(|memory| {
                memory.users.retain(|line| reached.contains(&line.user));
                reached.contains(&memory.object)
            });
        }
        is_there
    }

    /// The object that another path most likely means: one of the same namespace and name, one of the same kind and name,
    /// one of nearly the same path, else of nearly the same name.
    pub fn nearest(&self, around: &Around) -> Option<String> {
        // As it was written, which may be no name.
        let Around { kind, namespace, name, .. } = around.clone();
        let wanted = MappedObject { kind, namespace, name, group: String::new() };
        let rank = |it: &MappedObject| {
            let is_other_kind = !it.kind.eq_ignore_ascii_case(&wanted.kind);
            (it.namespace != wanted.namespace, is_other_kind, path(it))
        };
        let of_name = |name: &str| self.objects().filter(|it| it.name == name).map(rank).min();
        let same = of_name(&wanted.name);
        if let Some((is_elsewhere, is_other_kind, path)) = &same
            && !(*is_elsewhere && *is_other_kind)
        {
            return Some(path.clone());
        }
        let paths: BTreeSet<String> = self.objects().map(path).collect();
        if let Some(nearest) = nearest(&path(&wanted), paths.iter().map(String::as_str)) {
            return Some(nearest.to_owned());
        }
        let names: BTreeSet<&str> = self.objects().map(|it| &*it.name).collect();
        let found = same.or_else(|| of_name(nearest(&wanted.name, names)?));
        found.map(|(.., path)| path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::map::{MapLine, MappedMemory, SetMap};

    fn object(kind: &str, namespace: &str, name: &str) -> MappedObject {
        let [kind, namespace, name] = [kind, namespace, name].map(str::to_owned);
        MappedObject { kind, namespace, name, group: String::new() }
    }

    /// Memory `m0` to `m3` in namespaces `a` to `d`, in a chain: `u0` reaches `m0` and `m1`, `u1` reaches `m1` and `m2`.
    fn chain() -> MemoryMap {
        let memory = |number: usize, namespace: &str| {
            let user = |of: usize| MapLine {
                user: object("Agent", ["a", "b", "c"][of], &format!("u{of}")),
                ..MapLine::default()
            };
            let users = [number.checked_sub(1), Some(number)].into_iter().flatten().filter(|it| *it < 3);
            MappedMemory {
                object: object("Memory", namespace, &format!("m{number}")),
                users: users.map(user).collect(),
                ..MappedMemory::default()
            }
        };
        let memories = ["a", "b", "c", "d"].into_iter().enumerate().map(|(number, it)| memory(number, it));
        MemoryMap {
            sets: vec![SetMap { memories: memories.collect(), ..SetMap::default() }],
            ..MemoryMap::default()
        }
    }

    fn lines(map: &MemoryMap) -> Vec<String> {
        let of = |memory: &MappedMemory| {
            let users: Vec<&str> = memory.users.iter().map(|line| &*line.user.name).collect();
            format!("{}: {}", memory.object.name, users.join(" "))
        };
        map.sets.iter().flat_map(|set| &set.memories).map(of).collect()
    }

    #[test]
    fn keeps_what_is_so_many_lines_away() {
        for (around, expected) in [
            ("Agent/a/u0:1", &["m0: u0", "m1: u0"][..]),
            ("agent/a/u0", &["m0: u0", "m1: u0 u1"]),
            ("Agent/a/u0:3", &["m0: u0", "m1: u0 u1", "m2: u1"]),
            ("Memory/a/m0:1", &["m0: u0"]),
            ("Memory/d/m3:1", &["m3: u2"]),
            ("Memory/d/m3:99", &["m0: u0", "m1: u0 u1", "m2: u1 u2", "m3: u2"]),
        ] {
            let mut map = chain();
            assert!(map.keep_around(&Around::parse(around).expect("is right")), "{around}");
            assert_eq!(lines(&map), expected, "{around}");
        }
        assert!(!chain().keep_around(&Around::parse("Memory/a/m1").expect("is right")));
    }

    #[test]
    fn keeps_a_namespace_and_what_its_lines_reach() {
        let mut map = chain();
        assert_eq!(map.namespaces(), BTreeSet::from(["a", "b", "c", "d"]));
        map.keep_namespaces(&BTreeSet::from(["b".to_owned()]));
        assert_eq!(lines(&map), ["m1: u0 u1", "m2: u1"]);
    }

    #[test]
    fn names_the_nearest_object() {
        for (wrong, expected) in [
            ("Memory/a/mO", Some("Memory/a/m0")),
            ("Memory/b/m7", Some("Memory/b/m1")),
            ("ArkMemory/team-x/m3", Some("Memory/d/m3")),
            ("Memory/x/nothing-like-it", None),
            // Names that several objects have.
            ("Query/b/same", Some("Agent/b/same")),
            ("memory/z/same", Some("Memory/a/same")),
            ("Agent/z/same", Some("Agent/b/same")),
        ] {
            let mut map = chain();
            for [kind, namespace] in [["Memory", "a"], ["Agent", "b"], ["Agent", "c"], ["Query", "d"]] {
                let object = object(kind, namespace, "same");
                map.sets[0].memories.push(MappedMemory { object, ..MappedMemory::default() });
            }
            assert_eq!(map.nearest(&Around::parse(wrong).expect("is right")).as_deref(), expected, "{wrong}");
        }
    }

    #[test]
    fn says_how_it_is_written() {
        for wrong in [
            "", "m", "a/b/c/d", "/a/b", "Memory/a/", "Memory/a/m:x", "Memory/a/m:-1", "Memory/a/m:0",
            "host/redis:6379",
        ] {
            assert!(Around::parse(wrong).is_err(), "{wrong}");
        }
    }
}
