//! Conditions on one path of which no value meets all. The cost grows with the conditions and their values, each once.

use std::collections::{BTreeMap, BTreeSet};

use memgate_primitives::budget::Budget;

use super::check::{AnyGlob, Check, Condition, Scalar};

/// The conditions with which nothing is left of the values at their path, by their index; of each path the first one. As
/// conditions of a rule (`is_when`) an absent value meets none but `exists: false`, and of a list each may be met by another
/// element. When the budget has ended, there are no more.
pub(super) fn contradictions(all: &[Check], is_when: bool, budget: &Budget<'_>) -> Vec<usize> {
    let mut by_path: BTreeMap<&str, Vec<(usize, &Condition)>> = BTreeMap::new();
    for (check, index) in all.iter().zip(0..) {
        by_path.entry(check.written_path()).or_default().push((index, &check.condition));
    }
    let mut found = Vec::new();
    for conditions in by_path.into_values().filter(|conditions| conditions.len() > 1) {
        let path = conditions.first().and_then(|(index, _)| Some(all.get(*index)?.path));
        let is_several = is_when && path.is_some_and(|path| path.holds_several());
        let of_values = if is_several { None } else { without_value(&conditions, budget) };
        let is_each = is_when && path.is_some_and(|path| path.is_each());
        found.extend(of_values.into_iter().chain(without_presence(&conditions, is_when, is_each)).min());
    }
    if budget.has_ended() {
        return Vec::new();
    }
    found.sort_unstable();
    found
}

/// The first condition that contradicts those before it on whether there is a value.
fn without_presence(conditions: &[(usize, &Condition)], is_when: bool, is_each: bool) -> Option<usize> {
    let (mut exists, mut written, mut is_compared) = (None, None, false);
    for (index, condition) in conditions {
        let contradicts = match condition {
            Condition::Exists(wanted) => exists.replace(*wanted).is_some_and(|before| before != *wanted),
            Condition::Written(wanted) => {
                written.replace(*wanted).is_some_and(|before| before != *wanted && !is_each)
            }
            _ => {
                is_compared = true;
                false
            }
        };
        let is_absent = exists == Some(false);
        if contradicts || is_absent && (written == Some(true) || is_when && is_compared) {
            return Some(*index);
        }
    }
    None
}

/// The first condition that no value meets which meets those before it.
fn without_value(conditions: &[(usize, &Condition)], budget: &Budget<'_>) -> Option<usize> {
    let compared = || conditions.iter().filter(|(_, condition)| !condition.is_about_presence());
    let (mut least, mut most, mut left) = (i128::MIN, i128::MAX, None::<Vec<&Scalar<'static>>>);
    for ((index, condition), position) in compared().zip(0..) {
        let passes =
            |condition: &Condition, value: &Scalar<'static>| !budget.step() || condition.holds(value, budget);
        match (condition, &mut left) {
            (_, Some(left)) => left.retain(|value| passes(condition, value)),
            (Condition::In { values, wanted: true, .. }, left) => {
                let meets_all = |value: &&Scalar<'static>| {
                    compared().take(position).all(|(_, before)| passes(before, value))
                };
                *left = Some(values.iter().filter(meets_all).collect());
            }
            (Condition::AtLeast(bound), None) => least = least.max(bound.value),
            (Condition::AtMost(bound), None) => most = most.min(bound.value),
            _ => {}
        }
        if least > most || left.as_ref().is_some_and(Vec::is_empty) {
            return Some(*index);
        }
    }
    without_text(conditions, budget)
}

/// The first condition by which all patterns of one that is wanted are among those that are not.
fn without_text(conditions: &[(usize, &Condition)], budget: &Budget<'_>) -> Option<usize> {
    let (mut denied, mut is_all_denied, mut last_denied) = (BTreeSet::new(), false, 0);
    for (index, condition) in conditions {
        if let Condition::Fits { globs, written, wanted: false } = condition {
            last_denied = *index;
            is_all_denied |= globs.iter().any(AnyGlob::is_anything);
            denied.extend(written);
        }
    }
    let is_denied = |pattern: &String| budget.step() && denied.contains(pattern);
    conditions.iter().find_map(|(index, condition)| match condition {
        Condition::Fits { written, wanted: true, .. }
            if !denied.is_empty() && (is_all_denied || written.iter().all(is_denied)) =>
        {
            Some(*index.max(&last_denied))
        }
        _ => None,
    })
}
