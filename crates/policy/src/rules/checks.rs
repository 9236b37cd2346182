//! A rule that is made of conditions, and its conditions in CEL.

use std::collections::BTreeSet;

use memgate_model::cel_view::{CelFault, CelSide, InCel, MessagePart, Sayable, StoredFault};
use memgate_model::memory_view::{Holds, Role, USERS};
use memgate_model::possible::Possible;
use memgate_model::typed_rule::{Conditions, Idle, Judged, PassesWithout, RuleOutcome, RuleRoles, TypedRule};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

use super::check::Given;
use super::check::{BYTE, Bound, Check, Condition, Says, Shows, Zero};
use super::contradictions::contradictions;
use super::words::forbids_nothing;
use crate::in_cel::{NOT_ASCII, VALUE, globs, list, literal, text};
use crate::text::HIDDEN;

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

    fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        for check in self.all.iter().filter(|check| check.path.own.contains(&side.view.role)) {
            check.in_cel(side, said);
        }
    }

    fn reads_other_objects(&self) -> bool {
        self.is_generic || self.paths().iter().any(|path| ["durable", "ttlSeconds"].contains(path))
    }
}

impl Check {
    /// The condition as one of a rule, over a view that an apiserver makes; `None` if it never holds there.
    pub(super) fn condition_in_cel(&self, side: &CelSide<'_>) -> Result<Option<String>, &'static str> {
        let (path, role) = (&self.path, side.view.role);
        if path.by_sources.contains(&role) && !(path.own.contains(&role) && side.view.has(path.path)) {
            return Ok(None);
        }
        // An absent value meets these.
        let of_absent = matches!(self.condition, Condition::Exists(false) | Condition::Written(false));
        let entries = match self.entries_in_cel(side) {
            Sayable::Entries(entries) => entries,
            Sayable::Unsaid(reason) => return Err(reason),
            Sayable::Absent => return Ok(of_absent.then(|| "true".to_owned())),
        };
        if let Some(reason) = side.default_unsaid(self.path.path) {
            return Err(reason);
        }
        Ok(Some(match &self.condition {
            Condition::Exists(true) => format!("size({entries}) > 0"),
            Condition::Exists(false) => format!("size({entries}) == 0"),
            Condition::Allowed(allowed) => {
                let words = allowed.allow.iter().flat_map(|words| &words.texts);
                let words: Vec<String> = words.map(|word| word.to_lowercase()).collect();
                format!("{entries}.exists(it, {VALUE}.lowerAscii() in {})", list(&words))
            }
            _ => format!("{entries}.exists(it, !({}))", self.fails_in_cel(side.stored)?),
        }))
    }

    pub(super) fn in_cel(&self, side: &CelSide<'_>, said: &mut InCel) {
        let entries = match self.entries_in_cel(side) {
            Sayable::Entries(entries) => entries,
            Sayable::Unsaid(reason) => return said.leave_out(&self.field, reason),
            Sayable::Absent => return,
        };
        if let Some(reason) = side.default_unsaid(self.path.path) {
            said.leave_out(format!("{} of Queries without spec.ttl", self.field), reason);
        }
        let Says { before, shows, behind } = &self.says;
        let shown = match shows {
            Shows::Nothing => None,
            Shows::Number => Some(MessagePart::Plain(1)),
            Shows::Hidden => Some(text(HIDDEN)),
            Shows::Name => Some(MessagePart::Name(1)),
            Shows::Value | Shows::Backend => Some(MessagePart::Quoted(1)),
        };
        let message = [Some(text(&**before)), shown, Some(text(&**behind))].into_iter().flatten().collect();
        let number = match self.path.holds {
            Holds::Quantity => format!("quantity({VALUE}).asApproximateFloat()"),
            _ => format!("int({VALUE})"),
        };
        let above_all = || format!("({number} == 0 ? {} : {number})", i64::MAX);
        let list = match self.list_in_cel(&entries, side, said) {
            Ok(list) => list,
            Err(reason) => return said.leave_out(&self.field, reason),
        };
        if let Some(text) = self.compared_in_cel(side) {
            // A third word of the fault, which no message shows: in another endpoint it is another fault.
            let list = format!("{list}.map(it, it + ' ' + {text}.join(' '))");
            return said.faults.push(CelFault { list, words: 3, message, stored: StoredFault::Equal });
        }
        match &self.condition {
            Condition::AtLeast(_) => said.add_number(list, message, format!("-{number}")),
            Condition::AtMost(Bound { zero: Zero::Number, .. }) => said.add_number(list, message, number),
            Condition::AtMost(_) | Condition::NotZero => said.add_number(list, message, above_all()),
            _ => said.add(list, message),
        }
    }

    /// The text that is compared with that of the stored object in place of the value: that of the whole endpoint.
    fn compared_in_cel(&self, side: &CelSide<'_>) -> Option<String> {
        let is_value = !matches!(self.condition, Condition::Exists(true));
        match side.at("endpoint.compared") {
            Sayable::Entries(text) if is_value && self.path.path.starts_with("endpoint") => Some(text),
            _ => None,
        }
    }

    /// The list of the faults in CEL.
    fn list_in_cel(
        &self,
        entries: &str,
        side: &CelSide<'_>,
        said: &mut InCel,
    ) -> Result<String, &'static str> {
        if self.says.shows == Shows::Backend {
            let backends = said.entries(side, "backend", &self.field).unwrap_or_else(|| "[]".to_owned());
            return Ok(format!("{entries}.exists(it, it.endsWith(' false')) ? {backends} : []"));
        }
        if matches!(self.condition, Condition::Exists(true)) {
            let applies = side.applies(self.path.path).map_err(|_| "its backend cannot be read in CEL")?;
            let place = match self.path.path {
                "labels" => "metadata.labels ",
                "name" | "namespace" => "metadata ",
                _ => "spec ",
            };
            return Ok(format!("size({entries}) == 0 && {applies} ? ['{place}'] : []"));
        }
        Ok(format!("{entries}.filter(it, {})", self.fails_in_cel(side.stored)?))
    }

