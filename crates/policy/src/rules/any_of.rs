//! `anyOf`: one of several rules must hold.

use memgate_model::finding::Cause;
use memgate_model::memory_view::Role;
use memgate_model::typed_rule::{JudgedView, RuleOutcome, RuleRoles, RuleViolation, TypedRule, Unknown};
use memgate_primitives::budget::Budget;
use memgate_primitives::plain_text::cut;
use memgate_primitives::pointer::Pointer;

use super::{RuleType, typed};
use crate::judge::is_in_container;
use crate::reader::Reader;

/// How many rules there are, at least and at most.
const MIN_RULES: usize = 2;
const MAX_RULES: usize = 8;

/// The most characters of the messages together.
const MAX_MESSAGES: usize = 200;

#[derive(Debug)]
struct AnyOf {
    alternatives: Vec<Alternative>,
    roles: RuleRoles,
}

/// One of the rules.
#[derive(Debug)]
struct Alternative {
    kind: &'static RuleType,
    check: Box<dyn TypedRule>,
    roles: RuleRoles,
}

pub(super) fn read(reader: &Reader<'_>) -> Option<Box<dyn TypedRule>> {
    let elements = reader.list(0, MAX_RULES);
    if elements.len() < MIN_RULES && reader.value().is_array() {
        reader.fault(Cause::Required, &format!("must have {MIN_RULES} to {MAX_RULES} rules"));
    }
    let alternatives = elements.iter().map(|element| {
        let (kind, check) = typed(&element.any_fields()?, &[])?;
        let check = check?;
        Some(Alternative { roles: kind.roles(&*check), kind, check })
    });
    let alternatives = alternatives.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())?;
    let shared: Vec<Role> = Role::ALL
        .into_iter()
        .filter(|role| alternatives.iter().all(|it| it.roles.possible().any(|own| own == *role)))
        .collect();
    if shared.is_empty() {
        let names: Vec<&str> = alternatives.iter().map(|it| it.kind.name).collect();
        reader.fault(Cause::Invalid, &format!("no object is judged by all of {}", names.join(", ")));
        return None;
    }
    let union = |list: fn(&RuleRoles) -> &Vec<Role>| {
        let all = shared.iter().copied();
        all.filter(|role| alternatives.iter().any(|it| list(&it.roles).contains(role))).collect::<Vec<_>>()
    };
    let mut default = shared.clone();
    default.retain(|role| alternatives.iter().all(|it| it.roles.default.contains(role)));
    let default = if default.is_empty() { shared.clone() } else { default };
    let roles = RuleRoles { default, own: union(|it| &it.own), by_sources: union(|it| &it.by_sources) };
    Some(Box::new(AnyOf { alternatives, roles }))
}

impl TypedRule for AnyOf {
    fn judge(&self, judged: &JudgedView<'_>, outcome: &mut RuleOutcome) {
        let role = judged.role();
        let is_by_sources = |it: &Alternative| it.roles.by_sources.contains(&role);
        // Each memory is judged together with the object itself.
        if judged.user.is_none()
            && !judged.view.sources.is_empty()
            && self.alternatives.iter().any(is_by_sources)
        {
            return;
        }
        let mut judgements = Vec::new();
        // Of memory that is taken away only what compares it says something.
        let is_gone = judged.user.unwrap_or(judged).view.is_gone;
        let is_asked = |it: &&Alternative| !is_gone || it.check.compares();
        for alternative in self.alternatives.iter().filter(is_asked) {
            if !judged.budget.step() {
                return;
            }
            let (applies, of_one) = alternative.judge(judged);
            if !judged.budget.bytes(of_one.violations.len().saturating_mul(64)) {
                return;
            }
            match of_one.violations.is_empty() && of_one.unknowns.is_empty() {
                true if applies => return,
                true => {}
                false => judgements.push((alternative.kind.name == "endpoint", of_one)),
            }
        }
        // One address may pass by one rule, and another one by another.
        let places: Vec<Pointer> =
            judged.view.endpoints().map(|(path, _)| judged.view.pointer(path)).collect();
        let of_places = places.iter().filter(|_| places.len() > 1).map(Some);
        let of_places = of_places.map(|place| failures(judgements.clone(), place));
        let mut all: Vec<_> = of_places.collect();
        if all.is_empty() {
            all.push(failures(judgements, None));
        }
        let Some((failed, unknowns)) =
            all.into_iter().flatten().min_by_key(|(_, unknowns)| !unknowns.is_empty())
        else {
            return;
        };
        outcome.is_of_pod = failed.iter().flatten().any(|it| is_in_container(&it.pointer));
        if !unknowns.is_empty() {
            return outcome.unknowns.extend(unknowns);
        }
        let firsts = failed.iter().filter_map(|violations| violations.first());
        let messages: Vec<String> = firsts.map(RuleViolation::told).collect();
        let message =
            cut(&format!("none of these holds: {}", messages.join("; ")), MAX_MESSAGES).into_owned().into();
        // Which alternative a value belongs to counts: two may compare the same field.
        let of_one = |(of_one, index): (Vec<RuleViolation>, usize)| {
            let own = move |it: RuleViolation| RuleViolation { value: format!("{index} {}", it.value), ..it };
            of_one.into_iter().map(own)
        };
        let mut all = failed.into_iter().zip(0_usize..).flat_map(of_one);
        let Some(first) = all.next() else { return };
        let remark = String::new();
        outcome.violations.push(RuleViolation { message, remark, others: all.collect(), ..first });
    }

