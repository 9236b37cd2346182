//! Which exemption counts for a finding.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use memgate_model::policy::{Exemption, ExemptionTerms, Policies, Policy, Rule};
use memgate_primitives::budget::Budget;

use super::matching::{Candidate, covers};
use super::values::day;

/// To look at an exemption takes about as long as comparing so many bytes.
const BYTES_PER_EXEMPTION: usize = 16;

/// The exemption that counts for the findings of a rule about an object: of several the one that lasts longest, then
/// the first by namespace and name.
pub(super) fn find<'p>(
    policies: &'p Policies,
    (policy, rule): (&Policy, &Rule),
    (candidate, labels): (&Candidate<'_>, &BTreeMap<String, String>),
    now: Timestamp,
    budget: &Budget<'_>,
) -> Option<&'p Exemption> {
    let terms = policy.exemptions.as_ref().filter(|_| rule.exemptable)?;
    let counts = |exemption: &&'p Exemption| {
        let compared = exemption.rules.len() + exemption.target.namespaces.len();
        budget.bytes(BYTES_PER_EXEMPTION + compared)
            && exemption.rules.contains(&rule.about.id)
            && rejection(exemption, terms).is_none()
            && is_current(exemption, now)
            && covers(&exemption.target, candidate, labels, budget)
    };
    let exemptions = policies.exemptions_of(&policy.name).iter().map(AsRef::as_ref);
    exemptions.filter(counts).min_by(|one, other| order(one, other))
}

/// Sorts the exemption in front that counts: the one that lasts longest, then the first by namespace and name.
pub(super) fn order(one: &Exemption, other: &Exemption) -> Ordering {
    let by_name = (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name));
    other.expires_at.cmp(&one.expires_at).then(by_name)
}

/// Whether an exemption counts at this time.
pub(super) fn is_current(exemption: &Exemption, now: Timestamp) -> bool {
    exemption.from <= now && now < exemption.expires_at
}

/// The next end of an exemption in force, by the name of its policy.
pub fn next_expiries(policies: &Policies, now: Timestamp) -> BTreeMap<&str, Timestamp> {
    let next = |policy: &Policy| {
        let terms = policy.exemptions.as_ref().filter(|_| policy.invalid.is_none())?;
        let counts = |it: &&Arc<Exemption>| is_current(it, now) && rejection(it, terms).is_none();
        policies.exemptions_of(&policy.name).iter().filter(counts).map(|it| it.expires_at).min()
    };
    policies.iter().filter_map(|policy| Some((policy.name.as_str(), next(policy)?))).collect()
}

/// Why a policy does not accept an exemption.
pub(super) fn rejection(exemption: &Exemption, terms: &ExemptionTerms) -> Option<Rejection> {
    if !terms.namespaces.contains(&exemption.namespace) {
        return Some(Rejection::Namespace);
    }
    let age = exemption.expires_at.as_nanosecond() - exemption.from.as_nanosecond();
    (age > terms.max_age).then_some(Rejection::Age)
}

/// Why a policy does not accept an exemption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejection {
    /// Its namespace may not grant exemptions.
    Namespace,
    /// It lasts too long.
    Age,
}

/// The end of a message about an exempt finding: ` (exempt until 2027-03-01 by ns/name)`.
pub(super) fn suffix(exemption: &Exemption) -> String {
    let Exemption { namespace, name, expires_at, .. } = exemption;
    format!(" (exempt until {} by {namespace}/{name})", day(*expires_at))
}

/// The help of an exempt finding.
pub(super) fn help(exemption: &Exemption) -> String {
    let ticket = exemption.ticket.iter().map(|ticket| format!(", ticket {ticket}"));
    let approved = exemption.approved_by.iter().map(|name| format!(", approved by {name}"));
    let notes: String = ticket.chain(approved).collect();
    format!("exempt because {}{notes}", exemption.reason)
}
