//! Objects of the state, pruned to the fields that decisions read, and the knowledge about each kind.
//!
//! A lookup answers found, absent or **unknown**. Outside a cluster a kind without any manifest can be unknown.
//! In a cluster a cache miss is unknown until the server has asked the apiserver.

pub mod index;
pub(super) mod objects;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde::de::Deserializer;
use serde_json::Error;

use self::index::{Index, Indexes, Part};
use self::objects::Objects;
use crate::answer::Answer;
use crate::kind::Kind;
use crate::recurring_texts::RecurringTexts;
use crate::tree::Tree;
use memgate_primitives::budget::Budget;
use memgate_primitives::members::Members;
use memgate_primitives::name::is_dns_subdomain;
use memgate_primitives::pointer::Pointer;

/// How many bytes of an object beside its tree take: its fields, its place in the map, and up to three in indexes.
const BYTES_BESIDE_TREE: usize = size_of::<Object>() + 16 + 64 + 3 * 48;

/// What is kept of an object takes at most this many times its JSON.
const MOST_TIMES_JSON: usize = 4;

/// An object counts as at least so many bytes of JSON; no apiserver stores a smaller one.
const LEAST_JSON: usize = 256;

/// How many bytes the annotations of an object that is not held may take: enough for those that memgate reads of a kind.
const MOST_BYTES_NOT_HELD: usize = 512;

/// The JSON of an object, which several others share.
#[derive(Debug, PartialEq, Eq)]
pub struct JsonText(pub Box<str>);

/// One object of the state, pruned to what its kind's schema names.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// The kind under which the state holds the object.
    pub kind: &'static Kind,
    /// The namespace; empty for cluster-wide kinds. Objects of one namespace share it.
    pub namespace: Arc<str>,
    /// The name, shared with the tree.
    pub name: Arc<str>,
    /// Whether its namespace was given. Files often leave it to the command that applies them.
    pub namespace_given: bool,
    /// Whether a snapshot file marks the object as stored in a cluster. Then the objects that its controllers
    /// create exist too.
    pub stored: bool,
    /// Whether all that is read of it is here. If not, only its name and the annotations by which it is found are, and
    /// decisions look it up.
    pub held: bool,
    /// How many bytes it takes in the state. Before it is there, the length of its JSON; 0 where that does not matter.
    bytes: u32,
    tree: OnceLock<Tree>,
    /// The JSON of an object whose tree is made when it is first looked at.
    text: Option<Arc<JsonText>>,
    /// The result of the first call of [`Object::defect`]; it never changes.
    defect: OnceLock<Option<Box<Defect>>>,
    /// The keys that [`Object::has_data_key`] looks up.
    data_keys: OnceLock<Box<Members<String>>>,
}

