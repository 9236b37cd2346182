//! The objects of a cluster as they were read at one time, for decisions without it.
//!
//! It holds what decisions read and nothing else. Of each kind it says whether all objects are in it; of what is not,
//! decisions know nothing, as if they could not look it up.

mod kept;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use memgate_model::answer::Answer;
use memgate_model::family::Family;
use memgate_model::kind::{Kind, NAMESPACE, POLICY_KINDS};
use memgate_model::object::{Coverage, KindState};
use memgate_model::snapshot::Snapshot;

use super::{AddError, add_from};

pub use kept::kept;

/// The objects of a cluster at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterSnapshot {
    /// When the cluster was read, by the clock of the reader, in the form of RFC 3339.
    pub taken: String,
    /// The namespaces that were read; without them all.
    pub namespaces: Option<BTreeSet<String>>,
    /// What is known of each kind.
    pub kinds: Vec<KindEntry>,
    /// The objects.
    pub items: Vec<Value>,
}

/// What is known of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct KindEntry {
    /// Its group and version.
    api_version: String,
    /// Its name.
    pub kind: String,
    state: Extent,
}

impl KindEntry {
    /// The name with its group, as kubectl takes it.
    fn full_name(&self) -> String {
        match self.api_version.split_once('/') {
            Some((group, _)) => format!("{}.{group}", self.kind),
            None => self.kind.clone(),
        }
    }

    /// Why nothing is known of it; `None` where it is known.
    pub fn unknown(&self) -> Option<&str> {
        match &self.state {
            Extent::Unknown(why) => Some(why),
            Extent::Known | Extent::NotServed => None,
        }
    }
}

/// How many objects of a kind were read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Extent {
    /// All objects of the namespaces that were read.
    Known,
    /// The cluster does not have the kind, and so no objects of it.
    NotServed,
    /// None, for this reason.
    Unknown(String),
}

/// The notes that a command prints about a cluster that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumed {
    /// When it was read.
    pub taken: String,
    /// How many objects were read.
    pub objects: usize,
    /// The namespaces; without them all.
    pub namespaces: Option<Vec<String>>,
    /// The kinds of which nothing is known, with the reason.
    pub unknown: Vec<String>,
}

impl Assumed {
    /// Why it is not known which policies there are; `None` where it is.
    pub fn policies_unknown(&self) -> Option<&str> {
        self.unknown.iter().find(|kind| kind.starts_with("MemoryPolicy.")).map(String::as_str)
    }
}

impl ClusterSnapshot {
    /// One without kinds and objects.
    pub const fn new(taken: String, namespaces: Option<BTreeSet<String>>) -> Self {
        Self { taken, namespaces, kinds: Vec::new(), items: Vec::new() }
    }

    /// Adds whether the objects of a kind are here, or the cluster does not have the kind.
    pub fn add_entry(&mut self, api_version: String, kind: &str, read: Answer<(), String>) {
        let state = match read {
            Answer::Found(()) => Extent::Known,
            Answer::Absent => Extent::NotServed,
            Answer::Unknown(why) => Extent::Unknown(why),
        };
        self.kinds.push(KindEntry { api_version, kind: kind.to_owned(), state });
    }

    /// Its objects as the text of a List, one a line.
    pub fn list(&self) -> String {
        let items: Vec<String> = self.items.iter().map(Value::to_string).collect();
        format!("{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n{}\n]}}\n", items.join(",\n"))
    }

    /// Lays its objects into a state that knows nothing of a cluster yet.
    ///
    /// # Errors
    /// When an object is out of bounds.
    pub fn put(&self, snapshot: &mut Snapshot) -> Result<Assumed, AddError> {
        for kind in kinds(&snapshot.settings.families) {
            if memgate_platforms::state_kind(&snapshot.settings.families, kind.group, kind.kind).is_some() {
                snapshot.set(kind, KindState::new(self.coverage(kind)));
            }
        }
        for item in &self.items {
            add_from(snapshot, item, None, true)?;
        }
        let unknown = self.kinds.iter().filter_map(|entry| {
            let why = entry.unknown()?;
            Some(format!("{} ({why})", entry.full_name()))
        });
        Ok(Assumed {
            taken: self.taken.clone(),
            objects: self.items.len(),
            namespaces: self.namespaces.as_ref().map(|names| names.iter().cloned().collect()),
            unknown: unknown.collect(),
        })
    }

    fn coverage(&self, kind: &Kind) -> Coverage {
        let entry = self.kinds.iter().find(|entry| entry.full_name() == full_name(kind));
        match (entry.map(|entry| &entry.state), &self.namespaces) {
            (None | Some(Extent::Unknown(_)), _) => Coverage::Unknown,
            // Of those that were not asked for, nothing is known.
            (Some(Extent::Known), Some(_)) if *kind == NAMESPACE => Coverage::Unknown,
            (Some(Extent::Known), Some(namespaces)) if kind.namespaced => {
                Coverage::Listed(Some(Arc::new(namespaces.clone())))
            }
            (Some(Extent::Known | Extent::NotServed), _) => Coverage::Listed(None),
        }
    }
}

/// The kinds that decisions read, and those that policies judge as long as they last, each once.
pub fn kinds(families: &[&'static Family]) -> BTreeSet<&'static Kind> {
    let viewed = families.iter().flat_map(|family| family.views.kinds.iter().map(|(kind, _)| *kind));
    // Of two that are the same kind the last stays: the one that decisions about other objects read.
    viewed.chain(POLICY_KINDS).chain(memgate_platforms::state_kinds(families)).collect()
}

/// The name of a kind with its group, as kubectl takes it.
fn full_name(kind: &Kind) -> String {
    if kind.group.is_empty() { kind.kind.to_owned() } else { format!("{}.{}", kind.kind, kind.group) }
}
