//! What the views of the objects that a rule judges can hold, as far as it is known without an object.

use crate::memory_view::{Role, USERS};
use crate::view_table::ViewTable;

/// Views of one table, or of objects of which no table says anything.
#[derive(Debug, Clone)]
pub struct Possible {
    /// The name of the family.
    pub family: &'static str,
    /// The role of the object that is judged.
    pub user: Role,
    /// Whether they are the views of the objects themselves, and not of the memory that these use.
    pub is_own: bool,
    /// The role of the views.
    pub role: Role,
    /// The kinds.
    pub kinds: Vec<&'static str>,
    /// The table; without one they can hold anything.
    pub table: Option<&'static ViewTable>,
}

/// What views can hold at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Whether an object may be without a value.
    pub may_be_absent: bool,
    /// The values, if all are known.
    pub values: Option<Vec<&'static str>>,
}

impl Held {
    /// A value of which nothing is known.
    pub const ANYTHING: Self = Self { may_be_absent: true, values: None };
}

impl Possible {
    /// What they can hold at a path; `None` if they never have it.
    pub fn at(&self, path: &str) -> Option<Held> {
        let of = |values| Some(Held { may_be_absent: false, values });
        match (path, self.table) {
            ("family", _) => of(Some(vec![self.family])),
            ("role", _) => of(Some(vec![self.role.name()])),
            ("kind", _) => of(Some(self.kinds.clone())),
            ("name" | "labels" | "annotations", _) => of(None),
            ("namespace" | USERS, _) | (_, None) => Some(Held::ANYTHING),
            // A variable with the address may hold a password, whether the platform's memory can or not.
            ("inline" | "inline[].field", _) if self.user == Role::Pod => Some(Held::ANYTHING),
            (_, Some(table)) => self.in_table(path, table),
        }
    }

    /// Whether the value at a path stands in no field of their objects.
    pub fn derives(&self, path: &str) -> bool {
        self.table.is_some_and(|table| table.is_derived(path))
    }

    fn in_table(&self, path: &str, table: &ViewTable) -> Option<Held> {
        if !table.kinds_with(path, |kind| self.kinds.contains(&kind)) {
            return None;
        }
        let values = table.words(path);
        // A pod may set the variables itself that a value comes from, but for the only backend of a platform.
        let is_only = path == "backend" && values.is_some_and(|words| words.len() == 1);
        if self.user == Role::Pod && !is_only {
            return Some(Held::ANYTHING);
        }
        let is_sure = table.sure.contains(&path) && table.backends_with(path).is_none();
        Some(Held { may_be_absent: !is_sure, values: values.map(<[_]>::to_vec) })
    }
}