impl Object {
    /// The name, as `namespace/name` unless the object is in `namespace`.
    pub fn name_in(&self, namespace: &str) -> Cow<'_, str> {
        let is_here = *self.namespace == *namespace;
        if is_here { Cow::Borrowed(&self.name) } else { format!("{}/{}", self.namespace, self.name).into() }
    }

    /// Reads an object of `kind` from any self-describing format. `None` without a name.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn read<'de, D: Deserializer<'de>>(
        kind: &'static Kind,
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        let tree = Tree::read(deserializer, &kind.schema)?;
        let text = |field| match tree.at(&["metadata", field]) {
            Some(Tree::Text(text)) => Arc::clone(text),
            _ => Arc::default(),
        };
        let (namespace, name) = (text("namespace"), text("name"));
        Ok((!name.is_empty()).then(|| Self::new(kind, namespace, name, tree)))
    }

    fn new(kind: &'static Kind, namespace: Arc<str>, name: Arc<str>, tree: Tree) -> Self {
        Self {
            kind,
            namespace_given: !namespace.is_empty(),
            namespace,
            name,
            stored: false,
            held: true,
            bytes: 0,
            tree: OnceLock::from(tree),
            text: None,
            defect: OnceLock::new(),
            data_keys: OnceLock::new(),
        }
    }

    /// An object with this JSON, which others share. Its tree is made when a decision looks at it: of many objects in
    /// files, few are ever looked at.
    pub fn read_later(kind: &'static Kind, namespace: Arc<str>, name: Arc<str>, text: Arc<JsonText>) -> Self {
        let (tree, text) = (OnceLock::new(), Some(text));
        Self { tree, text, ..Self::new(kind, namespace, name, Tree::Null) }
    }

    /// The whole object, as far as it is read.
    pub fn tree(&self) -> &Tree {
        let read = |text: &Arc<JsonText>| Tree::parse(&text.0, &self.kind.schema).ok();
        self.tree.get_or_init(|| self.text.as_ref().and_then(read).unwrap_or(Tree::Null))
    }

    /// Reads an object that an apiserver stores under this namespace and name, to be kept. One that would take more than
    /// 4 times its JSON, for example with a long list of empty texts, is not held: only its name is kept.
    ///
    /// # Errors
    /// When it is not JSON that can be read.
    pub fn read_to_keep(
        kind: &'static Kind,
        (namespace, name): (&str, &str),
        text: &str,
    ) -> Result<Option<Self>, Error> {
        let json = text.len().max(LEAST_JSON);
        // A list has this many bytes for each value, and a map has more.
        let budget = Budget::of_steps(json * MOST_TIMES_JSON / size_of::<Tree>());
        let tree = Tree::read_stored(text, &kind.schema, &budget)?;
        let mut object = Self::new(kind, namespace.into(), name.into(), tree);
        object.bytes = bytes(json);
        if budget.has_ended() {
            object.held = false;
        } else if let Some(Tree::Text(name)) = object.tree().at(&["metadata", "name"]) {
            let name = Arc::clone(name);
            object.name = name;
        }
        Ok((!name.is_empty()).then_some(object))
    }

    /// Reads an object for one decision; `None` if it has more values than a decision may read.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn read_once(
        kind: &'static Kind,
        (namespace, name): (&str, &str),
        text: &str,
    ) -> Result<Option<Self>, Error> {
        let budget = Budget::default();
        let tree = Tree::read_stored(text, &kind.schema, &budget)?;
        Ok((!budget.has_ended()).then(|| {
            let mut object = Self::new(kind, namespace.into(), name.into(), tree);
            object.settle(&mut RecurringTexts::default());
            object
        }))
    }

    /// Takes no more memory than needed, and lets go of a tree that takes too much of it.
    fn settle(&mut self, recurring: &mut RecurringTexts) {
        let json = self.bytes();
        self.bytes = bytes(BYTES_BESIDE_TREE + self.tree.get_mut().map_or(0, |tree| tree.settle(recurring)));
        self.held &= json == 0 || self.bytes() <= MOST_TIMES_JSON * json;
        if !self.held {
            let mut tree = self.tree.take().unwrap_or(Tree::Null);
            tree.narrow(&["metadata", "annotations"]);
            let mut annotations = tree.settle(recurring);
            if annotations > MOST_BYTES_NOT_HELD {
                (annotations, tree) = (0, Tree::Null);
            }
            self.tree = OnceLock::from(tree);
            // The name may be the text of the object that was read.
            self.bytes = bytes(BYTES_BESIDE_TREE + self.name.len() + 16 + annotations);
        }
        recurring.share(&mut self.namespace);
    }

    /// How many bytes it takes in the state, once it is there.
    pub const fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Whether the object is being deleted.
    pub fn deleting(&self) -> bool {
        is_deleting(self.tree())
    }

    /// The defect of the object, if it has one. `find` is called once and its result is kept: many pods use one
    /// memory, and neither the object nor its rules change between these uses.
    pub fn defect(&self, find: impl FnOnce(&Tree) -> Option<Defect>) -> Option<&Defect> {
        self.defect.get_or_init(|| find(self.tree()).map(Box::new)).as_deref()
    }

    /// Whether the data of a `ConfigMap` or Secret has this key. The keys are indexed once: one object can have
    /// very many keys, and another object can refer to as many.
    pub fn has_data_key(&self, key: &str) -> bool {
        let index = || {
            let maps = ["data", "stringData"].into_iter().filter_map(|field| self.tree().get(field));
            Box::new(maps.flat_map(Tree::keys).map(str::to_owned).collect())
        };
        self.data_keys.get_or_init(index).contains(key)
    }

    /// The uid, if the kind's schema keeps it.
    pub fn uid(&self) -> Option<&str> {
        self.tree().text_at(&["metadata", "uid"])
    }

    /// The value of a label, if the kind's schema keeps labels.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.tree().at(&["metadata", "labels"])?.entry(key)
    }
}

/// A number of bytes as it is kept.
fn bytes(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// What makes an object unfit for use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// The place; may point at a missing value.
    pub pointer: Pointer,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
}

/// Whether an object has a deletion timestamp.
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
    /// The name; empty for a list of all objects in the namespace.
    pub name: String,
}

impl Reference {
    /// Whether an object can have this name and namespace.
    pub fn is_possible(&self) -> bool {
        is_dns_subdomain(&self.name) && (self.namespace.is_empty() || is_dns_subdomain(&self.namespace))
    }
}

