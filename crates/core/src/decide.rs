//! The decision: one pure function that the webhook and every command call.
//!
//! [`decide`] takes a request and a snapshot and returns findings and edits. It has no clock, no
//! I/O and no randomness; the same input gives the same decision everywhere. It lists what it could not
//! look up in [`Decision::unknown`].

pub mod added;
pub mod audit;
mod behind;
pub mod codes;
pub mod form;
pub mod later;
mod over_limit;
pub mod part;
mod pod;
mod policies;
mod reported;
mod schema;
#[cfg(test)]
mod tests;
mod unknown_fields;
pub mod views;

use crate::patch::Patch;
use memgate_model::change::{keeps_meaning, only_lets_go};
use memgate_model::decision::{Decision, FamilyShare, NotShown};
use memgate_model::edit::Edit;
use memgate_model::family::{Family, Subject};
use memgate_model::finding::Finding;
use memgate_model::kind::Kind;
use memgate_model::object::DEFAULT_NAMESPACE;
use memgate_model::pod::Pod;
use memgate_model::reason::Reason;
use memgate_model::request::{Operation, Request};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_platforms::common::REFERENCE_TERMINATING;
use memgate_platforms::references;
use memgate_primitives::budget::{Budget, MAX_PATCH_BYTES, OverLimit};
use memgate_primitives::review_path::Phase;

use self::policies::Asked;
pub use self::reported::MAX_REPORTED;

/// Decides one request.
///
/// A decision on a pod belongs to the mutating call. A decision on a family's own resource has its
/// edits for the mutating call and its findings for the validating one, which comes later and sees
/// the object with the edits applied.
pub fn decide(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    if request.is_pod() {
        return pod::decide(request, snapshot);
    }
    Decision { phase: Phase::Validate, ..decide_other(request, snapshot) }
}

/// Decides about an object that is not a pod.
fn decide_other(request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    if let Some(kind) = memgate_policy::resource::kind(&request.group, &request.kind) {
        return decide_policy(kind, request, snapshot);
    }
    match memgate_platforms::validated(&snapshot.settings.families, &request.group, &request.kind) {
        Some((family, kind)) => decide_resource(family, kind, request, snapshot),
        None => Decision::pass(Reason::NotOurs),
    }
}

/// Decides about a policy or an exemption.
fn decide_policy(kind: &'static Kind, request: &Request<'_>, snapshot: &Snapshot) -> Decision {
    let budget = Budget::new(request.cancelled, request.object.map_or(0, str::len));
    let families = memgate_platforms::known(&snapshot.settings.families);
    let (mut decision, stored_over) =
        memgate_policy::resource::decide(kind, request, snapshot, &families, &budget);
    if let Some(stop) = budget.stopped() {
        return over_limit::resource(request, stop, stored_over.as_slice(), false);
    }
    // In a file the version may be one that no apiserver serves.
    if snapshot.crds.is_some() && matches!(decision.reason, Reason::Valid | Reason::Invalid) {
        decision
            .findings
            .splice(0..0, form::unserved_version(&request.group, &request.version, kind.version));
    }
    decision.not_shown = reported::keep_first(&mut decision.findings);
    decision
}

