//! The memory section of an object: where it is, and what it says.

use memgate_model::kind::Kind;
use memgate_model::tree::Tree;
use memgate_primitives::pointer::Pointer;

use super::api::{AGENT, HARNESS, Line, MOVED_HARNESS, NEWER_AGENT, SANDBOX_AGENT};

/// How many days a memory is kept without `ttlDays`.
pub(crate) const TTL_DAYS_DEFAULT: i64 = 15;

/// The type of an Agent that ignores `spec.declarative`.
const BRING_YOUR_OWN: &str = "BYO";

/// A memory section. Its presence switches memory on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'t> {
    /// The line of kagent that reads it.
    pub(crate) line: Line,
    /// Its place, as field names from the root.
    pub(crate) path: &'static [&'static str],
    /// The section itself, an object.
    pub(crate) tree: &'t Tree,
    /// Whether the type of the agent ignores it.
    pub(crate) is_ignored: bool,
}

impl<'t> Block<'t> {
    /// The memory section of an object; `None` without one, or if it is not an object.
    pub(crate) fn of(kind: &Kind, object: &'t Tree) -> Option<Self> {
        let (path, tree) = places(kind).iter().find_map(|path| Some((*path, object.at(path)?)))?;
        let line = Line::of(kind);
        let is_ignored = line == Line::Older && object.text_at(&["spec", "type"]) == Some(BRING_YOUR_OWN);
        tree.is_object().then_some(Self { line, path, tree, is_ignored })
    }

    /// The place of the section.
    pub(crate) fn pointer(&self) -> Pointer {
        pointer(self.path)
    }

    /// The place of the name of the ModelConfig.
    pub(crate) fn reference_pointer(&self) -> Pointer {
        match self.line {
            Line::Older => self.pointer().key("modelConfig"),
            Line::Newer => self.pointer().key("modelConfigRef").key("name"),
        }
    }

    /// The name of the ModelConfig that computes the vectors: the embedder. It may be empty or invalid.
    pub(crate) fn reference(&self) -> Option<&'t str> {
        match self.line {
            Line::Older => self.tree.text_at(&["modelConfig"]),
            Line::Newer => self.tree.text_at(&["modelConfigRef", "name"]),
        }
    }

    /// `ttlDays`, if it is an integer.
    pub(crate) fn ttl_days(&self) -> Option<i64> {
        self.tree.get("ttlDays").and_then(Tree::integer)
    }
}

/// The places where a kind has its memory section. An Agent of 1.x has one if its harness is inline.
fn places(kind: &Kind) -> &'static [&'static [&'static str]] {
    if *kind == AGENT || *kind == SANDBOX_AGENT {
        &[&["spec", "declarative", "memory"]]
    } else if *kind == HARNESS || *kind == MOVED_HARNESS {
        &[&["spec", "kagent", "memory"]]
    } else if *kind == NEWER_AGENT {
        &[&["spec", "harness", "kagent", "memory"], &["spec", "harness", "inline", "kagent", "memory"]]
    } else {
        &[]
    }
}

/// A pointer of field names.
pub(crate) fn pointer(path: &[&str]) -> Pointer {
    path.iter().fold(Pointer::root(), |pointer, name| pointer.key(name))
}
