//! A rule that is made of conditions.

use memgate_model::memory_view::Role;
use memgate_model::typed_rule::{JudgedView, RuleOutcome, RuleRoles, TypedRule};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

use super::check::{Check, Condition};
use super::contradictions::contradictions;

/// The rule.
#[derive(Debug)]
pub(super) struct Checks {
    pub(super) all: Vec<Check>,
    /// Whether its roles follow from its paths, as those of `fields`.
    pub(super) is_generic: bool,
}

impl Checks {
    /// The rule of a type with these conditions.
    pub(super) fn of_type(checks: impl IntoIterator<Item = Check>) -> Self {
        Self { all: checks.into_iter().collect(), is_generic: false }
    }

    /// The roles that all paths share.
    pub(super) fn shared(&self) -> RuleRoles {
        let shared = |role: &Role| {
            self.all.iter().all(|check| check.path.own.contains(role) || check.path.by_sources.contains(role))
        };
        let of = |list: fn(&Check) -> &'static [Role]| {
            let all = Role::ALL.into_iter().filter(shared);
            all.filter(|role| self.all.iter().any(|check| list(check).contains(role))).collect::<Vec<_>>()
        };
        let mut default: Vec<Role> = Role::ALL.into_iter().filter(shared).collect();
        if default.contains(&Role::Memory) {
            let of_containers = self.all.iter().any(|check| check.path.path.starts_with("containers"));
            default.retain(|role| *role == Role::Memory || of_containers);
        }
        RuleRoles { default, own: of(|check| check.path.own), by_sources: of(|check| check.path.by_sources) }
    }

    /// The conditions about this view.
    fn about<'c>(&'c self, judged: &'c JudgedView<'_>) -> impl Iterator<Item = &'c Check> {
        self.all.iter().filter(|check| !self.is_generic || check.is_of(judged))
    }
}

impl TypedRule for Checks {
    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        for check in self.about(judged) {
            if !judged.budget.step() {
                return;
            }
            check.judge(judged, outcome);
        }
    }

    fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = self.all.iter().map(|check| check.path.path).collect();
        paths.dedup();
        paths
    }

    fn applies(&self, judged: &JudgedView<'_>) -> bool {
        self.about(judged).any(|check| judged.can_have(check.path.path))
    }

    fn roles(&self) -> Option<RuleRoles> {
        self.is_generic.then(|| self.shared())
    }

    fn contradictions(&self, budget: &Budget<'_>) -> Vec<(Pointer, String)> {
        let of_words = self.all.iter().filter_map(|check| match &check.condition {
            Condition::Allowed(allowed) => Some(allowed.contradictions()),
            _ => None,
        });
        let mut found: Vec<(Pointer, String)> = of_words.flatten().collect();
        let both = contradictions(&self.all, false, budget).into_iter();
        found.extend(both.filter_map(|index| {
            let check = self.all.get(index)?;
            if self.is_generic {
                let path = check.written_path();
                let message = format!("contradicts another condition on {path}, so nothing passes");
                return Some((Pointer::root().index(index).key(check.name), message));
            }
            let below = check.field.split('.').skip(1);
            let place = below.fold(Pointer::root(), |place, field| place.key(field));
            Some((place.key(check.name), "is above max, so nothing passes".to_owned()))
        }));
        found
    }

    fn reads_written(&self) -> bool {
        self.all.iter().any(|check| matches!(check.condition, Condition::Written(_)))
    }

    fn reads_other_objects(&self) -> bool {
        self.is_generic || self.paths().iter().any(|path| ["durable", "ttlSeconds"].contains(path))
    }
}