/// Decides about an object of a family's own kind.
fn decide_resource(
    family: &'static Family,
    kind: &'static Kind,
    request: &Request<'_>,
    snapshot: &Snapshot,
) -> Decision {
    if request.operation == Operation::Connect || !request.subresource.is_empty() {
        return Decision::pass(Reason::NotJudged);
    }
    let budget = Budget::new(request.cancelled, request.object.map_or(0, str::len));
    let object = match read_object(kind, request, &budget) {
        Ok(object) => object,
        Err(reason) => return Decision::pass(reason),
    };
    if only_lets_go(family.meanings, request) {
        return Decision::pass(Reason::Deleting);
    }
    // Policies judge an update that the family skips.
    let policies_only = family.validation.changes_only && keeps_meaning(family.meanings, request);
    if policies_only && snapshot.policies.is_empty() {
        return Decision::pass(Reason::NotJudged);
    }
    let (stored, mut stored_over) = read_stored(kind, request, &budget);
    // Reading stopped early, so equal parts do not mean equal objects.
    if let Some(stop) = budget.stopped() {
        return over_limit::resource(request, stop, &stored_over, false);
    }
    let unchanged = stored.as_ref() == Some(&object);
    let (subject, mut state) = subject(kind, request, (&object, stored.as_ref()), snapshot, &budget);
    let (mut findings, mut not_shown) = (Vec::new(), NotShown::default());
    if !policies_only {
        findings = (family.faces.validate)(&subject, &mut state);
        if request.operation != Operation::Delete {
            let (going, references): (Vec<_>, Vec<_>) =
                references::findings(family.edges, &subject, &mut state)
                    .into_iter()
                    .partition(|finding| *finding.code == REFERENCE_TERMINATING);
            findings.extend(references);
            findings = (family.faces.keep)(&subject, findings);
            // An update that refers to nothing anew has nothing to report.
            if !going.is_empty() && !keeps_meaning(family.meanings, request) {
                findings.extend(going);
            }
        }
        findings.retain(|finding| !later::is_about(request, finding));
        let schema = schema::findings(family, &subject, request, snapshot, &budget, &mut findings);
        stored_over.extend(reported::ratchet(family, &subject, request, &mut state, &mut findings));
        findings.extend(schema.findings);
        not_shown = schema.not_shown;
    }
    let has_defaults = !policies_only && request.operation != Operation::Delete;
    let defaults = if has_defaults { (family.faces.default)(&subject, &mut state) } else { Vec::new() };
    let asked = Asked::of(request);
    // Policies have steps of their own: what many of them cost is not the object's fault.
    let ((edits, mut judgement), _) = budget.judging(request.object.map_or(0, str::len), || {
        let edits =
            policies::add_defaults(defaults, &mut findings, family, &subject, &asked, snapshot, &mut state);
        (edits, policies::of_resource(family, &subject, &asked, snapshot, &mut state))
    });
    // There may be many of them, whatever the length of this object.
    let (of_users, _) =
        budget.judging(usize::MAX, || behind::judge(family, &subject, &asked, snapshot, &mut state));
    judgement.add_all(of_users);
    findings.extend(judgement.findings);
    if let Some(stop) = budget.stopped() {
        return Decision {
            steps: budget.taken(),
            ..over_limit::resource(request, stop, &stored_over, unchanged)
        };
    }
    reported::drop_when_refused(&mut findings);
    let edits = limited(edits, &mut findings);
    let reason = reason(&findings, &edits, policies_only);
    let not_shown = not_shown.and(judgement.not_shown).and(reported::select(&mut findings, &object));
    Decision {
        findings,
        not_shown,
        families: vec![FamilyShare { family, edits: edits.len() }],
        edits,
        unknown: state.into_unknown(),
        policies: judgement.policies,
        counts: judgement.counts,
        exemptions: judgement.exemptions,
        rules: judgement.rules,
        steps: budget.taken(),
        ..Decision::pass(reason)
    }
}

/// Reads the object; for a DELETE the one that is deleted.
fn read_object(kind: &'static Kind, request: &Request<'_>, budget: &Budget<'_>) -> Result<Tree, Reason> {
    let (text, missing) = match request.operation {
        Operation::Delete => (request.old_object, Reason::NotJudged),
        _ => (request.object, Reason::Malformed),
    };
    Tree::parse_within(text.ok_or(missing)?, &kind.schema, budget).map_err(|_| Reason::Unreadable)
}

