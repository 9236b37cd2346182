//! Warnings about a valid policy that probably does not do what its author means.

use std::sync::Arc;

use jiff::Timestamp;

use crate::codes::{CONTRADICTION, DEFAULT_OVERLAP, HINT_MISSING, NEVER_APPLIES, PARTIAL, PROMOTED};
use memgate_model::family::Family;
use memgate_model::finding::{Finding, Severity};
use memgate_model::policy::{Policies, Policy, Rule};
use memgate_primitives::budget::Budget;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::coverage::{Coverage, coverage};
use super::proof;
use super::reader::warning;
use super::values::day;

/// The warnings about a valid policy.
pub(super) fn about(
    policy: &Policy,
    families: &[&'static Family],
    enabled: &[&'static Family],
    others: &Policies,
    now: Timestamp,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = switched_off(policy, enabled).into_iter().collect();
    if let Some(promotion) = policy.promote.filter(|promotion| promotion.at <= now) {
        let message =
            format!("{} has passed; set actions.admission to {}", day(promotion.at), promotion.to.name());
        findings.push(warning(&PROMOTED, Pointer::new("/spec/promote/at"), &message));
    }
    let budget = Budget::default();
    for (rule, index) in policy.rules.iter().zip(0_usize..) {
        let place = Pointer::new("/spec/rules").index(index);
        if !proof::never_holds(policy, rule, families) {
            findings.extend(never_applies(policy, rule, families, &place));
        }
        let of_type = place.key(rule.about.type_name);
        let own = rule.check.contradictions(&budget).into_iter();
        findings.extend(own.map(|(at, message)| warning(&CONTRADICTION, of_type.join(&at), &message)));
        if let Some(until) = rule.during.until.filter(|until| *until <= now) {
            let message = format!("{} has passed, so the rule no longer applies", day(until));
            findings.push(warning(&NEVER_APPLIES, place.key("during").key("until"), &message));
        }
        if !rule.during.occurs() {
            let message = "none of these days is between from and until, so the rule never applies";
            findings.push(warning(&NEVER_APPLIES, place.key("during").key("weekdays"), message));
        }
        findings.extend(proof::about(policy, rule, families, &place, &budget));
        if rule.about.hint.is_none() {
            let message = format!("rule {} does not say what to do", quoted(&rule.about.id));
            let finding = warning(&HINT_MISSING, place, &message).help("add a hint");
            findings.push(Finding { severity: Severity::Note, ..finding });
        }
    }
    findings.extend(proof::unjudged_kinds(policy, families));
    findings.extend(overlaps(policy, others));
    findings
}

/// What to say about the families that the policy names and that are switched off: a warning if it names no other.
pub(super) fn switched_off(policy: &Policy, enabled: &[&'static Family]) -> Option<Finding> {
    let named = policy.matching.families.as_ref()?;
    let is_on = |name: &&String| enabled.iter().any(|family| family.name == **name);
    let (on, off): (Vec<&String>, Vec<&String>) = named.iter().partition(is_on);
    let all_off = off.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let pointer = Pointer::new("/spec/match/families");
    let message = format!("switched off here, so the policy judges nothing of it: {all_off}");
    let finding = warning(&NEVER_APPLIES, pointer, &message).help("switch the platform on, or leave it out");
    let severity = if on.is_empty() { Severity::Warn } else { Severity::Note };
    (!off.is_empty()).then_some(Finding { severity, ..finding })
}

/// The warning that no object that the policy matches has a field that the rule judges, or the note that this is so on
/// some of its platforms.
fn never_applies(
    policy: &Policy,
    rule: &Rule,
    known: &[&'static Family],
    place: &Pointer,
) -> Option<Finding> {
    // Of a rule that forbids nothing that is said.
    if rule.check.paths().is_empty() {
        return None;
    }
    let (name, kinds) = (rule.about.type_name, policy.matching.kinds.as_ref());
    let families: Vec<&'static Family> = proof::matched(policy, known).collect();
    let is_able = |family: &&&'static Family| coverage(rule, None, family) != Coverage::Nothing;
    if !families.iter().any(|family| is_able(&family)) {
        let able: Vec<&str> = known.iter().filter(is_able).map(|family| family.name).collect();
        let has = if able.len() > 1 { "have" } else { "has" };
        let able = if able.is_empty() { "none".to_owned() } else { able.join(" and ") };
        let message =
            format!("the policy matches no platform that has anything to judge by {name}; {able} {has}");
        return Some(warning(&NEVER_APPLIES, place.key(name), &message));
    }
    let is_left_out =
        |family: &&&'static Family| coverage(rule, kinds.map(Vec::as_slice), family) == Coverage::Nothing;
    let left_out: Vec<&str> = families.iter().filter(is_left_out).map(|family| family.name).collect();
    if left_out.len() < families.len() {
        let is_partial = policy.matching.families.is_some() && !left_out.is_empty();
        let message = format!("this rule never applies to {}", left_out.join(", "));
        return is_partial.then(|| {
            let finding = warning(&PARTIAL, place.key(name), &message);
            Finding { severity: Severity::Note, ..finding }
        });
    }
    let wanted: Vec<&str> = rule.roles.iter().map(|role| role.name()).collect();
    let message = if proof::matches_a_role(policy, &rule.roles, &families) {
        format!("no kind that the policy matches has anything to judge by {name}")
    } else {
        format!("the policy matches no {}, which this rule judges", wanted.join(" or "))
    };
    Some(warning(&NEVER_APPLIES, place.key(name), &message))
}

/// Warnings about defaults that another policy overrides.
pub(super) fn overlaps(policy: &Policy, others: &Policies) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (default, index) in policy.defaults.iter().zip(0_usize..) {
        let same = |other: &&Arc<Policy>| {
            other.name < policy.name
                && other.defaults.iter().any(|theirs| {
                    (&theirs.family, &theirs.kind, &theirs.field)
                        == (&default.family, &default.kind, &default.field)
                })
        };
        if let Some(first) = others.iter().find(same) {
            let place = Pointer::new("/spec/defaults").index(index).key("field");
            let message =
                format!("policy {} fills this field too, and wins where both match", quoted(&first.name));
            findings.push(warning(&DEFAULT_OVERLAP, place, &message));
        }
    }
    findings
}
