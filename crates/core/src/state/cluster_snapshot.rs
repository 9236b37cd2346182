//! The file of `memgate snapshot`: the state of a cluster at one time, for decisions without it.
//!
//! One JSON document with an object on each line, so that two of them can be compared by `diff`. It holds what
//! decisions read and nothing else, credentials masked. Of each kind it says whether all objects are in it; of what
//! is not, decisions know nothing, as if they could not look it up.

mod kept;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use memgate_model::answer::Answer;
use memgate_model::family::Family;
use memgate_model::kind::{Kind, NAMESPACE, POLICY_KINDS};
use memgate_model::object::{Coverage, KindState};
use memgate_model::snapshot::Snapshot;

use super::{AddError, add_from};

pub use kept::{is_masked, kept};

/// The version of the form.
const API_VERSION: &str = "memgate.dev/v1alpha1";

/// The kind of the document.
pub const KIND: &str = "ClusterSnapshot";

/// The kind under which the entry of the definitions stands.
pub const DEFINITION: &str = "CustomResourceDefinition";

/// The API of definitions.
pub const DEFINITION_API: &str = "apiextensions.k8s.io/v1";

/// The state of a cluster at one time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSnapshot {
    api_version: String,
    kind: String,
    /// The version of memgate that wrote it.
    pub memgate: String,
    /// When the cluster was read, by the clock of the reader, in the form of RFC 3339.
    pub taken: String,
    /// The namespaces that were read; without them all.
    #[serde(default)]
    pub namespaces: Option<BTreeSet<String>>,
    /// What is known of each kind.
    pub kinds: Vec<KindEntry>,
    /// The objects.
    pub items: Vec<Value>,
}

/// What is known of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindEntry {
    /// Its group and version.
    pub api_version: String,
    /// Its name.
    pub kind: String,
    state: Extent,
    /// Why it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl KindEntry {
    /// The name with its group, as kubectl takes it.
    pub fn full_name(&self) -> String {
        match self.api_version.split_once('/') {
            Some((group, _)) => format!("{}.{group}", self.kind),
            None => self.kind.clone(),
        }
    }

    /// Why nothing is known of it, which may be empty; `None` where it is known.
    pub fn unknown(&self) -> Option<&str> {
        (self.state == Extent::Unknown).then(|| self.why.as_deref().unwrap_or_default())
    }
}

/// How much of a kind the file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Extent {
    /// All objects of the namespaces that were read.
    Known,
    /// The cluster does not have the kind, and so no objects of it.
    NotServed,
    /// Nothing.
    Unknown,
}

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// It is something else.
    #[error("{path}: this is not a file of memgate snapshot: {reason}\n  manifests are given by --with")]
    Form {
        /// The file.
        path: String,
        /// Why, with line and column where they are known.
        reason: String,
    },
    /// It has another version.
    #[error(
        "{path}: apiVersion is {version}, and this memgate reads {API_VERSION}; write it anew with this one"
    )]
    Version {
        /// The file.
        path: String,
        /// Its version.
        version: String,
    },
    /// An object in it is out of bounds.
    #[error("{path}: {reason}")]
    Object {
        /// The file.
        path: String,
        /// Why.
        reason: AddError,
    },
}

/// The notes that a command prints about a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumed {
    /// The file.
    pub path: String,
    /// When it was taken.
    pub taken: String,
    /// How many objects it holds.
    pub objects: usize,
    /// The namespaces; without them all.
    pub namespaces: Option<Vec<String>>,
    /// The kinds of which nothing is known, with the reason.
    pub unknown: Vec<String>,
    /// The kinds that it does not name: those of platforms that its memgate did not know or was not asked about.
    pub unnamed: Vec<String>,
}

impl Assumed {
    /// Why it is not known which policies there are; `None` where it is.
    pub fn policies_unknown(&self) -> Option<&str> {
        self.unknown.iter().find(|kind| kind.starts_with("MemoryPolicy.")).map(String::as_str)
    }
}

