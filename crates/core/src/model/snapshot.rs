//! The state a decision may look at, as one immutable value.
//!
//! A lookup answers found, absent or **unknown**, and no other code asks whether an object exists: outside
//! a cluster a kind of which there is no manifest can be unknown; inside one a cache miss is unknown until
//! the apiserver was asked once. Nothing is fetched here. Cloning a snapshot is cheap: kinds and namespaces
//! are shared until they change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde::de::Deserializer;

use crate::model::kind::Kind;
use crate::model::name::is_dns_subdomain;
use crate::model::settings::Settings;
use crate::model::tree::Tree;

/// One object of the state, pruned to what its kind's schema names.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// The namespace; empty for cluster-wide kinds.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Whether its namespace was given; files often leave it to the command that applies them.
    pub namespace_given: bool,
    /// The whole object, as far as it is read.
    pub tree: Tree,
    /// What [`Object::defect`] found when it was called first; it never changes.
    defect: OnceLock<Option<String>>,
}

impl Object {
    /// Reads an object of `kind` from any self-describing data. `None` without a name.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn read<'de, D: Deserializer<'de>>(kind: &Kind, deserializer: D) -> Result<Option<Self>, D::Error> {
        let tree = Tree::read(deserializer, &kind.schema)?;
        let text = |field| tree.at(&["metadata", field]).and_then(Tree::text).unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let namespace_given = !namespace.is_empty();
        Ok((!name.is_empty()).then_some(Self {
            namespace,
            name,
            namespace_given,
            tree,
            defect: OnceLock::new(),
        }))
    }

    /// Whether the object is being deleted.
    #[must_use]
    pub fn deleting(&self) -> bool {
        is_deleting(&self.tree)
    }

    /// What makes the object unfit for use. `find` is called once and its result kept: many pods use one
    /// memory, and neither it nor its rules change in between.
    pub fn defect(&self, find: impl FnOnce(&Tree) -> Option<String>) -> Option<&str> {
        self.defect.get_or_init(|| find(&self.tree)).as_deref()
    }

    /// The uid, if the kind's schema keeps it.
    #[must_use]
    pub fn uid(&self) -> Option<&str> {
        self.tree.at(&["metadata", "uid"]).and_then(Tree::text)
    }

    /// The value of a label, if the kind's schema keeps labels.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.tree.at(&["metadata", "labels"])?.entry(key)
    }
}

/// Whether an object has a deletion timestamp.
#[must_use]
pub fn is_deleting(tree: &Tree) -> bool {
    tree.at(&["metadata", "deletionTimestamp"]).is_some()
}

/// The name of an object in the state, whether it exists or not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The kind.
    pub kind: &'static Kind,
    /// The namespace; empty for cluster-wide kinds.
    pub namespace: String,
    /// The name; empty when the question was about all objects of the namespace.
    pub name: String,
}

/// What the absence of an object from the snapshot means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coverage {
    /// All objects of the kind are here: what is not here does not exist.
    Complete,
    /// All objects that a watch has delivered are here: what is not here may be newer than that,
    /// so a single lookup is unknown; a list is taken as it is.
    Watched,
    /// The namespaces of which at least one object is here are complete; others are unknown.
    PerNamespace,
    /// Nothing is known yet.
    #[default]
    Unknown,
}

/// The answer to a lookup.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lookup<'s> {
    /// It exists.
    Found(&'s Object),
    /// It does not exist.
    Absent,
    /// It is not known whether it exists.
    Unknown,
}

/// The namespace of objects without one, as for kubectl.
pub const DEFAULT_NAMESPACE: &str = "default";

type Names = BTreeMap<String, Arc<Object>>;

/// All that is known of one kind.
#[derive(Debug, Clone, Default)]
pub struct KindState {
    coverage: Coverage,
    namespaces: BTreeMap<String, Arc<Names>>,
    /// Objects that were looked up and do not exist: namespace and name.
    absent: BTreeSet<(String, String)>,
}

impl KindState {
    /// No objects yet.
    #[must_use]
    pub fn new(coverage: Coverage) -> Self {
        Self { coverage, ..Self::default() }
    }

    /// Adds an object, or replaces the one of the same name.
    pub fn insert(&mut self, object: Object) {
        let names = self.namespaces.entry(object.namespace.clone()).or_default();
        Arc::make_mut(names).insert(object.name.clone(), Arc::new(object));
    }

