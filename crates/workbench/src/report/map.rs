//! The map of memory: memory resources, and the agents and pods that reach them.
//!
//! All texts of a map can be shown as they are: credentials in them are masked, and control characters are spaces. The
//! map is sorted, so that a diff of two maps shows what has changed.

mod text;

pub use text::write;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use memgate_primitives::named::named;

/// The map of each unit of files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryMap {
    /// One map without units.
    pub units: Vec<UnitMap>,
}

/// The map of files that are judged together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitMap {
    /// The name of the unit; empty without units.
    pub unit: String,
    /// The memory resources, by namespace, kind and name.
    pub memories: Vec<MappedMemory>,
    /// The objects that are denied or warned about, once they are judged.
    pub judged: BTreeMap<MappedObject, MapVerdict>,
}

impl UnitMap {
    /// The verdict of an object that uses memory.
    pub fn verdict(&self, object: &MappedObject) -> MapVerdict {
        self.judged.get(object).copied().unwrap_or_default()
    }

    /// The verdict of a memory resource.
    pub fn verdict_of(&self, memory: &MappedMemory) -> MapVerdict {
        let own = match memory.presence {
            Presence::Missing => MapVerdict::Missing,
            _ => MapVerdict::Clean,
        };
        own.max(self.verdict(&memory.object))
    }
}

named! {
    /// The verdict of an object, the strictest last.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum MapVerdict {
        /// Nothing was found.
        #[default]
        Clean = "ok",
        /// It is memory that something names, and that does not exist.
        Missing = "not found",
        /// It has warnings.
        Warned = "warned",
        /// Its memory is denied.
        Memoryless = "would run without memory",
        /// It is denied.
        Denied = "denied",
    }
}

/// An object of the map.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MappedObject {
    /// The namespace; empty for a cluster-wide kind.
    pub namespace: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The group of its API; empty for one that was not read.
    pub group: String,
}

/// A memory resource, with those that reach it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MappedMemory {
    /// The memory resource. Memory that a pod names by its own variables alone has the name of the pod.
    pub object: MappedObject,
    /// The name of the platform.
    pub family: &'static str,
    /// Whether it exists.
    pub presence: Presence,
    /// What is known of it; nothing of one that was not found.
    pub facts: Facts,
    /// What reaches it, by namespace, kind and name.
    pub users: BTreeSet<MapLine>,
}

/// Whether a memory resource exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Presence {
    /// It was read.
    #[default]
    Found,
    /// It does not exist.
    Missing,
    /// It was not found, and may exist elsewhere.
    Unknown,
    /// No object declares it: a pod names it by its own variables.
    Undeclared,
}

impl Presence {
    /// The words behind the name; empty for a resource that was read, and for one whose verdict says it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Found | Self::Missing => "",
            Self::Unknown => "not among the inputs",
            Self::Undeclared => "not declared by an object",
        }
    }
}

/// What is known of a memory resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Facts {
    /// The backend, with its provider.
    pub backend: Fact,
    /// Where it is reached: each host with its port.
    pub hosts: Fact,
    /// Whether it outlives its process.
    pub durable: Fact,
    /// How long and how many entries are kept.
    pub retention: Fact,
    /// The size of the volume.
    pub storage: Fact,
    /// The names of Secrets.
    pub secrets: Fact,
}

impl Facts {
    /// The texts of all values.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let Self { backend, hosts, durable, retention, storage, secrets } = self;
        let all = [backend, hosts, durable, retention, storage, secrets];
        all.into_iter().flat_map(|fact| match fact {
            Fact::Known(values) => values.as_mut_slice(),
            _ => &mut [],
        })
    }
}

/// One value of a memory resource, or several.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// The platform does not have it, or the object does not set it.
    #[default]
    Absent,
    /// The values, at least one.
    Known(Vec<String>),
    /// There is a value, and the reason why it is unknown.
    Unknown(String),
}

impl Fact {
    /// These values; absent without any.
    pub fn of(values: impl IntoIterator<Item = String>) -> Self {
        let values: Vec<String> = values.into_iter().collect();
        if values.is_empty() { Self::Absent } else { Self::Known(values) }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => Ok(()),
            Self::Known(values) => f.write_str(&values.join(", ")),
            Self::Unknown(why) => write!(f, "unknown ({why})"),
        }
    }
}

impl Facts {
    /// The present facts, each with its label.
    pub fn labelled(&self) -> impl Iterator<Item = (&'static str, &Fact)> {
        let facts = [
            ("backend", &self.backend),
            ("durable", &self.durable),
            ("retention", &self.retention),
            ("storage", &self.storage),
            ("host", &self.hosts),
            ("Secret", &self.secrets),
        ];
        facts.into_iter().filter(|(_, fact)| **fact != Fact::Absent)
    }
}

/// A line of the map: an object that reaches a memory resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MapLine {
    /// The object that refers to the memory; a workload stands for its pod.
    pub user: MappedObject,
    /// The name of its platform; empty for a pod, which may have memory of several.
    pub family: &'static str,
    /// Whether it is a pod, or makes pods, that get the memory.
    pub is_pod: bool,
    /// Whether the memory is in another namespace.
    pub crosses: bool,
}

impl MappedObject {
    /// Kind and name, with the namespace if there is one.
    pub fn title(&self) -> String {
        let Self { namespace, kind, name, .. } = self;
        if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
    }
}

impl MemoryMap {
    /// All memory resources.
    pub fn memories(&self) -> impl Iterator<Item = &MappedMemory> {
        self.units.iter().flat_map(|unit| &unit.memories)
    }
}