    /// The values at the path in CEL, as the table of the kind has them.
    fn entries_in_cel(&self, side: &CelSide<'_>) -> Sayable {
        let path = self.path.path;
        let metadata = |field: &str| {
            let entry = format!("'metadata.{field} ' + request.{field}");
            Sayable::Entries(format!("(has(request.{field}) ? [{entry}] : [])"))
        };
        match (path, &self.key) {
            ("labels", Some(key)) => {
                let (key, labels) = (literal(key), side.labels());
                let found = format!("[{key}].filter(key, key in {labels})");
                Sayable::Entries(format!("{found}.map(key, 'metadata.labels ' + {labels}[key])"))
            }
            ("name" | "namespace", _) => metadata(path),
            ("kind", _) => Sayable::Entries("['kind ' + request.kind.kind]".to_owned()),
            ("role", _) => Sayable::Entries(format!("['metadata {}']", side.view.role.name())),
            ("secrets[].name", _) => side.at("secrets"),
            ("operations[]", _) => side.at("operations"),
            ("endpoint", _) => side.at("endpoint.from"),
            (USERS, _) if side.view.role == Role::Memory => {
                Sayable::Unsaid("agents are counted, and a ValidatingAdmissionPolicy sees no other object")
            }
            ("family" | "labels" | "annotations", _) => Sayable::Unsaid("the export does not read this path"),
            _ if path.contains("[]") => match side.at(path.split("[]").next().unwrap_or_default()) {
                Sayable::Entries(_) => Sayable::Unsaid("CEL reads the names of Secrets only"),
                other => other,
            },
            _ => side.at(path),
        }
    }

    /// Whether the value of `it` fails, in CEL; the reason where CEL compares in another way.
    fn fails_in_cel(&self, is_stored: bool) -> Result<String, &'static str> {
        let is_quantity = self.path.holds == Holds::Quantity;
        let bound = |bound: &Bound, number: &str, quantity: &str| {
            let limit = literal(&bound.written);
            match bound.value % BYTE {
                0 if is_quantity => Ok(format!("quantity({VALUE}).{quantity}(quantity({limit}))")),
                _ if is_quantity => Err("sizes are rounded up to bytes here, and the limit is none"),
                _ => Ok(format!("int({VALUE}) {number} {}", bound.written)),
            }
        };
        let not = |wanted: bool| if wanted { "!" } else { "" };
        match &self.condition {
            Condition::In { .. } if is_quantity => {
                Err("sizes are rounded up to bytes here, and CEL compares quantities")
            }
            Condition::In { written, .. } if self.name == "equals" => {
                Ok(format!("{VALUE} != {}", written.first().map(|it| literal(it)).unwrap_or_default()))
            }
            Condition::In { written, wanted: true, .. } => Ok(format!("!({VALUE} in {})", list(written))),
            Condition::In { written, .. } => Ok(format!("{VALUE} in {}", list(written))),
            Condition::Allowed(allowed) => Ok(format!("!({})", allowed.in_cel().ok_or(NOT_ASCII)?)),
            Condition::Fits { written, wanted, .. } => {
                let fits = globs(written.iter().map(String::as_str));
                Ok(format!("{}{VALUE}.matches({fits})", not(*wanted)))
            }
            Condition::AtLeast(min) if min.zero == Zero::Number => bound(min, "<", "isLessThan"),
            Condition::AtLeast(min) => Ok(format!("int({VALUE}) > 0 && int({VALUE}) < {}", min.written)),
            // A stored 0 is above the limit too.
            Condition::AtMost(max) if max.zero == Zero::Forbidden && is_stored => {
                Ok(format!("{} || int({VALUE}) == 0", bound(max, ">", "isGreaterThan")?))
            }
            Condition::AtMost(max) => bound(max, ">", "isGreaterThan"),
            Condition::NotZero => Ok(format!("int({VALUE}) == 0")),
            Condition::Exists(_) => Ok("true".to_owned()),
            Condition::Written(_) => Err("what memgate wrote as a default is not known there"),
        }
    }
}