impl ClusterSnapshot {
    /// One without kinds and objects.
    pub fn new(taken: String, namespaces: Option<BTreeSet<String>>) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            memgate: env!("CARGO_PKG_VERSION").to_owned(),
            taken,
            namespaces,
            kinds: Vec::new(),
            items: Vec::new(),
        }
    }

    /// Adds whether the objects of a kind are here, or the cluster does not have the kind.
    pub fn add_entry(&mut self, api_version: String, kind: &str, read: Answer<(), String>) {
        let (state, why) = match read {
            Answer::Found(()) => (Extent::Known, None),
            Answer::Absent => (Extent::NotServed, None),
            Answer::Unknown(why) => (Extent::Unknown, Some(why)),
        };
        self.kinds.push(KindEntry { api_version, kind: kind.to_owned(), state, why });
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { api_version, kind, memgate, taken, namespaces, kinds, items } = self;
        write!(out, "{{")?;
        let head = [("apiVersion", api_version), ("kind", kind), ("memgate", memgate), ("taken", taken)];
        for (field, text) in head {
            writeln!(out, "\"{field}\":{},", Value::from(text.as_str()))?;
        }
        if let Some(namespaces) = namespaces {
            writeln!(out, "\"namespaces\":{},", serde_json::to_string(namespaces)?)?;
        }
        write_list("kinds", kinds, out)?;
        writeln!(out, ",")?;
        write_list("items", items, out)?;
        writeln!(out, "}}")
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// When it is not a snapshot, or one of another version.
    pub fn parse(path: &str, text: &str) -> Result<Self, Error> {
        let form = |reason: String| Error::Form { path: path.to_owned(), reason };
        let document: Self = serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| form(error.to_string()))?;
        if document.kind != KIND {
            return Err(form(format!("its kind is {}, not {KIND}", document.kind)));
        }
        if document.api_version != API_VERSION {
            return Err(Error::Version { path: path.to_owned(), version: document.api_version });
        }
        Ok(document)
    }

    /// Lays its objects into a state that knows nothing of a cluster yet.
    ///
    /// # Errors
    /// When an object is out of bounds.
    pub fn put(&self, path: &str, snapshot: &mut Snapshot) -> Result<Assumed, Error> {
        let (mut unknown, mut unnamed) = (Vec::new(), Vec::new());
        for kind in kinds(&snapshot.settings.families) {
            let entry = self.entry(&full_name(kind));
            let state = entry.map_or(Extent::Unknown, |entry| entry.state);
            match entry {
                None => unnamed.push(full_name(kind)),
                Some(entry) if state == Extent::Unknown => unknown.push(unknown_kind(entry)),
                Some(_) => {}
            }
            if memgate_platforms::state_kind(&snapshot.settings.families, kind.group, kind.kind).is_some() {
                snapshot.set(kind, KindState::new(self.coverage(kind, state)));
            }
        }
        if let Some(entry) = self.entry(&format!("{DEFINITION}.apiextensions.k8s.io"))
            && entry.state == Extent::Unknown
        {
            unknown.push(format!("{}; those that come with memgate count", unknown_kind(entry)));
        }
        for item in &self.items {
            add_from(snapshot, item, None, true)
                .map_err(|reason| Error::Object { path: path.to_owned(), reason })?;
        }
        Ok(Assumed {
            path: path.to_owned(),
            taken: self.taken.clone(),
            objects: self.items.len(),
            namespaces: self.namespaces.as_ref().map(|names| names.iter().cloned().collect()),
            unknown,
            unnamed,
        })
    }

    fn entry(&self, name: &str) -> Option<&KindEntry> {
        self.kinds.iter().find(|entry| entry.full_name() == name)
    }

    fn coverage(&self, kind: &Kind, state: Extent) -> Coverage {
        match (state, &self.namespaces) {
            (Extent::Unknown, _) => Coverage::Unknown,
            // Of those that were not asked for, nothing is known.
            (Extent::Known, Some(_)) if *kind == NAMESPACE => Coverage::Unknown,
            (Extent::Known, Some(namespaces)) if kind.namespaced => {
                Coverage::Listed(Some(Arc::new(namespaces.clone())))
            }
            (Extent::Known | Extent::NotServed, _) => Coverage::Listed(None),
        }
    }
}

/// The kinds that decisions read, and those that policies judge as long as they last, each once.
pub fn kinds(families: &[&'static Family]) -> BTreeSet<&'static Kind> {
    let viewed = families.iter().flat_map(|family| family.views.kinds.iter().map(|(kind, _)| *kind));
    // Of two that are the same kind the last stays: the one that decisions about other objects read.
    viewed.chain(POLICY_KINDS).chain(memgate_platforms::state_kinds(families)).collect()
}

/// The text of a file as a List of its objects, each in the line where it stands.
pub fn as_list(text: &str) -> String {
    text.replacen(&format!("\"{KIND}\""), "\"List\"", 1)
}

/// The name of a kind with its group, as kubectl takes it.
fn full_name(kind: &Kind) -> String {
    if kind.group.is_empty() { kind.kind.to_owned() } else { format!("{}.{}", kind.kind, kind.group) }
}

fn unknown_kind(entry: &KindEntry) -> String {
    match &entry.why {
        Some(why) => format!("{} ({why})", entry.full_name()),
        None => entry.full_name(),
    }
}

fn write_list<T: Serialize>(name: &str, elements: &[T], out: &mut impl Write) -> io::Result<()> {
    write!(out, "\"{name}\":[")?;
    for (index, element) in elements.iter().enumerate() {
        write!(out, "{}", if index == 0 { "\n" } else { ",\n" })?;
        serde_json::to_writer(&mut *out, element)?;
    }
    write!(out, "\n]")
}
