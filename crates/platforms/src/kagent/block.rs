//! The memory section of an object: where it is, and what it says.
//!
//! The template and the harness of an Agent of 1.x are each inline, or named.

use super::prelude::*;

/// How many days a memory is kept without `ttlDays`.
pub(crate) const TTL_DAYS_DEFAULT: i64 = 15;

/// The most days that kagent counts without an overflow: it computes them in nanoseconds, in 64 bits.
/// Source: kagent 0.10, `AddSession`.
pub(crate) const MAX_TTL_DAYS: i64 = 106_751;

/// The type of an Agent that ignores `spec.declarative`.
const BRING_YOUR_OWN: &str = "BYO";

/// A memory section. Its presence switches memory on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'t> {
    /// The line of kagent that reads it.
    pub(crate) line: Line,
    /// Its place, as field names from the root.
    pub(crate) path: Path,
    /// The section itself, an object.
    pub(crate) tree: &'t Tree,
    /// Whether the type of the agent ignores it.
    pub(crate) is_ignored: bool,
}

impl<'t> Block<'t> {
    /// The memory section of an object; `None` without one, or if it is not an object.
    pub(crate) fn of(kind: &Kind, object: &'t Tree) -> Option<Self> {
        let [path, _] = places(kind)?;
        let tree = object.at(path).filter(|tree| tree.is_object())?;
        Some(Self { line: Line::of(kind), path, tree, is_ignored: is_brought(kind, object) })
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

    /// The name of the embedder, if kagent reads it and a ModelConfig can have it.
    pub(crate) fn embedder(&self) -> Option<&'t str> {
        self.reference().filter(|name| !self.is_ignored && is_dns_subdomain(name))
    }

    /// `ttlDays`, if it is an integer.
    pub(crate) fn ttl_days(&self) -> Option<i64> {
        self.tree.get("ttlDays").and_then(Tree::integer)
    }
}

/// Field names from the root.
type Path = &'static [&'static str];

/// Where an object has its memory section and the compaction of sessions; `None` for a kind without such sections. An
/// Agent of 1.x has them if its harness is inline.
pub(crate) fn places(kind: &Kind) -> Option<[Path; 2]> {
    const OLDER: [Path; 2] =
        [&["spec", "declarative", "memory"], &["spec", "declarative", "context", "compaction"]];
    const NEWER: [Path; 2] = [&["spec", "kagent", "memory"], &["spec", "kagent", "compaction"]];
    const INLINE: [Path; 2] =
        [&["spec", "harness", "kagent", "memory"], &["spec", "harness", "kagent", "compaction"]];
    match kind {
        _ if AGENTS.contains(&kind) => Some(OLDER),
        _ if *kind == HARNESS || *kind == MOVED_HARNESS => Some(NEWER),
        _ => (*kind == NEWER_AGENT).then_some(INLINE),
    }
}

/// Whether the type of an Agent ignores `spec.declarative`.
pub(crate) fn is_brought(kind: &Kind, object: &Tree) -> bool {
    Line::of(kind) == Line::Older && object.text_at(&["spec", "type"]) == Some(BRING_YOUR_OWN)
}

/// A pointer of field names.
pub(crate) fn pointer(path: &[&str]) -> Pointer {
    path.iter().fold(Pointer::root(), |pointer, name| pointer.key(name))
}

/// The template or the harness of an Agent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'t> {
    /// A spec in the Agent itself.
    Inline(&'t Tree),
    /// The name of an object of the same namespace, and its place.
    Named {
        /// The name. It may be empty or invalid.
        name: &'t str,
        /// The field with the name.
        path: &'static [&'static str],
    },
}

/// The harness of an Agent.
pub(crate) fn harness(agent: &Tree) -> Option<Part<'_>> {
    part(agent, &["spec", "harness"], &["spec", "harnessRef", "name"])
}

/// The template of an Agent.
pub(crate) fn template(agent: &Tree) -> Option<Part<'_>> {
    part(agent, &["spec", "template"], &["spec", "templateRef", "name"])
}

fn part<'t>(agent: &'t Tree, inline: &[&str], path: Path) -> Option<Part<'t>> {
    let named = || agent.text_at(path).map(|name| Part::Named { name, path });
    agent.at(inline).map(Part::Inline).or_else(named)
}