    /// Removes an object, if it is there.
    pub fn remove(&mut self, namespace: &str, name: &str) {
        if let Some(names) = self.namespaces.get_mut(namespace) {
            Arc::make_mut(names).remove(name);
            if names.is_empty() {
                self.namespaces.remove(namespace);
            }
        }
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.namespaces.values().map(|names| names.len()).sum()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
    }

    fn object(&self, namespace: &str, name: &str) -> Option<&Object> {
        self.namespaces.get(namespace)?.get(name).map(AsRef::as_ref)
    }

    fn get(&self, namespace: &str, name: &str) -> Lookup<'_> {
        if let Some(object) = self.object(namespace, name) {
            return Lookup::Found(object);
        }
        let absent = match self.coverage {
            Coverage::Complete => true,
            Coverage::PerNamespace => self.namespaces.contains_key(namespace),
            Coverage::Watched | Coverage::Unknown => {
                self.absent.iter().any(|(ns, n)| ns == namespace && n == name)
            }
        };
        if absent { Lookup::Absent } else { Lookup::Unknown }
    }
}

/// The objects that decisions may look at, and the settings they follow.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The settings of this installation.
    pub settings: Settings,
    kinds: BTreeMap<&'static Kind, Arc<KindState>>,
}

impl Snapshot {
    /// Sets all that is known of a kind.
    pub fn set(&mut self, kind: &'static Kind, state: KindState) {
        self.kinds.insert(kind, Arc::new(state));
    }

    /// What is known of a kind, to change it; a kind that was never set starts as unknown.
    pub fn kind_mut(&mut self, kind: &'static Kind) -> &mut KindState {
        Arc::make_mut(self.kinds.entry(kind).or_default())
    }

    /// Forgets a kind: it is unknown again.
    pub fn forget(&mut self, kind: &Kind) {
        self.kinds.remove(kind);
    }

    /// What is known of a kind.
    #[must_use]
    pub fn kind(&self, kind: &Kind) -> Option<&KindState> {
        self.kinds.get(kind).map(AsRef::as_ref)
    }

    /// This snapshot with the answers of lookups laid over it: an object, or `None` where there is
    /// none.
    #[must_use]
    pub fn overlaid(&self, answers: impl IntoIterator<Item = (Reference, Option<Object>)>) -> Self {
        let mut snapshot = self.clone();
        for (reference, object) in answers {
            let state = snapshot.kind_mut(reference.kind);
            match object {
                Some(object) => state.insert(object),
                None => {
                    state.absent.insert((reference.namespace, reference.name));
                }
            }
        }
        snapshot
    }
}

/// How one decision reads the snapshot. Keeps a list of what was asked for and is not known.
#[derive(Debug)]
pub struct StateReader<'s> {
    snapshot: &'s Snapshot,
    namespace_given: bool,
    unknown: Vec<Reference>,
}

impl<'s> StateReader<'s> {
    /// Nothing read yet, about an object in a namespace.
    #[must_use]
    pub const fn new(snapshot: &'s Snapshot) -> Self {
        Self { snapshot, namespace_given: true, unknown: Vec::new() }
    }

    /// Nothing read yet, about an object whose namespace was not given.
    #[must_use]
    pub const fn without_namespace(snapshot: &'s Snapshot) -> Self {
        Self { snapshot, namespace_given: false, unknown: Vec::new() }
    }

