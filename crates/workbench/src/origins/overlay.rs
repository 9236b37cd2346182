//! What kustomizations make: each object with the steps that made it, from its file or generator outward.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use regex::Regex;

use memgate_manifest::document::Document;
use memgate_primitives::pointer::Pointer;

/// The kustomizations that were read so far.
#[derive(Debug)]
pub(crate) struct Overlays {
    /// What the kustomization of a directory makes by itself.
    pub(crate) built: BTreeMap<PathBuf, Arc<Vec<Arc<Made>>>>,
    /// What overlays make, by their directories.
    pub(crate) objects: BTreeMap<PathBuf, Arc<Objects>>,
    /// How many more objects are kept, after all steps.
    pub(crate) room: usize,
    /// How many more times an object is compared with a patch that does not name it.
    pub(crate) comparisons: usize,
    /// How many more times a field is compared with an operation of a patch, or with another entry of a kustomization.
    pub(crate) steps: usize,
}

impl Default for Overlays {
    fn default() -> Self {
        Self {
            built: BTreeMap::new(),
            objects: BTreeMap::new(),
            room: 1_000_000,
            comparisons: 2_000_000,
            steps: 5_000_000,
        }
    }
}

/// The objects that an overlay makes.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// By kind and name.
    pub(crate) by_name: BTreeMap<(String, String), Vec<Arc<Made>>>,
    /// By each of the names that they have on the way, and kind.
    pub(crate) by_any_name: BTreeMap<(String, String), Vec<Arc<Made>>>,
}

impl Objects {
    /// The objects of a kind that have this name on the way.
    pub(crate) fn named(&self, kind: &str, name: &str) -> impl Iterator<Item = &Arc<Made>> {
        self.by_any_name.get(&(name.to_owned(), kind.to_owned())).into_iter().flatten()
    }

    /// The objects that have this name on the way.
    pub(crate) fn of_any_kind<'o>(&'o self, name: &str) -> impl Iterator<Item = &'o Arc<Made>> + use<'o> {
        let from = (name.to_owned(), String::new());
        let name = name.to_owned();
        let all = self.by_any_name.range(from..).take_while(move |((it, _), _)| *it == name);
        all.flat_map(|(_, made)| made)
    }
}

/// An object after a step.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// The step.
    pub(crate) by: Maker,
    /// The object before the step; `None` for the first one.
    pub(crate) before: Option<Arc<Self>>,
}

/// A step.
#[derive(Debug, Clone)]
pub(crate) enum Maker {
    /// A document of a file.
    Document(Arc<Document>),
    /// A generator of a kustomization, by its pointer in that.
    Generator(Arc<Layer>, Pointer),
    /// What a kustomization changes.
    Layer(Arc<Layer>),
}

/// A kustomization, as a step.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) kustomization: Arc<Document>,
    /// The patches, in the order in which they are applied.
    pub(crate) patches: Vec<Patch>,
    /// The numbers of those that name an object, by that name.
    pub(crate) by_name: BTreeMap<String, Vec<usize>>,
    /// The numbers of the others.
    pub(crate) by_pattern: Vec<usize>,
    /// The replacements, with their pointers in their documents.
    pub(crate) replacements: Vec<(Piece, Pointer)>,
    /// How many entries of the kustomization each field of an object is compared with, beside patches.
    pub(crate) entries: usize,
    /// Whether one of the patches removes an object.
    pub(crate) removes: bool,
    /// Whether a transformer or a replacement may give its objects other names and namespaces.
    pub(crate) is_open: bool,
}

/// A document that a kustomization uses: that of a file, or one in the kustomization.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) document: Arc<Document>,
    /// Where it stands as a whole, if it is written so that its fields have no places: a text in quotes.
    pub(crate) whole: Option<(Arc<Document>, Pointer)>,
}

/// A patch.
#[derive(Debug)]
pub(crate) struct Patch {
    pub(crate) piece: Piece,
    pub(crate) target: Target,
    /// Whether it may change names, namespaces and kinds.
    pub(crate) renames: bool,
    /// Whether it removes the object.
    pub(crate) removes: bool,
}

/// The objects that a patch or replacement is about.
#[derive(Debug, Default)]
pub(crate) struct Target {
    pub(crate) group: Option<Word>,
    pub(crate) kind: Option<Word>,
    pub(crate) name: Option<Word>,
    pub(crate) namespace: Option<Word>,
}

/// A name, or a pattern of names.
#[derive(Debug)]
pub(crate) enum Word {
    Name(String),
    Pattern(Regex),
}

impl Word {
    /// A text with the meaning of a pattern for whole names; `None` if that is wrong.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let is_plain = |c: char| c.is_alphanumeric() || "-_/".contains(c);
        if text.chars().all(is_plain) {
            return Some(Self::Name(text.to_owned()));
        }
        Regex::new(&format!("^(?:{text})$")).ok().map(Self::Pattern)
    }

    pub(crate) fn fits(&self, text: &str) -> bool {
        match self {
            Self::Name(name) => name == text,
            Self::Pattern(pattern) => pattern.is_match(text),
        }
    }
}

impl Made {
    /// The object after each step, the last one first.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |made| made.before.as_deref())
    }

    /// Each name that it has on the way, once.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.steps().map(|made| made.name.as_str()).collect()
    }
}

impl Target {
    /// Whether an object is one of them, by what it is after any step.
    pub(crate) fn fits(&self, object: &Made) -> bool {
        let fits = |word: &Option<Word>, text: fn(&Made) -> &str| {
            word.as_ref().is_none_or(|word| object.steps().any(|made| word.fits(text(made))))
        };
        fits(&self.group, |made| &made.group)
            && fits(&self.kind, |made| &made.kind)
            && fits(&self.name, |made| &made.name)
            && fits(&self.namespace, |made| &made.namespace)
    }
}
