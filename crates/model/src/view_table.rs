//! What the views of some kinds can hold, as far as it is known without an object.
//!
//! Each platform writes a table for each of its views. Rules read it to tell a value that an object lacks from one that
//! objects like it never have, and to tell what never applies.

use crate::kind::Kind;
use crate::memory_view::{MemoryView, Role};

/// The values that the views of some kinds can hold.
#[derive(Debug, Clone, Copy)]
pub struct ViewTable {
    /// The kinds; the view reads all of them in the same way.
    pub kinds: &'static [&'static Kind],
    /// The role of their objects for memory.
    pub role: Role,
    /// The paths that the view has. An entry covers every path below it.
    pub paths: &'static [&'static str],
    /// The paths that only some backends have. A backend after `!` is one of those that do not have it, and one after
    /// `Kind/` has it for this kind only; `none` never occurs, for a value that is never missing.
    pub backends: &'static [(&'static str, &'static [&'static str])],
    /// The paths whose value is one of a few words, with these.
    pub values: &'static [(&'static str, &'static [&'static str])],
    /// The paths that have a value in each view with such a backend: a default, if no other.
    pub sure: &'static [&'static str],
    /// The paths whose values stand in no field: they follow from the kind, or from others.
    pub derived: &'static [&'static str],
}

impl ViewTable {
    /// The table of these kinds in this role, whose views hold nothing yet.
    pub const fn new(role: Role, kinds: &'static [&'static Kind]) -> Self {
        Self { kinds, role, paths: &[], backends: &[], values: &[], sure: &[], derived: &[] }
    }

    /// Whether a view of these kinds can hold a value at this path or below it.
    pub fn has(&self, path: &str) -> bool {
        let path = without_parts(path);
        self.paths.iter().any(|known| covers(known, path) || covers(path, known))
    }

    /// Whether an object like this can have a value at a path that it has not.
    pub fn can_have(&self, view: &MemoryView, path: &str) -> bool {
        let is_of_backend = |wanted: &[&str]| {
            view.text("backend").is_some_and(|backend| is_among(wanted, backend, |kind| kind == view.kind))
        };
        self.is_about(view) && self.has(path) && self.backends_with(path).is_none_or(is_of_backend)
    }

    fn is_about(&self, view: &MemoryView) -> bool {
        let is_of_kind = self.kinds.iter().any(|kind| kind.kind == view.kind);
        self.role == view.role && (is_of_kind || view.is_undeclared())
    }

    /// Whether the value of an object like this at a path stands in no field of it.
    pub fn derives(&self, view: &MemoryView, path: &str) -> bool {
        self.is_about(view) && self.is_derived(path)
    }

    /// Whether the value at a path stands in no field.
    pub fn is_derived(&self, path: &str) -> bool {
        self.derived.iter().any(|known| covers(known, path))
    }

    /// The backends that have a path; `None` for every backend.
    pub fn backends_with(&self, path: &str) -> Option<&'static [&'static str]> {
        let path = without_parts(path);
        self.backends.iter().find(|(known, _)| covers(known, path)).map(|(_, backends)| *backends)
    }

    /// The words that a path can hold; `None` where it may hold others.
    pub fn words(&self, path: &str) -> Option<&'static [&'static str]> {
        self.values.iter().find(|(known, _)| *known == path).map(|(_, words)| *words)
    }

    /// Whether an object of one of these kinds can hold a value at this path or below it.
    pub fn kinds_with(&self, path: &str, is_meant: impl Fn(&str) -> bool) -> bool {
        let is_of = |name: &&str| name.split_once('/').is_none_or(|(kind, _)| is_meant(kind));
        self.has(path) && self.backends_with(path).is_none_or(|names| names.iter().any(is_of))
    }
}

/// Whether a path is this one or below it.
fn covers(known: &str, path: &str) -> bool {
    path.strip_prefix(known).is_some_and(|below| below.is_empty() || below.starts_with('.'))
}

/// The path of the list or the map in which a path ends.
fn without_parts(path: &str) -> &str {
    path.split_once('[').map_or(path, |(list, _)| list)
}

fn is_among(wanted: &[&str], backend: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    if wanted.first().is_some_and(|first| first.starts_with('!')) {
        !wanted.iter().any(|wanted| wanted.strip_prefix('!') == Some(backend))
    } else {
        wanted.iter().any(|wanted| match wanted.split_once('/') {
            Some((kind, wanted)) => is_meant(kind) && wanted == backend,
            None => *wanted == backend,
        })
    }
}
