//! The views of objects in CEL, for policy rules that the apiserver evaluates itself.
//!
//! A family writes tables of the fields of its views, a typed rule makes expressions over them, and `install` makes
//! ValidatingAdmissionPolicies of these. In a table `self` is the object and `$name` is a [`CelVariable`] of the
//! family's tables, as in [`cel`](crate::cel). Tests on a real apiserver check that a table agrees with the view.

use crate::cel::CelVariable;
use crate::kind::Kind;
use crate::memory_view::{MemoryView, Role};

/// The fields of the views of some kinds that an apiserver can read.
#[derive(Debug, Clone, Copy)]
pub struct CelView {
    /// The name, small letters only; each family uses one once.
    pub name: &'static str,
    /// The kinds; the view reads all of them in the same way.
    pub kinds: &'static [&'static Kind],
    /// The role of their objects for memory.
    pub role: Role,
    /// Whether an object has a view at all, in CEL.
    pub viewed: &'static str,
    /// Named parts that several paths use. Their names begin with the name of the table.
    pub lets: &'static [CelVariable],
    /// The value of the view at each path.
    pub paths: &'static [CelPath],
    /// The paths that the view has and CEL cannot read, each with the reason. An entry covers every path below it.
    pub unsaid: &'static [(&'static str, &'static str)],
    /// The paths that only some backends have. A backend after `!` is one of those that do not have it, and one after
    /// `Kind/` has it for this kind only; `none` never occurs, for a value that is never missing.
    pub backends: &'static [(&'static str, &'static [&'static str])],
    /// The paths whose value may be unknown, each with the cases.
    pub unknown: &'static [(&'static str, &'static str)],
    /// The paths whose value is one of a few words, with these. A word after `backend/` is one of this backend only.
    pub values: &'static [(&'static str, &'static [&'static str])],
    /// The paths that have a value in each view with such a backend: a default, if no other.
    pub sure: &'static [&'static str],
    /// The paths whose values stand in no field: they follow from the kind, or from others.
    pub derived: &'static [&'static str],
    /// Whether no object uses it as its memory.
    pub unused: bool,
}

impl CelView {
    /// Whether a view of these kinds can hold a value at this path or below it, readable in CEL or not.
    pub fn has(&self, path: &str) -> bool {
        let path = without_parts(path);
        let mut unsaid = self.unsaid.iter().map(|(path, _)| *path);
        let below = |known: &str| known.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        self.paths.iter().any(|said| said.path == path || below(said.path))
            || unsaid.any(|known| below(known) || covers(known, path))
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

    /// Whether an object of one of these kinds with this backend has a path, which it may lack.
    pub fn is_of_backend(&self, path: &str, backend: &str, is_meant: impl Fn(&str) -> bool) -> bool {
        self.backends_with(path).is_none_or(|wanted| is_among(wanted, backend, is_meant))
    }

    /// The words that a path can hold with these backends; `None` where it may hold others.
    pub fn words(&self, path: &str, is_left: impl Fn(&str) -> bool) -> Option<Vec<&'static str>> {
        let words = self.values.iter().find(|(known, _)| *known == path).map(|(_, words)| *words)?;
        let of_backend = |word: &&'static str| match word.split_once('/') {
            Some((backend, word)) => is_left(backend).then_some(word),
            None => Some(*word),
        };
        let mut words: Vec<&str> = words.iter().filter_map(of_backend).collect();
        words.sort_unstable();
        words.dedup();
        Some(words)
    }

    /// The backends that it names.
    pub fn named_backends(&self) -> Vec<&'static str> {
        let of_word = |path: &str, word: &'static str| match word.split_once('/') {
            Some((backend, _)) => Some(backend),
            None => (path == "backend").then_some(word),
        };
        let of_values = self.values.iter().flat_map(|(path, words)| {
            words.iter().filter_map(|word| of_word(path, word)).collect::<Vec<_>>()
        });
        let of_paths = self.backends.iter().flat_map(|(_, names)| *names);
        let of_paths =
            of_paths.map(|it| it.trim_start_matches('!')).map(|it| it.rsplit('/').next().unwrap_or(it));
        let mut named: Vec<&str> = of_values.chain(of_paths).filter(|it| *it != "none").collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    /// Whether the value at a path is never missing.
    pub fn is_never_missing(&self, path: &str) -> bool {
        self.backends_with(path) == Some(&["none"])
    }

    /// Whether an object of one of these kinds can hold a value at this path or below it.
    pub fn kinds_with(&self, path: &str, is_meant: impl Fn(&str) -> bool) -> bool {
        let is_of = |name: &&str| name.split_once('/').is_none_or(|(kind, _)| is_meant(kind));
        self.has(path) && self.backends_with(path).is_none_or(|names| names.iter().any(is_of))
    }

    /// The cases in which the value at a path is unknown.
    pub fn unknown_cases(&self, path: &str) -> Option<&'static str> {
        let path = without_parts(path);
        self.unknown.iter().find(|(known, _)| covers(known, path)).map(|(_, cases)| *cases)
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

