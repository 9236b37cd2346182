//! `when`: the conditions under which a rule applies.

use std::slice;

use memgate_model::finding::Cause;
use memgate_model::memory_view::ViewPath;
use memgate_model::possible::Possible;
use memgate_model::typed_rule::{Applies, Conditions, JudgedView};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

use super::check::{Check, Condition, FIELD, Says, Shows, When};
use super::contradictions::contradictions;
use super::fields::{entry, known_paths};
use super::words::{Allowed, MAX_ENTRIES, Words};
use crate::reader::Reader;

/// The most characters of a backend or provider.
const MAX_CHARS: usize = 64;

const PARTS: [&str; 3] = ["backends", "providers", "fields"];

/// Reads the conditions of a rule.
pub(crate) fn read(reader: &Reader<'_>) -> Option<Box<dyn Conditions>> {
    let fields = reader.fields(&PARTS)?;
    if !PARTS.iter().any(|part| fields.has(part)) {
        fields.fault_here(Cause::Required, "needs backends or providers, or fields");
    }
    let words = |field: &str, path| {
        let allow = Some(Words::read_within(&fields, field, MAX_CHARS)?);
        let condition = Condition::Allowed(Allowed { allow, deny: None });
        let says = Says { before: "".into(), shows: Shows::Value, behind: "".into() };
        let (path, field) = (ViewPath::known(path), format!("{FIELD}{path}"));
        Some(Check { path, key: None, field, name: "allow", condition, says })
    };
    let mut all: Vec<Check> =
        [words("backends", "backend"), words("providers", "provider")].into_iter().flatten().collect();
    if let Some(entries) = fields.get("fields") {
        let known = known_paths(&entries);
        all.extend(entries.list(1, MAX_ENTRIES).iter().filter_map(|element| entry(element, &known)));
    }
    (!all.is_empty()).then(|| Box::new(When { all }) as Box<dyn Conditions>)
}

impl Conditions for When {
    fn hold(&self, judged: &JudgedView<'_>) -> Applies {
        let (mut words, mut unknown) = (Vec::new(), None);
        for check in &self.all {
            if !judged.budget.step() {
                return Applies::No;
            }
            match check.hold(judged) {
                Applies::Yes(of_one) => words.extend(of_one),
                Applies::No => return Applies::No,
                Applies::Unknown(why) => unknown = unknown.or(Some(why)),
            }
        }
        unknown.map_or(Applies::Yes(words), Applies::Unknown)
    }

    fn paths(&self) -> Vec<&str> {
        self.all.iter().map(|check| check.path.path).collect()
    }

    fn words(&self) -> Vec<(String, bool)> {
        self.all.iter().map(|check| (check.words(), check.condition.is_about_presence())).collect()
    }

    fn contradictions(&self, budget: &Budget<'_>) -> Vec<(Pointer, String)> {
        // Those of backends and providers stand first, each the first on its path.
        let words = self.all.iter().filter(|check| matches!(check.condition, Condition::Allowed(_))).count();
        let contradiction = |index: usize| {
            let (check, entry) = (self.all.get(index)?, index.checked_sub(words)?);
            let path = check.written_path();
            let message = format!("contradicts another condition on {path}, so the rule never applies");
            Some((Pointer::new("/fields").index(entry).key(check.name), message))
        };
        contradictions(&self.all, true, budget).into_iter().filter_map(contradiction).collect()
    }

    fn can_hold(&self, possible: &Possible, own: &[Possible]) -> bool {
        // The views of the objects themselves are read where they are judged.
        let own = if possible.is_own { slice::from_ref(possible) } else { own };
        self.all.iter().all(|check| {
            let is_own = check.path.own.contains(&possible.user);
            let is_of_memory = check.path.by_sources.contains(&possible.user);
            let reads = |own: &&Possible| !is_of_memory || own.at(check.path.path).is_some();
            let by_own = is_own && own.iter().filter(reads).any(|own| check.can_hold(own));
            let is_read = if is_of_memory { !possible.is_own } else { !is_own };
            by_own || is_read && check.can_hold(possible)
        })
    }

    fn read_other_objects(&self) -> bool {
        self.all.iter().any(|check| !["backend", "provider"].contains(&check.path.path))
    }

    fn read_written(&self) -> bool {
        self.all.iter().any(|check| matches!(check.condition, Condition::Written(_)))
    }
}
