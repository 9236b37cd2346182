//! What the views of the objects that a rule judges can hold, as far as it is known without an object.

use crate::memory_view::{Role, USERS};
use crate::view_table::ViewTable;

/// Stands for each backend that a table does not name.
pub const OTHER_BACKEND: &str = "";

/// Views of one table, or of pods, which have none.
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
    /// The table.
    pub table: Option<&'static ViewTable>,
    /// The backends, as far as conditions leave them, with [`OTHER_BACKEND`] for those that the table does not name; all when
    /// absent. Pods have them where no variable changes it.
    pub backends: Option<Vec<&'static str>>,
    /// What they have that no table has.
    pub others: Vec<&'static str>,
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
        match path {
            "family" => of(Some(vec![self.family])),
            "role" => of(Some(vec![self.role.name()])),
            "kind" => of(Some(self.kinds.clone())),
            "name" | "labels" | "annotations" => of(None),
            "namespace" => Some(Held::ANYTHING),
            // Where memory is judged with what uses it, they are not counted.
            USERS if self.others.contains(&USERS) => Some(Held::ANYTHING),
            // A variable with the address may hold a password, whether the platform's memory can or not.
            "inline" | "inline[].field" if self.has_address_of_pod() => Some(Held::ANYTHING),
            _ => self.in_table(path),
        }
    }

    /// Whether these are pods with a variable for the address of memory.
    fn has_address_of_pod(&self) -> bool {
        self.user == Role::Pod && self.table.is_some_and(|table| table.has("endpoint"))
    }

    /// Whether the value at a path stands in no field of their objects.
    pub fn derives(&self, path: &str) -> bool {
        self.table.is_some_and(|table| table.is_derived(path))
    }

    /// Whether a pod may set the variables itself that the value at a path comes from.
    fn is_set_by_pod(&self, path: &str) -> bool {
        self.user == Role::Pod && !(path == "backend" && self.backends.is_some())
    }

    fn in_table(&self, path: &str) -> Option<Held> {
        if path.split(['[', '.']).next().is_some_and(|list| self.others.contains(&list)) {
            return Some(Held::ANYTHING);
        }
        let table = self.table?;
        let is_of_kind = |kind: &str| self.kinds.contains(&kind);
        if !table.kinds_with(path, is_of_kind) {
            return None;
        }
        let all_backends = table.words("backend", |_| true);
        let backends = self.backends.as_deref().or(all_backends.as_deref());
        let is_never_missing = table.is_never_missing(path);
        let has = |backend: &&str| is_never_missing || table.is_of_backend(path, backend, is_of_kind);
        if backends.is_some_and(|all| !all.iter().any(has)) {
            return None;
        }
        if self.is_set_by_pod(path) {
            return Some(Held::ANYTHING);
        }
        // Objects without such a thing never miss it.
        let is_everywhere = !is_never_missing
            && (table.backends_with(path).is_none() || backends.is_some_and(|all| all.iter().all(has)));
        let values = match &self.backends {
            Some(backends) if path == "backend" => {
                (!backends.contains(&OTHER_BACKEND)).then(|| backends.clone())
            }
            _ => table.words(path, |backend| backends.is_none_or(|all| all.contains(&backend))),
        };
        let may_be_absent = !(is_everywhere && table.sure.contains(&path));
        Some(Held { may_be_absent, values })
    }
}