/// The answer to the lookup of one object at an apiserver: the object, `None` if it does not exist, or why the lookup
/// failed, in a few words for the user whose object depends on it.
pub type LookupAnswer = Result<Option<Arc<Object>>, Arc<str>>;

/// What the absence of an object from the snapshot means.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Coverage {
    /// All objects of the kind are here: a missing object does not exist.
    Complete,
    /// All objects that a watch has delivered are here. A missing object may be newer, so a single lookup is
    /// unknown; a list counts as complete.
    Watched,
    /// A namespace is complete if at least one of its objects is here; other namespaces are unknown.
    PerNamespace,
    /// All objects of these namespaces were listed, or of every namespace for `None`. Other namespaces are
    /// unknown.
    Listed(Option<Arc<BTreeSet<String>>>),
    /// Nothing is known yet.
    #[default]
    Unknown,
}

/// The answer to the lookup of an object in the state.
pub type Lookup<'s> = Answer<&'s Object>;

/// The namespace of objects that do not name one, as for kubectl.
pub const DEFAULT_NAMESPACE: &str = "default";

/// All that is known of one kind.
#[derive(Debug, Clone, Default)]
pub struct KindState {
    pub(super) coverage: Coverage,
    pub(super) objects: Objects,
    indexes: Indexes,
    /// Whether there are objects that are not here, not even by name: searches do not see them, and without a cluster none
    /// counts as absent.
    pub lacks_some: bool,
    /// The namespaces with such objects, where others lack none.
    lacks_some_in: BTreeSet<String>,
    /// Whether the kind is known to be installed: the cluster serves it, or the inputs have an object or a definition of
    /// another kind of its group.
    pub is_installed: bool,
    /// Of a kind that is known by namespace: more namespaces that are complete.
    known: BTreeSet<String>,
    /// The lookups that brought no object, by namespace and name: the object does not exist, or why the lookup failed.
    without_object: BTreeMap<String, BTreeMap<String, Result<(), Arc<str>>>>,
    /// Objects whose names an apiserver is yet to make, each under what its name begins with, and a number after the first.
    to_be_named: Option<Box<Self>>,
}

impl KindState {
    /// No objects yet.
    pub fn new(coverage: Coverage) -> Self {
        Self { coverage, ..Self::default() }
    }

    /// No objects, for a new list of the same kind.
    #[must_use]
    pub fn emptied(&self, coverage: Coverage) -> Self {
        Self { coverage, objects: self.objects.emptied(), ..Self::default() }
    }

    /// Adds an object, or replaces the one of the same name.
    pub fn insert(&mut self, object: Object) {
        self.put(object);
    }

    /// Adds an object whose name an apiserver is yet to make, under what that begins with. No search by name finds it.
    pub fn insert_to_be_named(&mut self, mut object: Object) {
        let others = self.to_be_named.get_or_insert_default();
        if others.kept_of(&object.namespace, &object.name).is_some() {
            object.name = format!("{} {}", object.name, others.len()).into();
        }
        others.insert(object);
    }

    /// The objects whose names an apiserver is yet to make.
    pub(super) fn to_be_named(&self) -> Option<&Self> {
        self.to_be_named.as_deref()
    }

    /// Adds an object. Returns it as it is kept, and the one whose place it takes.
    pub fn put(&mut self, object: Object) -> (Arc<Object>, Option<Arc<Object>>) {
        let object = self.objects.settled(object);
        let before = self.put_shared(&object);
        (object, before)
    }

    /// Adds an object that is kept elsewhere too. Returns the one whose place it takes.
    pub fn put_shared(&mut self, object: &Arc<Object>) -> Option<Arc<Object>> {
        let before = self.objects.insert(Arc::clone(object));
        if let Some(before) = &before {
            self.indexes.change(false, before);
        }
        self.indexes.change(true, object);
        before
    }

    /// Removes an object, if it is there.
    pub fn remove(&mut self, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let before = self.objects.remove(namespace, name)?;
        self.indexes.change(false, &before);
        Some(before)
    }

    /// All that is kept of any object, those among them that are not held.
    pub fn kept(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.kept()
    }

    /// What is kept of an object, held or not.
    pub fn kept_of(&self, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.objects.kept_of(namespace, name)
    }

    /// What is kept of the first object of a namespace, held or not.
    pub fn first_of(&self, namespace: &str) -> Option<&Arc<Object>> {
        self.objects.kept_in(namespace).next()
    }