    fn paths(&self) -> Vec<&str> {
        self.alternatives.iter().flat_map(|it| it.check.paths()).collect()
    }

    fn roles(&self) -> Option<RuleRoles> {
        Some(self.roles.clone())
    }

    fn contradictions(&self, budget: &Budget<'_>) -> Vec<(Pointer, String)> {
        self.parts(|alternative| alternative.check.contradictions(budget)).collect()
    }

    fn compares(&self) -> bool {
        self.alternatives.iter().any(|it| it.check.compares())
    }

    fn reads_written(&self) -> bool {
        self.alternatives.iter().any(|it| it.check.reads_written())
    }

    fn reads_namespaces(&self) -> bool {
        self.alternatives.iter().any(|it| it.check.reads_namespaces())
    }

    fn reads_other_objects(&self) -> bool {
        self.alternatives.iter().any(|it| !it.roles.by_sources.is_empty() || it.check.reads_other_objects())
    }
}

/// The violations of each rule that fails, and what is unknown; `None` if one passes. Of rules about addresses only what
/// they found at this place counts.
fn failures(
    judgements: Vec<(bool, RuleOutcome)>,
    place: Option<&Pointer>,
) -> Option<(Vec<Vec<RuleViolation>>, Vec<Unknown>)> {
    let (mut failed, mut unknowns) = (Vec::new(), Vec::new());
    for (is_of_address, mut of_one) in judgements {
        if let Some(place) = place.filter(|_| is_of_address) {
            of_one.violations.retain(|it| it.pointer == *place);
            of_one.unknowns.retain(|it| it.pointer == *place);
        }
        match (of_one.violations.is_empty(), of_one.unknowns.is_empty()) {
            (false, _) => failed.push(of_one.violations),
            (true, false) => unknowns.extend(of_one.unknowns),
            (true, true) => return None,
        }
    }
    Some((failed, unknowns))
}

impl AnyOf {
    /// What is found in each alternative, with its place here.
    fn parts<T>(
        &self,
        find: impl Fn(&Alternative) -> Vec<(Pointer, T)>,
    ) -> impl Iterator<Item = (Pointer, T)> {
        self.alternatives.iter().zip(0..).flat_map(move |(alternative, index)| {
            let place = Pointer::root().index(index).key(alternative.kind.name);
            find(alternative).into_iter().map(move |(pointer, found)| (place.join(&pointer), found))
        })
    }
}

impl Alternative {
    /// What it finds, and whether it applies: to the object itself, or to the memory that it uses.
    fn judge(&self, judged: &JudgedView<'_>) -> (bool, RuleOutcome) {
        let role = judged.role();
        let own = self.roles.own.contains(&role).then_some(judged.user.unwrap_or(judged));
        let source = judged.user.and(Some(judged)).filter(|_| self.roles.by_sources.contains(&role));
        let mut outcome = RuleOutcome::default();
        let mut applies = false;
        for view in own.into_iter().chain(source) {
            applies |= self.check.applies(view);
            self.check.judge(view, &mut outcome);
        }
        (applies, outcome)
    }
}
