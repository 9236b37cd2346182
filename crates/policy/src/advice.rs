//! Warnings about a valid policy that probably does not do what its author means.

use std::sync::Arc;

use jiff::Timestamp;

use crate::codes::{CONTRADICTION, DEFAULT_OVERLAP, HINT_MISSING, PROMOTED};
use memgate_model::family::Family;
use memgate_model::finding::{Finding, Severity};
use memgate_model::policy::{Policies, Policy};
use memgate_primitives::budget::Budget;
use memgate_primitives::plain_text::quoted;
use memgate_primitives::pointer::Pointer;

use super::never_applies::never_applies;
use super::reader::warning;
use super::values::day;

/// The warnings about a valid policy.
pub(super) fn about(
    policy: &Policy,
    families: &[&'static Family],
    others: &Policies,
    now: Timestamp,
) -> Vec<Finding> {
    let mut findings = never_applies(policy, families);
    if let Some(promotion) = policy.promote.filter(|promotion| promotion.at <= now) {
        let message =
            format!("{} has passed; set actions.admission to {}", day(promotion.at), promotion.to.name());
        findings.push(warning(&PROMOTED, Pointer::new("/spec/promote/at"), &message));
    }
    let budget = Budget::default();
    for (rule, index) in policy.rules.iter().zip(0_usize..) {
        let place = Pointer::new("/spec/rules").index(index);
        let of_type = place.key(rule.about.type_name);
        let own = rule.check.contradictions(&budget).into_iter();
        findings.extend(own.map(|(at, message)| warning(&CONTRADICTION, of_type.join(&at), &message)));
        if rule.about.hint.is_none() {
            let message = format!("rule {} does not say what to do", quoted(&rule.about.id));
            let finding = warning(&HINT_MISSING, place, &message).help("add a hint");
            findings.push(Finding { severity: Severity::Note, ..finding });
        }
    }
    findings.extend(overlaps(policy, others));
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
