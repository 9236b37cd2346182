//! The decision: one pure function that the webhook and every command call.
//!
//! [`decide`] takes a request and a snapshot and returns findings and edits. It has no clock, no
//! I/O and no randomness; the same input gives the same decision everywhere. It lists what it could not
//! look up in [`Decision::unknown`].

mod limits;
mod pod;
mod preview;
mod schema;

use std::collections::HashSet;

use crate::family;
use crate::model::change::is_metadata_only_update;
use crate::model::crd::Crds;
use crate::model::decision::{Decision, FamilyShare};
use crate::model::family::{Family, Subject};
use crate::model::finding::{Finding, Phase, Severity};
use crate::model::kind::Kind;
use crate::model::object::{DEFAULT_NAMESPACE, is_deleting};
use crate::model::reason::Reason;
use crate::model::request::{Operation, Request};
use crate::model::snapshot::Snapshot;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;
use crate::model::work::Work;
use crate::model::workload;

/// Decides one request.
///
/// A decision on a pod belongs to the mutating call. A decision on a family's own resource has its
/// edits for the mutating call and its findings for the validating one, which comes later and sees
/// the object with the edits applied.
#[must_use]
pub fn decide(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    if request.is_pod() {
        return pod::decide(request, snapshot);
    }
    if let Some(workload) = workload::find(&request.group, &request.kind) {
        return preview::decide(workload, request, snapshot);
    }
    match family::validated(&snapshot.settings.families, &request.group, &request.kind) {
        Some((family, kind)) => decide_resource(family, kind, request, snapshot),
        None => Decision::pass(Reason::NotOurs),
    }
}

/// The namespace of an object, given the one of its request or metadata. Without that the settings
/// decide, and without settings it is `default`; the reader then knows that it is an assumption.
fn resolve_namespace<'n>(
    namespace: &'n str,
    snapshot: &'n Snapshot,
    work: &'n Work<'n>,
) -> (&'n str, StateReader<'n>) {
    match (namespace, &snapshot.settings.namespace) {
        ("", Some(given)) => (given, StateReader::new(snapshot, work)),
        ("", None) => (DEFAULT_NAMESPACE, StateReader::without_namespace(snapshot, work)),
        (namespace, _) => (namespace, StateReader::new(snapshot, work)),
    }
}

fn decide_resource(
    family: &'static Family,
    kind: &'static Kind,
    request: &Request<'_>,
    snapshot: &Snapshot,
) -> Decision {
    if request.operation == Operation::Connect || !request.subresource.is_empty() {
        return Decision::pass(Reason::NotJudged);
    }
    let deleted = request.operation == Operation::Delete;
    let text = if deleted { request.old_object } else { request.object };
    let (work, old_work) = (Work::new(request.cancelled), Work::new(request.cancelled));
    let object = match text.map(|text| Tree::parse_within(text, &kind.schema, &work)) {
        Some(Ok(object)) => object,
        Some(Err(_)) => return Decision::pass(Reason::Unreadable),
        None if deleted => return Decision::pass(Reason::NotJudged),
        None => return Decision::pass(Reason::Malformed),
    };
    // On CREATE the apiserver takes the timestamp away, so there it means nothing.
    if is_deleting(&object) && request.operation == Operation::Update {
        return Decision::pass(Reason::Deleting);
    }
    if family.validates_changes_only && is_metadata_only_update(request) {
        return Decision::pass(Reason::NotJudged);
    }
    let old = request.old_object.filter(|_| request.operation == Operation::Update);
    let old = old.and_then(|text| Tree::parse_within(text, &kind.schema, &old_work).ok());
    if let Some(ended) = limits::ended_resource(request, &work, Some(&old_work)) {
        return ended;
    }
    let metadata = |field| object.at(&["metadata", field]).and_then(Tree::text).unwrap_or_default();
    let name = first_non_empty([&request.name, metadata("name")]);
    let namespace = first_non_empty([&request.namespace, metadata("namespace")]);
    let (namespace, state) = if kind.namespaced {
        resolve_namespace(namespace, snapshot, &work)
    } else {
        ("", StateReader::new(snapshot, &work))
    };
    let operation = request.operation;
    let subject = Subject { kind, operation, namespace, name, object: &object, old: old.as_ref() };
    let stand_in = snapshot.crds.as_ref().map(|crds| (request, crds));
    let decision = decide_subject(family, &subject, state, stand_in, &old_work);
    limits::ended_resource(request, &work, Some(&old_work)).unwrap_or(decision)
}

/// The first text that is not empty. Callers put the request before the object's own metadata.
fn first_non_empty<const N: usize>(texts: [&str; N]) -> &str {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// Decides about an object of a family's own kind; `stand_in` is what stands in for an apiserver that has not
/// seen the object, and `old_work` counts what is done about the stored one.
fn decide_subject<'s>(
    family: &'static Family,
    subject: &Subject<'_>,
    mut state: StateReader<'s>,
    stand_in: Option<(&Request<'_>, &Crds)>,
    old_work: &'s Work<'s>,
) -> Decision {
    let mut findings = (family.validate)(subject, &mut state);
    let schema =
        stand_in.map(|(request, crds)| schema::findings(family, subject.kind, request, crds, &mut findings));
    if let Some(old) = subject.old {
        let ended = state.work().has_ended();
        state.count_in(old_work);
        ratchet(family, subject, old, &mut findings, ended, &mut state);
    }
    findings.extend(schema.into_iter().flatten());
    let denied = findings.iter().any(|finding| finding.severity == Severity::Deny);
    findings.retain(|finding| !(denied && finding.when_allowed));
    findings.sort_by_cached_key(|finding| subject.object.document_position(&finding.pointer));
    let untold = limits::keep_told(&mut findings);
    let edits = if subject.operation == Operation::Delete {
        Vec::new()
    } else {
        (family.default)(subject, &mut state)
    };
    let reason = match (denied, edits.is_empty()) {
        (true, _) => Reason::Invalid,
        (false, false) => Reason::Defaulted,
        (false, true) => Reason::Valid,
    };
    let unknown = state.into_unknown();
    let families = vec![FamilyShare { family, edits: edits.len() }];
    Decision { findings, untold, edits, unknown, families, phase: Phase::Validate, ..Decision::pass(reason) }
}

/// Turns each denial that the stored object already deserves into a warning, so that a stored object can
/// still be labelled, annotated and freed of its finalizers. `ended` says that there was too much to find
/// everything; then the stored object is looked at to see whether it is so of that one too.
/// Source: Kubernetes documentation, CRD validation ratcheting.
fn ratchet(
    family: &'static Family,
    subject: &Subject<'_>,
    old: &Tree,
    findings: &mut [Finding],
    ended: bool,
    state: &mut StateReader<'_>,
) {
    if findings.iter().all(|finding| finding.severity == Severity::Warn) && !ended {
        return;
    }
    let stored = Subject { operation: Operation::Create, object: old, old: None, ..*subject };
    let old_findings = (family.validate)(&stored, state);
    let denied = old_findings.iter().filter(|old| old.severity == Severity::Deny);
    let old_denials: HashSet<_> = denied.map(Finding::fingerprint).collect();
    for finding in findings {
        if old_denials.contains(&finding.fingerprint()) {
            finding.severity = Severity::Warn;
        }
    }
}
