//! Judges policies and exemptions themselves: one with faults is refused.

use std::collections::BTreeSet;

use serde_json::Value;

use memgate_model::change::only_lets_go;
use memgate_model::decision::Decision;
use memgate_model::family::Family;
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::{Kind, MEMORY_POLICY, POLICY_KINDS};
use memgate_model::plain_value;
use memgate_model::policy::Policy;
use memgate_model::reason::Reason;
use memgate_model::request::{Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_primitives::budget::{Budget, OverLimit};
use memgate_primitives::pointer::Pointer;

use super::advice;
use super::read;
use super::reader::sort;

/// The kind of a policy or an exemption; `None` for any other.
pub fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    POLICY_KINDS.into_iter().find(|known| known.is(group, kind))
}

/// Decides about a policy or an exemption, which may name these platforms. If it exceeds a limit, `budget` has ended;
/// also returns the limit that the stored one exceeds.
pub fn decide(
    kind: &Kind,
    request: &Request<'_>,
    snapshot: &Snapshot,
    families: &[&'static Family],
    budget: &Budget<'_>,
) -> (Decision, Option<OverLimit>) {
    let writes = matches!(request.operation, Operation::Create | Operation::Update);
    if !writes || !request.subresource.is_empty() {
        return (Decision::pass(Reason::NotJudged), None);
    }
    if only_lets_go(&[], request) {
        return (Decision::pass(Reason::Deleting), None);
    }
    let old = request.old_object.filter(|_| request.operation == Operation::Update);
    // Before the new one is read, so that one of them is in memory at a time.
    let (stored, over) = old.map_or_else(Default::default, |old| {
        budget.apart(old.len(), || stored_faults(kind, old, families, budget))
    });
    let object = match request.object.map(|object| plain_value::read(object, budget)) {
        Some(Ok(object)) => object,
        Some(Err(_)) => return (Decision::pass(Reason::Unreadable), over),
        None => return (Decision::pass(Reason::Malformed), over),
    };
    let (policy, mut findings) = faults(kind, &object, families, budget);
    ratchet(&mut findings, &stored);
    let denied = findings.iter().any(|finding| finding.severity == Severity::Deny);
    if let Some(policy) = policy.filter(|_| !denied) {
        let now = request.occasion.now;
        findings.extend(advice::about(&policy, families, &snapshot.policies, now));
    }
    sort(&mut findings, &object);
    let reason = if denied { Reason::Invalid } else { Reason::Valid };
    (Decision { findings, ..Decision::pass(reason) }, over)
}

/// What is wrong with a policy, which is returned too, or an exemption.
fn faults(
    kind: &Kind,
    object: &Value,
    families: &[&'static Family],
    budget: &Budget<'_>,
) -> (Option<Policy>, Vec<Finding>) {
    if *kind == MEMORY_POLICY {
        let (policy, faults) = read::policy_within(object, families, budget);
        (Some(policy), faults)
    } else {
        (None, read::exemption_within(object, families, budget).1)
    }
}

/// What is wrong with the stored object: pointers and messages.
fn stored_faults(
    kind: &Kind,
    text: &str,
    families: &[&'static Family],
    budget: &Budget<'_>,
) -> BTreeSet<(Pointer, String)> {
    let object = plain_value::read(text, budget).unwrap_or_default();
    faults(kind, &object, families, budget).1.iter().map(place_and_message).collect()
}

fn place_and_message(finding: &Finding) -> (Pointer, String) {
    (finding.pointer.clone(), finding.message().into_owned())
}

/// Turns denials into warnings for faults that the stored object has too.
fn ratchet(findings: &mut [Finding], stored: &BTreeSet<(Pointer, String)>) {
    for finding in findings.iter_mut().filter(|finding| stored.contains(&place_and_message(finding))) {
        finding.severity = Severity::Warn;
    }
}
