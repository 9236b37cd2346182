//! Judges policies and exemptions themselves: one with faults is refused.

use std::collections::BTreeSet;

use serde_json::Value;

use memgate_model::change::only_lets_go;
use memgate_model::decision::Decision;
use memgate_model::family::Family;
use memgate_model::finding::{Finding, Phase, Severity};
use memgate_model::kind::{Kind, MEMORY_POLICY, POLICY_GROUP, POLICY_KINDS};
use memgate_model::reason::Reason;
use memgate_model::request::{Operation, Request};
use memgate_model::snapshot::Snapshot;

use super::advice;
use super::read;
use super::reader::sort;

/// The kind of a policy or an exemption; `None` for any other.
#[must_use]
pub fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    if group != POLICY_GROUP {
        return None;
    }
    POLICY_KINDS.into_iter().find(|known| known.kind == kind)
}

/// Decides about a policy or an exemption, which may name these platforms.
#[must_use]
pub fn decide(
    kind: &Kind,
    request: &Request<'_>,
    snapshot: &Snapshot,
    families: &[&'static Family],
) -> Decision {
    let writes = matches!(request.operation, Operation::Create | Operation::Update);
    if !writes || !request.subresource.is_empty() {
        return Decision::pass(Reason::NotJudged);
    }
    let Some(Ok(object)) = request.object.map(serde_json::from_str::<Value>) else {
        return Decision::pass(Reason::Malformed);
    };
    if only_lets_go(request) {
        return Decision::pass(Reason::Deleting);
    }
    let mut findings = faults(kind, &object, families);
    if let Some(old) = request.old_object.filter(|_| request.operation == Operation::Update) {
        let old = serde_json::from_str(old).unwrap_or_default();
        ratchet(&mut findings, &faults(kind, &old, families));
    }
    let denied = findings.iter().any(|finding| finding.severity == Severity::Deny);
    if !denied && *kind == MEMORY_POLICY {
        findings.extend(advice::about(&object, families, &snapshot.policies, request.occasion.now));
    }
    sort(&mut findings, &object);
    let reason = if denied { Reason::Invalid } else { Reason::Valid };
    Decision { findings, phase: Phase::Validate, ..Decision::pass(reason) }
}

fn faults(kind: &Kind, object: &Value, families: &[&'static Family]) -> Vec<Finding> {
    if *kind == MEMORY_POLICY {
        read::policy(object, families).1
    } else {
        read::exemption(object, families).1
    }
}

/// Turns denials into warnings for faults that the stored object has too.
fn ratchet(findings: &mut [Finding], stored: &[Finding]) {
    let of = |finding: &Finding| (finding.pointer.clone(), finding.message().into_owned());
    let stored: BTreeSet<_> = stored.iter().map(of).collect();
    for finding in findings.iter_mut().filter(|finding| stored.contains(&of(finding))) {
        finding.severity = Severity::Warn;
    }
}
