//! Warnings about a valid policy that probably does not do what its author means.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::codes::{CONTRADICTION, DEFAULT_OVERLAP, HINT_MISSING, NEVER_APPLIES, PROMOTED};
use memgate_model::family::Family;
use memgate_model::finding::{Code, Finding};
use memgate_model::memory_view::Role;
use memgate_model::policy::{Policies, Policy, Rule};
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::reader::with_field;
use super::rules;
use super::values::{day, duration};

/// The warnings about the manifest of a valid policy.
pub(super) fn about(
    manifest: &Value,
    policy: &Policy,
    families: &[&'static Family],
    others: &Policies,
    now: Timestamp,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(promotion) = policy.promote.filter(|promotion| promotion.at <= now) {
        let message =
            format!("{} has passed; set actions.admission to {}", day(promotion.at), promotion.to.name());
        findings.push(warning(&PROMOTED, Pointer::new("/spec/promote/at"), &message));
    }
    for (rule, index) in policy.rules.iter().zip(0_usize..) {
        let place = Pointer::new("/spec/rules").index(index);
        let written = manifest.pointer(place.key(rule.about.type_name).as_str()).unwrap_or(&Value::Null);
        findings.extend(never_applies(policy, rule, families, &place));
        findings.extend(contradictions(written, &place.key(rule.about.type_name)));
        if rule.about.hint.is_none() {
            let message = format!("rule {} does not say what to do", quoted(&rule.about.id));
            findings.push(warning(&HINT_MISSING, place, &message).help("add a hint"));
        }
    }
    findings.extend(overlaps(policy, others));
    findings
}

fn warning(code: &'static Code, pointer: Pointer, message: &str) -> Finding {
    let message = with_field(&pointer, message);
    Finding::warn(code, pointer, message)
}

/// The warning that no object that the policy matches has a field that the rule judges.
fn never_applies(
    policy: &Policy,
    rule: &Rule,
    known: &[&'static Family],
    place: &Pointer,
) -> Option<Finding> {
    let (name, kinds) = (rule.about.type_name, policy.matching.kinds.as_ref());
    let of_policy = |family: &&Family| {
        let names = policy.matching.families.as_ref();
        names.is_none_or(|names| names.iter().any(|name| name == family.name))
    };
    let families: Vec<&Family> = known.iter().copied().filter(of_policy).collect();
    let judges = rules::find(name).map(|rule| rule.judges).unwrap_or_default();
    let is_able = |family: &&Family| judges.is_empty() || judges.iter().any(|path| family.has_in_views(path));
    if !families.iter().any(is_able) {
        let able: Vec<&str> = known.iter().copied().filter(is_able).map(|family| family.name).collect();
        let able = able.join(" and ");
        let message =
            format!("the policy matches no family that has anything to judge by {name}; {able} has");
        return Some(warning(&NEVER_APPLIES, place.key(name), &message));
    }
    let is_matched = |kind: &str| kinds.is_none_or(|kinds| kinds.iter().any(|matched| matched == kind));
    let of_families = families.iter().flat_map(|family| family.views.kinds);
    let mut roles: BTreeSet<Role> =
        of_families.filter(|(kind, _)| is_matched(kind.kind)).map(|(_, role)| *role).collect();
    if is_matched("Pod") {
        roles.insert(Role::Pod);
    }
    if rule.roles.iter().any(|role| roles.contains(role)) {
        return None;
    }
    let wanted: Vec<&str> = rule.roles.iter().map(|role| role.name()).collect();
    let message = format!("the policy matches no {}, which this rule judges", wanted.join(" or "));
    Some(warning(&NEVER_APPLIES, place.key(name), &message))
}

/// Warnings about a rule that allows and forbids the same value.
fn contradictions(rule: &Value, place: &Pointer) -> Vec<Finding> {
    let mut findings = Vec::new();
    let words = |field| {
        let list = rule.get(field).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    };
    let denied: BTreeSet<String> = words("deny").map(str::to_lowercase).collect();
    for (word, index) in
        words("allow").zip(0_usize..).filter(|(word, _)| denied.contains(&word.to_lowercase()))
    {
        let message = format!("{} is denied too, which wins", quoted(word));
        findings.push(warning(&CONTRADICTION, place.key("allow").index(index), &message));
    }
    let seconds = |field| rule.get(field).and_then(Value::as_str).and_then(duration);
    if seconds("min").zip(seconds("max")).is_some_and(|(min, max)| min > max) {
        findings.push(warning(&CONTRADICTION, place.key("min"), "is above max, so nothing passes"));
    }
    if let Some(entries) = rule.get("maxEntries") {
        let number = |field| entries.get(field).and_then(Value::as_i64);
        if number("min").zip(number("max")).is_some_and(|(min, max)| min > max) {
            let pointer = place.key("maxEntries").key("min");
            findings.push(warning(&CONTRADICTION, pointer, "is above max, so nothing passes"));
        }
    }
    findings
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