    /// One object by name. A name that no object can have is absent, so that it never becomes part
    /// of a request to the apiserver.
    pub fn get(&mut self, kind: &'static Kind, namespace: &str, name: &str) -> Lookup<'s> {
        if !is_dns_subdomain(name) {
            return Lookup::Absent;
        }
        let lookup =
            self.snapshot.kinds.get(kind).map_or(Lookup::Unknown, |state| state.get(namespace, name));
        if lookup == Lookup::Unknown {
            self.note_unknown(kind, namespace, name);
        }
        lookup
    }

    /// One object by name, for kinds of which files seldom hold all. Where there is no cluster, the
    /// object counts as absent only when at least one of its kind is known, and one whose namespace was
    /// not given counts as being in the namespace that is asked for.
    pub fn get_if_known(&mut self, kind: &'static Kind, namespace: &str, name: &str) -> Lookup<'s> {
        let Some(state) = self.snapshot.kinds.get(kind) else {
            self.note_unknown(kind, namespace, name);
            return Lookup::Unknown;
        };
        if state.coverage == Coverage::Watched {
            return self.get(kind, namespace, name);
        }
        let without_namespace =
            || state.object(DEFAULT_NAMESPACE, name).filter(|object| !object.namespace_given);
        match state.object(namespace, name).or_else(without_namespace) {
            Some(object) => Lookup::Found(object),
            None if !state.is_empty() => Lookup::Absent,
            None => {
                self.note_unknown(kind, namespace, name);
                Lookup::Unknown
            }
        }
    }

    /// One object by name, if it is known. Where it is not, nothing is noted.
    #[must_use]
    pub fn peek(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&'s Object> {
        self.snapshot.kinds.get(kind)?.object(namespace, name)
    }

    /// All objects of one namespace that are known, by name. Nothing is noted here either.
    #[must_use]
    pub fn all(&self, kind: &Kind, namespace: &str) -> Vec<&'s Object> {
        let state = self.snapshot.kinds.get(kind).and_then(|state| state.namespaces.get(namespace));
        state.into_iter().flat_map(|names| names.values()).map(AsRef::as_ref).collect()
    }

    /// Whether it is known which objects of a kind exist: in a cluster always, outside when there is
    /// at least one.
    #[must_use]
    pub fn is_known(&self, kind: &Kind) -> bool {
        self.in_cluster(kind) || self.holds_any(kind)
    }

    /// Whether what is known of a kind comes from a cluster.
    #[must_use]
    pub fn in_cluster(&self, kind: &Kind) -> bool {
        self.snapshot.kinds.get(kind).is_some_and(|state| state.coverage == Coverage::Watched)
    }

    /// Whether the namespace of the object under review was given.
    #[must_use]
    pub const fn namespace_given(&self) -> bool {
        self.namespace_given
    }

    /// All objects of one namespace, by name. Empty, and noted, when the kind is unknown.
    pub fn list(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
    ) -> impl Iterator<Item = &'s Object> + use<'s> {
        let state = self.snapshot.kinds.get(kind);
        if state.is_none_or(|state| state.coverage == Coverage::Unknown) {
            self.note_unknown(kind, namespace, "");
        }
        let names = state.and_then(|state| state.namespaces.get(namespace));
        names.into_iter().flat_map(|names| names.values()).map(AsRef::as_ref)
    }

    /// All objects of a kind, by namespace and name. Empty, and noted, when the kind is unknown.
    pub fn everywhere(&mut self, kind: &'static Kind) -> impl Iterator<Item = &'s Object> + use<'s> {
        let state = self.snapshot.kinds.get(kind);
        if state.is_none_or(|state| state.coverage == Coverage::Unknown) {
            self.note_unknown(kind, "", "");
        }
        let namespaces = state.into_iter().flat_map(|state| state.namespaces.values());
        namespaces.flat_map(|names| names.values()).map(AsRef::as_ref)
    }

    /// All objects of this name, by namespace, as far as they are known.
    #[must_use]
    pub fn named(&self, kind: &Kind, name: &str) -> Vec<&'s Object> {
        let namespaces =
            self.snapshot.kinds.get(kind).into_iter().flat_map(|state| state.namespaces.values());
        namespaces.filter_map(|names| names.get(name)).map(AsRef::as_ref).collect()
    }

    /// Whether at least one object of a kind is known, in any namespace.
    #[must_use]
    pub fn holds_any(&self, kind: &Kind) -> bool {
        self.snapshot.kinds.get(kind).is_some_and(|state| !state.is_empty())
    }

    /// The settings of this installation.
    #[must_use]
    pub const fn settings(&self) -> &'s Settings {
        &self.snapshot.settings
    }

    /// The first other namespace that holds an object of this name, for a hint.
    #[must_use]
    pub fn elsewhere(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&'s str> {
        let state = self.snapshot.kinds.get(kind)?;
        let mut homes =
            state.namespaces.iter().filter(|(home, names)| *home != namespace && names.contains_key(name));
        homes.next().map(|(home, _)| home.as_str())
    }

    /// What was asked for and is not known, each once.
    #[must_use]
    pub fn into_unknown(self) -> Vec<Reference> {
        self.unknown
    }

    fn note_unknown(&mut self, kind: &'static Kind, namespace: &str, name: &str) {
        let reference = Reference { kind, namespace: namespace.to_owned(), name: name.to_owned() };
        if !self.unknown.contains(&reference) {
            self.unknown.push(reference);
        }
    }
}