/// The value of a view at a path.
#[derive(Debug, Clone, Copy)]
pub struct CelPath {
    /// The path. Four paths are not in the view itself: `name.chosen`, the name unless the platform fixes it,
    /// `secrets.place`, the place of a Secret, `sharing.writers`, the number of configurations that write, and
    /// `endpoint.compared`, the text of the whole endpoint, which is compared with the stored one and never shown. It
    /// counts only where `endpoint.from` has a value.
    pub path: &'static str,
    /// A CEL list of strings: the field in the object, one space, and the value. Empty if the value is absent.
    pub entries: &'static str,
}

impl CelPath {
    /// The value of a view at this path.
    pub const fn new(path: &'static str, entries: &'static str) -> Self {
        Self { path, entries }
    }

    /// The name of its variable; `table` is the name of the table.
    pub fn variable(&self, table: &str) -> String {
        let mut name = format!("{table}_");
        for c in self.path.chars() {
            match c {
                '.' => name.push('_'),
                c if c.is_ascii_uppercase() => name.extend(['_', c.to_ascii_lowercase()]),
                c => name.push(c),
            }
        }
        name
    }
}

/// The name of the variable that holds the labels of an object.
pub const LABELS: &str = "labels";

/// The suffix of variables about the stored object.
pub const BEFORE: &str = "_before";

/// The view of the new object, or of the stored one.
#[derive(Debug, Clone, Copy)]
pub struct CelSide<'t> {
    /// The table.
    pub view: &'t CelView,
    /// Whether it is the stored object.
    pub stored: bool,
}

/// Whether CEL can read a path of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sayable {
    /// The entries, as a list in CEL.
    Entries(String),
    /// The view has the path, but CEL cannot read it, for this reason.
    Unsaid(&'static str),
    /// The view never has the path.
    Absent,
}

impl<'t> CelSide<'t> {
    /// The view of the new object.
    pub const fn new(view: &'t CelView) -> Self {
        Self { view, stored: false }
    }

    /// The view of the stored object.
    #[must_use]
    pub const fn before(self) -> Self {
        Self { stored: true, ..self }
    }

    /// The value of a view at a path.
    pub fn at(&self, path: &str) -> Sayable {
        if let Some(said) = self.view.paths.iter().find(|said| said.path == path) {
            return Sayable::Entries(self.variable(&said.variable(self.view.name)));
        }
        let is_about = |unsaid: &str| {
            let below = unsaid.strip_prefix(path).filter(|below| *below != ".default");
            covers(unsaid, path) || below.is_some_and(|below| below.starts_with('.'))
        };
        let unsaid = self.view.unsaid.iter().find(|(unsaid, _)| is_about(unsaid));
        unsaid.map_or(Sayable::Absent, |(_, reason)| Sayable::Unsaid(reason))
    }

    /// Whether an object with this backend can have a path, in CEL; the reason where the backend cannot be read.
    ///
    /// # Errors
    /// The reason for which CEL cannot read the backend.
    pub fn applies(&self, path: &str) -> Result<String, &'static str> {
        if path == "namespace" {
            return Ok("has(request.namespace)".to_owned());
        }
        let Some(backends) = self.view.backends_with(path) else { return Ok("true".to_owned()) };
        let found = match self.at("backend") {
            Sayable::Entries(found) => found,
            Sayable::Unsaid(reason) => return Err(reason),
            Sayable::Absent => return Ok("false".to_owned()),
        };
        let names = backends.iter().map(|name| format!("'{}'", name.trim_start_matches('!')));
        let names = names.collect::<Vec<_>>().join(", ");
        let not = if backends.first().is_some_and(|first| first.starts_with('!')) { "!" } else { "" };
        // Backends have no spaces.
        Ok(format!("{found}.exists(it, {not}(it.split(' ', 2)[1] in [{names}]))"))
    }

    /// Why CEL cannot read what counts for an object without a value at a path, if another object says it. A table has
    /// the reason in `unsaid`, under the path and `.default`.
    pub fn default_unsaid(&self, path: &str) -> Option<&'static str> {
        let unsaid =
            self.view.unsaid.iter().find(|(unsaid, _)| unsaid.strip_suffix(".default") == Some(path));
        unsaid.map(|(_, reason)| *reason)
    }

    /// The labels of the object, as a map in CEL.
    pub fn labels(&self) -> String {
        self.variable(LABELS)
    }

    fn variable(&self, name: &str) -> String {
        format!("variables.{name}{}", if self.stored { BEFORE } else { "" })
    }
}

