//! The views of objects in CEL, for policy rules that the apiserver evaluates itself.
//!
//! A family writes tables of the fields of its views, a typed rule makes expressions over them, and `deploy` makes
//! ValidatingAdmissionPolicies of these. In a table `self` is the object and `$name` is a [`CelVariable`] of the
//! family's tables, as in [`cel`](crate::cel). Tests on a real apiserver check that a table agrees with the view.

use crate::cel::CelVariable;
use crate::kind::Kind;
use crate::memory_view::Role;

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
}

impl CelView {
    /// Whether a view of these kinds can hold a value at this path or below it, readable in CEL or not.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        let unsaid = self.unsaid.iter().map(|(path, _)| *path);
        let mut all = self.paths.iter().map(|said| said.path).chain(unsaid);
        all.any(|known| known == path || known.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
    }
}

/// The value of a view at a path.
#[derive(Debug, Clone, Copy)]
pub struct CelPath {
    /// The path. Two paths are not in the view itself: `secrets.place`, the place of a Secret, and `sharing.writers`,
    /// the number of configurations that write.
    pub path: &'static str,
    /// A CEL list of strings: the field in the object, one space, and the value. Empty if the value is absent.
    pub entries: &'static str,
}

impl CelPath {
    /// The value of a view at this path.
    #[must_use]
    pub const fn new(path: &'static str, entries: &'static str) -> Self {
        Self { path, entries }
    }

    /// The name of its variable; `table` is the name of the table.
    #[must_use]
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
    #[must_use]
    pub const fn new(view: &'t CelView) -> Self {
        Self { view, stored: false }
    }

    /// The view of the stored object.
    #[must_use]
    pub const fn before(self) -> Self {
        Self { stored: true, ..self }
    }

    /// The value of a view at a path.
    #[must_use]
    pub fn at(&self, path: &str) -> Sayable {
        if let Some(said) = self.view.paths.iter().find(|said| said.path == path) {
            return Sayable::Entries(self.variable(&said.variable(self.view.name)));
        }
        let covers = |unsaid: &str| {
            path.strip_prefix(unsaid).is_some_and(|below| below.is_empty() || below.starts_with('.'))
        };
        let unsaid = self.view.unsaid.iter().find(|(unsaid, _)| covers(unsaid));
        unsaid.map_or(Sayable::Absent, |(_, reason)| Sayable::Unsaid(reason))
    }

    /// Why CEL cannot read what counts for an object without a value at a path, if another object says it. A table has
    /// the reason in `unsaid`, under the path and `.default`.
    #[must_use]
    pub fn default_unsaid(&self, path: &str) -> Option<&'static str> {
        let unsaid =
            self.view.unsaid.iter().find(|(unsaid, _)| unsaid.strip_suffix(".default") == Some(path));
        unsaid.map(|(_, reason)| *reason)
    }

    /// The labels of the object, as a map in CEL.
    #[must_use]
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
    /// Whether the fault is about a change, so that the stored object alone never has it.
    pub transition: bool,
}

/// A part of a message about the first fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessagePart {
    /// This text.
    Text(String),
    /// The word of the fault at this index, in quotes.
    Quoted(usize),
    /// The word of the fault at this index.
    Plain(usize),
}

impl InCel {
    /// Adds a way to break the rule whose faults have a field and one value.
    pub fn add(&mut self, list: String, message: Vec<MessagePart>) {
        self.faults.push(CelFault { list, words: 2, message, transition: false });
    }

    /// Notes a field of the rule that CEL cannot express.
    pub fn leave_out(&mut self, field: impl Into<String>, reason: impl Into<String>) {
        self.unsaid.push((field.into(), reason.into()));
    }

    /// The entries at a path of a view. If the view has the path but CEL cannot read it, notes this for `field` of
    /// the rule.
    pub fn entries(&mut self, side: &CelSide<'_>, path: &str, field: &str) -> Option<String> {
        match side.at(path) {
            Sayable::Entries(entries) => Some(entries),
            Sayable::Unsaid(reason) => {
                self.leave_out(field, reason);
                None
            }
            Sayable::Absent => None,
        }
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