    /// Whether a list of this namespace counts as complete; `None` stands for all namespaces.
    pub(super) fn knows_all(&self, namespace: Option<&str>) -> bool {
        match &self.coverage {
            _ if self.lacks_some_in(namespace) => false,
            Coverage::Complete | Coverage::Watched | Coverage::PerNamespace | Coverage::Listed(None) => true,
            Coverage::Listed(Some(namespaces)) => namespace.is_some_and(|it| namespaces.contains(it)),
            Coverage::Unknown => false,
        }
    }

    /// Adds the answer of a lookup that found no object: it does not exist, or why that is not known.
    pub(super) fn insert_without(&mut self, namespace: String, name: String, answer: Result<(), Arc<str>>) {
        if answer.is_ok() {
            self.remove(&namespace, &name);
        }
        self.without_object.entry(namespace).or_default().insert(name, answer);
    }

    /// Whether an object was looked up and does not exist, or why its lookup failed; `None` without a lookup.
    pub(super) fn looked_up(&self, namespace: &str, name: &str) -> Option<&Result<(), Arc<str>>> {
        self.without_object.get(namespace)?.get(name)
    }

    /// Notes that these namespaces are complete, with or without an object.
    pub fn know(&mut self, namespaces: &BTreeSet<String>) {
        self.known.extend(namespaces.iter().cloned());
    }

    /// Notes that there are objects in this namespace that are not here.
    pub fn insert_lacking(&mut self, namespace: &str) {
        self.lacks_some_in.insert(namespace.to_owned());
    }

    /// Whether there are objects that are not here, in this namespace; in any for `None`.
    pub fn lacks_some_in(&self, namespace: Option<&str>) -> bool {
        let is_lacking = |namespace: &str| self.lacks_some_in.contains(namespace);
        self.lacks_some || namespace.map_or(!self.lacks_some_in.is_empty(), is_lacking)
    }

    /// All objects, by namespace and name.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.all()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The object of this name.
    pub fn object(&self, namespace: &str, name: &str) -> Option<&Object> {
        self.objects.get(namespace, name)
    }

    /// The objects with this key in the index that are held, by namespace and name, those that are being deleted last: of all
    /// namespaces, or of one.
    pub(super) fn find<'k>(
        &'k self,
        by: (&'static Index, &str),
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &'k Arc<Object>> + use<'k> {
        let find = |part| self.indexes.find(by, namespace, part, &self.objects);
        Part::HELD.map(find).into_iter().flatten()
    }

    /// Those that are not held.
    pub(super) fn find_not_held<'k>(
        &'k self,
        by: (&'static Index, &str),
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &'k Arc<Object>> + use<'k> {
        self.indexes.find(by, namespace, Part::NotHeld, &self.objects)
    }

    /// Whether the object of this namespace and name has this key in the index.
    pub(super) fn has(&self, by: (&'static Index, &str), object: (&str, &str)) -> bool {
        self.indexes.has(by, object, &self.objects)
    }

    /// How many objects have this key in the index.
    pub(super) fn count(&self, index: &'static Index, key: &str) -> usize {
        self.indexes.count(index, key, &self.objects)
    }

    /// Whether all objects that are here are held.
    pub(super) fn holds_all(&self) -> bool {
        self.not_held() == 0
    }

    /// Those of the objects that are not held, of all namespaces or of one.
    pub(super) fn kept_not_held<'k>(
        &'k self,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &'k Arc<Object>> + use<'k> {
        let everywhere = namespace.is_none().then(|| self.objects.kept_if(false));
        let here = namespace.map(|namespace| self.objects.not_held_in(namespace));
        everywhere.into_iter().flatten().chain(here.into_iter().flatten())
    }

    /// How many of the objects that are here are not held.
    pub fn not_held(&self) -> usize {
        self.objects.not_held()
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Lookup<'_> {
        if let Some(object) = self.object(namespace, name) {
            return Lookup::Found(object);
        }
        let absent = match &self.coverage {
            Coverage::Complete => !self.lacks_some_in(Some(namespace)),
            Coverage::PerNamespace => {
                !self.lacks_some_in(Some(namespace))
                    && (self.objects.is_in_use(namespace) || self.known.contains(namespace))
            }
            Coverage::Listed(_) => self.knows_all(Some(namespace)),
            Coverage::Watched | Coverage::Unknown => self.looked_up(namespace, name) == Some(&Ok(())),
        };
        if absent { Lookup::Absent } else { Lookup::Unknown(()) }
    }
}

/// All that is known, by kind.
pub type Kinds = BTreeMap<&'static Kind, Arc<KindState>>;
