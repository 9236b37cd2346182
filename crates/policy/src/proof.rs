//! Proves a valid policy: what it never judges, what never fires, and what passes because it is absent.
//!
//! Nothing is tried on objects. A table of each kind says what its views can hold ([`Possible`]).

use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

use memgate_model::family::Family;
use memgate_model::finding::Finding;
use memgate_model::label_selector::SelectorOperator;
use memgate_model::memory_view::Role;
use memgate_model::policy::{Policy, Rule};
use memgate_model::possible::Possible;
use memgate_model::request::Operation;
use memgate_model::typed_rule::{Idle, PassesWithout};
use memgate_primitives::budget::Budget;
use memgate_primitives::plain_text::quoted_key;
use memgate_primitives::pointer::Pointer;

use super::codes::{ABSENT_PASSES, NEVER_APPLIES, NEVER_FIRES};
use super::coverage::{Coverage, coverage, coverage_when, met, unseen};
use super::reader::{one_of, warning};

/// All warnings about a valid policy.
pub fn doubts_about(policy: &Policy, families: &[&'static Family]) -> Vec<Finding> {
    let (budget, rules) = (Budget::default(), policy.rules.iter().zip(0_usize..));
    let of_rule =
        |(rule, index)| about(policy, rule, families, &Pointer::new("/spec/rules").index(index), &budget);
    rules.flat_map(of_rule).chain(unjudged_kinds(policy, families)).collect()
}

/// The warnings about one rule, which stands at `place`.
pub(super) fn about(
    policy: &Policy,
    rule: &Rule,
    known: &[&'static Family],
    place: &Pointer,
    budget: &Budget<'_>,
) -> Vec<Finding> {
    let (when, of_type) = (place.key("when"), place.key(rule.about.type_name));
    let contradictions = rule.when.as_ref().map(|it| it.contradictions(budget)).unwrap_or_default();
    let mut findings: Vec<Finding> = contradictions
        .into_iter()
        .map(|(at, message)| warning(&NEVER_APPLIES, when.join(&at), &message))
        .collect();
    if findings.is_empty() && never_holds(policy, rule, known) {
        let message = "holds for nothing that the rule judges, so the rule never applies";
        let is_able = |family: &&&'static Family| coverage(rule, None, family) != Coverage::Nothing;
        let able: Vec<&str> = known.iter().filter(is_able).map(|family| family.name).collect();
        let help = match able.as_slice() {
            [] => "change the conditions, or leave them out".to_owned(),
            able => format!("objects of {} can meet it", able.join(", ")),
        };
        findings.push(warning(&NEVER_APPLIES, when, message).help(help));
    }
    // Of what never applies that is enough.
    if !findings.is_empty() {
        return findings;
    }
    let updates = policy.matching.operations.as_ref().is_none_or(|all| all.contains(&Operation::Update));
    if rule.about.type_name == "immutable" && !updates {
        let message = "the policy does not match updates, so this never fires";
        findings.push(warning(&NEVER_FIRES, of_type.clone(), message).help("add UPDATE to match.operations"));
    }
    let idle = idle(policy, rule, known, budget);
    // What passes always passes without a value too.
    let idle_at: BTreeSet<&Pointer> = idle.iter().map(|it| &it.pointer).collect();
    let is_idle =
        |at: &Pointer| successors(Some(at.clone()), Pointer::parent).any(|it| idle_at.contains(&it));
    let passes = rule.check.passes_without().into_iter();
    let passes: Vec<_> =
        passes.filter(|it| !is_asked_for(policy, rule, it) && !is_idle(&it.pointer)).collect();
    findings.extend(
        idle.into_iter()
            .map(|it| warning(&NEVER_FIRES, of_type.join(&it.pointer), &it.message).help(it.help)),
    );
    findings.extend(passes.into_iter().map(|it| {
        let what = it.map.trim_end_matches('s');
        let message = format!("an object without the {what} {} passes", quoted_key(&it.key));
        warning(&ABSENT_PASSES, of_type.join(&it.pointer), &message).help(it.help)
    }));
    findings
}

/// The parts of a rule that nothing can break: with or without its conditions, or with them alone.
fn idle(policy: &Policy, rule: &Rule, known: &[&'static Family], budget: &Budget<'_>) -> Vec<Idle> {
    let kinds = policy.matching.kinds.as_deref();
    let possible = |when| -> Vec<Possible> {
        let of = |family| met(rule, when, kinds, family).into_iter().chain(unseen(rule, when, kinds, family));
        matched(policy, known).flat_map(of).collect()
    };
    let all = possible(None);
    let Some(when) = rule.when.as_deref() else { return rule.check.idle(&all, None, budget) };
    let always: BTreeMap<Pointer, Idle> =
        rule.check.idle(&all, None, budget).into_iter().map(|it| (it.pointer.clone(), it)).collect();
    let with_when = rule.check.idle(&possible(Some(when)), Some(when), budget);
    let by_when = |it: Idle| {
        let message = "passes whatever the conditions in `when` let through, so this never fires".to_owned();
        let help = "ask for more than `when` does, or take it out".to_owned();
        always.get(&it.pointer).cloned().unwrap_or(Idle { message, help, ..it })
    };
    with_when.into_iter().map(by_when).collect()
}

/// Whether a rule judges nothing with its conditions, and something without them.
pub(super) fn never_holds(policy: &Policy, rule: &Rule, known: &[&'static Family]) -> bool {
    let Some(when) = rule.when.as_deref() else { return false };
    let kinds = policy.matching.kinds.as_deref();
    let judges = |when| {
        let is_judged = |family| coverage_when(rule, when, kinds, family) != Coverage::Nothing;
        matched(policy, known).any(is_judged)
    };
    !judges(Some(when)) && judges(None)
}

/// Whether the rule is only asked about objects that have this label or annotation.
fn is_asked_for(policy: &Policy, rule: &Rule, passes: &PassesWithout) -> bool {
    let in_when = rule.when.as_ref().is_some_and(|when| when.ask_for(passes.map, &passes.key));
    let selector = policy.matching.object_selector.as_ref().filter(|_| passes.map == "labels");
    let needs = |operator| matches!(operator, SelectorOperator::In | SelectorOperator::Exists);
    let mut requirements = selector.into_iter().flat_map(|selector| &selector.requirements);
    in_when || requirements.any(|it| it.key == passes.key && needs(it.operator))
}

/// The warnings about kinds that the policy names and none of its rules judges.
pub(super) fn unjudged_kinds(policy: &Policy, known: &[&'static Family]) -> Vec<Finding> {
    let families: Vec<&'static Family> = matched(policy, known).collect();
    let kinds = policy.matching.kinds.as_deref().unwrap_or_default();
    let is_judged = |kind: &String| {
        let kind = std::slice::from_ref(kind);
        let judges = |rule: &Rule| {
            families.iter().any(|family| coverage(rule, Some(kind), family) != Coverage::Nothing)
        };
        policy.rules.iter().any(judges) || policy.defaults.iter().any(|it| kind.contains(&it.kind))
    };
    let judged: Vec<bool> = kinds.iter().map(is_judged).collect();
    // Where no kind is judged, each rule says so.
    if policy.rules.is_empty() || !judged.contains(&true) {
        return Vec::new();
    }
    let unjudged = kinds.iter().zip(0_usize..).zip(judged).filter(|(_, is_judged)| !is_judged);
    unjudged
        .map(|((kind, index), _)| {
            let roles = roles_of(kind, &families);
            let has_role = |rule: &Rule| rule.roles.iter().any(|role| roles.contains(&role.name()));
            let (why, help) = if policy.rules.iter().any(has_role) {
                ("it has nothing that they read".to_owned(), format!("leave {kind} out"))
            } else {
                let roles = one_of(&roles);
                let help = format!("write roles: [{roles}] in a rule, or leave {kind} out");
                (format!("none has the role {roles}"), help)
            };
            let message = format!("no rule of the policy judges {kind}: {why}");
            warning(&NEVER_APPLIES, Pointer::new("/spec/match/kinds").index(index), &message).help(help)
        })
        .collect()
}

/// The roles of objects of a kind on these platforms.
fn roles_of(kind: &str, families: &[&'static Family]) -> Vec<&'static str> {
    let of_kind = families.iter().flat_map(|family| family.views.kinds);
    let mut roles: Vec<&str> =
        of_kind.filter(|(known, _)| known.kind == kind).map(|(_, role)| role.name()).collect();
    roles.extend((kind == "Pod").then_some(Role::Pod.name()));
    roles.sort_unstable();
    roles.dedup();
    roles
}

/// Whether objects of a kind that a policy names have one of these roles.
pub(super) fn matches_a_role(policy: &Policy, roles: &[Role], families: &[&'static Family]) -> bool {
    let kinds = policy.matching.kinds.iter().flatten();
    kinds.flat_map(|kind| roles_of(kind, families)).any(|found| roles.iter().any(|role| role.name() == found))
}

/// The families that a policy matches, of these.
pub(super) fn matched<'f>(
    policy: &'f Policy,
    known: &'f [&'static Family],
) -> impl Iterator<Item = &'static Family> + use<'f> {
    let names = policy.matching.families.as_ref();
    let is_named = move |family: &&Family| names.is_none_or(|names| names.iter().any(|it| it == family.name));
    known.iter().copied().filter(move |family| is_named(family))
}