/// A rule in CEL.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct InCel {
    /// The faults that the apiserver can find.
    pub faults: Vec<CelFault>,
    /// The fields of the rule that CEL cannot express, each with the reason.
    pub unsaid: Vec<(String, String)>,
}

/// One way to break a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CelFault {
    /// A list of texts in CEL: for each fault the field, a space, and the words of its cause.
    pub list: String,
    /// How many words a fault has; the last one may hold spaces.
    pub words: usize,
    /// The message.
    pub message: Vec<MessagePart>,
    /// What tells whether the stored object has the fault too.
    pub stored: StoredFault,
}

/// When a stored object has the same fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredFault {
    /// Never: the fault is about a change.
    Never,
    /// When it has the same text.
    Equal,
    /// When it has one in the same field with at least this number, in CEL over the fault `it`.
    AtLeast(String),
    /// Known to memgate only, for this reason.
    Unsaid(&'static str),
}

impl StoredFault {
    /// Why an apiserver cannot tell.
    pub const fn unsaid(&self) -> Option<&'static str> {
        if let Self::Unsaid(reason) = self { Some(reason) } else { None }
    }
}

/// A part of a message about the first fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessagePart {
    /// This text.
    Text(String),
    /// The word of the fault at this index, in quotes.
    Quoted(usize),
    /// The same for the name of an object: of what cannot be one only the start and the length.
    Name(usize),
    /// The word of the fault at this index.
    Plain(usize),
}

impl InCel {
    /// Adds a way to break the rule whose faults have a field and one value.
    pub fn add(&mut self, list: String, message: Vec<MessagePart>) {
        self.faults.push(CelFault { list, words: 2, message, stored: StoredFault::Equal });
    }

    /// The same for a fault by a number, which is this far on the forbidden side, in CEL over the fault `it`.
    pub fn add_number(&mut self, list: String, message: Vec<MessagePart>, excess: String) {
        self.faults.push(CelFault { list, words: 2, message, stored: StoredFault::AtLeast(excess) });
    }

    /// Notes a field of the rule that CEL cannot express.
    pub fn leave_out(&mut self, field: impl Into<String>, reason: impl Into<String>) {
        self.unsaid.push((field.into(), reason.into()));
    }

    /// Notes a field of the rule for which CEL cannot read a path that the view has.
    pub fn leave_out_unsaid(&mut self, side: &CelSide<'_>, path: &str, field: &str) {
        if let Sayable::Unsaid(reason) = side.at(path) {
            self.leave_out(field, reason);
        }
    }

    /// The entries at a path of a view. If the view has the path but CEL cannot read it, notes this for `field` of
    /// the rule.
    pub fn entries(&mut self, side: &CelSide<'_>, path: &str, field: &str) -> Option<String> {
        self.leave_out_unsaid(side, path, field);
        if let Sayable::Entries(entries) = side.at(path) { Some(entries) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static VIEW: CelView = CelView {
        name: "memory",
        kinds: &[],
        role: Role::Memory,
        viewed: "true",
        lets: &[],
        paths: &[CelPath::new("maxEntries", "[]"), CelPath::new("endpoint.from", "[]")],
        unsaid: &[("endpoint", "it is a URL")],
        backends: &[],
        unknown: &[],
        values: &[],
        sure: &[],
        derived: &[],
        unused: false,
    };

    #[test]
    fn tells_what_can_be_said() {
        let side = CelSide::new(&VIEW);
        assert_eq!(side.at("maxEntries"), Sayable::Entries("variables.memory_max_entries".to_owned()));
        let before = Sayable::Entries("variables.memory_endpoint_from_before".to_owned());
        assert_eq!(side.before().at("endpoint.from"), before);
        assert_eq!(side.at("endpoint"), Sayable::Unsaid("it is a URL"));
        assert_eq!(side.at("endpoint.host"), Sayable::Unsaid("it is a URL"));
        assert_eq!(side.at("endpoints"), Sayable::Absent);
    }
}