/// Reads the stored object of an UPDATE, as far as it is readable, and the limit that it exceeds.
fn read_stored(
    kind: &'static Kind,
    request: &Request<'_>,
    budget: &Budget<'_>,
) -> (Option<Tree>, Vec<OverLimit>) {
    let text = request.old_object.filter(|_| request.operation == Operation::Update);
    let Some(text) = text else { return (None, Vec::new()) };
    let (tree, over) = budget.apart(text.len(), || Tree::parse_within(text, &kind.schema, budget));
    (tree.ok(), over.into_iter().collect())
}

/// Names the object and its namespace, and makes the reader of the state for it.
fn subject<'n>(
    kind: &'static Kind,
    request: &'n Request<'_>,
    (object, old): (&'n Tree, Option<&'n Tree>),
    snapshot: &'n Snapshot,
    budget: &'n Budget<'n>,
) -> (Subject<'n>, StateReader<'n>) {
    let metadata = |field| object.at(&["metadata", field]).and_then(Tree::text).unwrap_or_default();
    let name = first_non_empty([&request.name, metadata("name")]);
    let namespace = first_non_empty([&request.namespace, metadata("namespace")]);
    let (namespace, state) = if kind.namespaced {
        resolve_namespace(namespace, snapshot, budget)
    } else {
        ("", StateReader::new(snapshot, budget))
    };
    (
        Subject { kind, operation: request.operation, namespace, name, object, old },
        state.at(request.occasion.point),
    )
}

/// Leaves out defaults that would make too large a patch, with a warning.
fn limited(edits: Vec<Edit>, findings: &mut Vec<Finding>) -> Vec<Edit> {
    if !Patch(&edits).is_longer_than(MAX_PATCH_BYTES) {
        return edits;
    }
    findings.insert(0, over_limit::no_defaults());
    Vec::new()
}

fn reason(findings: &[Finding], edits: &[Edit], policies_only: bool) -> Reason {
    if findings.iter().any(|finding| finding.policy.is_none() && finding.is_denial()) {
        Reason::Invalid
    } else if policies::is_refused_by_policy(findings) {
        Reason::PolicyDenied
    } else if !edits.is_empty() {
        Reason::Defaulted
    } else if policies_only {
        Reason::NotJudged
    } else {
        Reason::Valid
    }
}

/// The given namespace, else that of the pod's metadata, else the one that the pod declares in its spec. Empty when
/// none is given, or when the settings have one.
fn namespace_of_pod<'n>(pod: &'n Pod<'_>, given: &'n str, snapshot: &Snapshot) -> &'n str {
    let own = pod.metadata.as_ref().and_then(|metadata| metadata.namespace.as_deref());
    match (first_non_empty([given, own.unwrap_or_default()]), &snapshot.settings.namespace) {
        ("", None) => declared(pod, &snapshot.settings.families).unwrap_or_default(),
        (namespace, _) => namespace,
    }
}

/// The namespace that a pod declares in its spec, for a manifest without one.
fn declared<'p>(pod: &'p Pod<'_>, families: &[&'static Family]) -> Option<&'p str> {
    // The declaration counts whichever families are enabled.
    let all = memgate_platforms::ALL.iter().chain(families);
    all.filter_map(|family| family.pods.declared_namespace).find_map(|read_namespace| read_namespace(pod))
}

/// The namespace of an object, given the one of its request or metadata. Without one, that of the settings
/// counts, then `default`; the reader then knows that it is an assumption.
fn resolve_namespace<'n>(
    namespace: &'n str,
    snapshot: &'n Snapshot,
    budget: &'n Budget<'n>,
) -> (&'n str, StateReader<'n>) {
    match (namespace, &snapshot.settings.namespace) {
        ("", Some(given)) => (given, StateReader::new(snapshot, budget)),
        ("", None) => (DEFAULT_NAMESPACE, StateReader::without_namespace(snapshot, budget)),
        (namespace, _) => (namespace, StateReader::new(snapshot, budget)),
    }
}

/// The first text that is not empty. Callers put the request before the object's own metadata.
fn first_non_empty<const N: usize>(texts: [&str; N]) -> &str {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}
