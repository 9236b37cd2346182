//! A rule that is made of conditions.

use std::collections::BTreeSet;

use memgate_model::memory_view::Role;
use memgate_model::possible::Possible;
use memgate_model::typed_rule::{Conditions, Idle, Judged, PassesWithout, RuleOutcome, RuleRoles, TypedRule};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

use super::check::{Check, Condition, Given};
use super::contradictions::contradictions;
use super::words::forbids_nothing;

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
    fn about<'c>(&'c self, judged: &'c Judged<'_>) -> impl Iterator<Item = &'c Check> {
        self.all.iter().filter(|check| !self.is_generic || check.is_of(judged))
    }
}

impl TypedRule for Checks {
    fn judge(&self, judged: &Judged<'_>, outcome: &mut RuleOutcome) {
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

    fn applies(&self, judged: &Judged<'_>) -> bool {
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

    fn idle(&self, possible: &[Possible], when: Option<&dyn Conditions>, budget: &Budget<'_>) -> Vec<Idle> {
        if self.all.is_empty() {
            return forbids_nothing();
        }
        let given = Given::of(when);
        let idle = |pointer, (message, help)| Idle { pointer, message, help };
        if self.is_generic {
            let of_entry = |(check, index): (&Check, usize)| {
                Some(idle(
                    Pointer::root().index(index).key(check.name),
                    check.idle(possible, &given, budget)?,
                ))
            };
            return self.all.iter().zip(0_usize..).filter_map(of_entry).collect();
        }
        let reasons: Option<Vec<_>> =
            self.all.iter().map(|check| check.idle(possible, &given, budget)).collect();
        let first = reasons.and_then(|all| all.into_iter().next());
        first.map(|reason| idle(Pointer::root(), reason)).into_iter().collect()
    }

    fn passes_without(&self) -> Vec<PassesWithout> {
        let asks = |key: &str, check: &Check| {
            matches!(check.condition, Condition::Exists(true) | Condition::Written(true))
                && check.key.as_deref() == Some(key)
        };
        let mut asked = BTreeSet::new();
        for check in &self.all {
            asked.extend(
                check.key.as_deref().filter(|key| asks(key, check)).map(|key| (check.path.path, key)),
            );
        }
        let of_entry = |(check, index): (&Check, usize)| {
            let key = check.key.as_deref().filter(|key| !asked.contains(&(check.path.path, key)))?;
            let is_positive = match &check.condition {
                Condition::In { wanted, .. } | Condition::Fits { wanted, .. } => *wanted,
                Condition::AtLeast(_) | Condition::AtMost(_) => true,
                _ => false,
            };
            is_positive.then(|| PassesWithout {
                pointer: Pointer::root().index(index).key(check.name),
                map: check.path.path,
                key: key.to_owned(),
                help: format!("add {{path: '{}', exists: true}}", check.written_path()),
            })
        };
        self.all.iter().zip(0_usize..).filter_map(of_entry).collect()
    }

    fn reads_written(&self) -> bool {
        self.all.iter().any(|check| matches!(check.condition, Condition::Written(_)))
    }

    fn reads_other_objects(&self) -> bool {
        self.is_generic || self.paths().iter().any(|path| ["durable", "ttlSeconds"].contains(path))
    }
}

impl Check {}
