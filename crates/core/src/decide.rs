//! The decision: one pure function that the webhook and every command call.
//!
//! [`decide`] takes a request and a snapshot and returns findings and edits. It has no clock, no
//! I/O and no randomness; the same input gives the same decision everywhere. It lists what it could not
//! look up in [`Decision::unknown`].

pub mod audit;
pub mod codes;
mod contradicted;
pub mod form;
mod limits;
mod namespace;
pub mod origins;
mod pod;
mod policies;
mod preview;
mod schema;
mod spoken;
#[cfg(test)]
mod tests;
pub mod views;
mod works;

use std::cell::OnceCell;

use crate::decide::schema::StandIn;
use crate::family;
use crate::model::change::is_metadata_only_update;
use crate::model::crd::Crds;
use crate::model::decision::{Decision, FamilyShare, Untold};
use crate::model::family::{Family, Subject};
use crate::model::finding::{Finding, Phase, Severity};
use crate::model::kind::Kind;
use crate::model::members::Members;
use crate::model::object::{DEFAULT_NAMESPACE, is_deleting};
use crate::model::reason::Reason;
use crate::model::request::{Operation, Request};
use crate::model::snapshot::Snapshot;
use crate::model::state_reader::StateReader;
use crate::model::tree::Tree;
use crate::model::work::{MAX_PATCH_BYTES, Stop, Work};
use crate::model::workload;
use crate::patch::Patch;
use crate::policy;
use crate::policy::judge::Judgement;

use self::works::Works;

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
    if let Some(kind) = policy::resource::kind(&request.group, &request.kind) {
        let mut decision =
            policy::resource::decide(kind, request, snapshot, &family::known(&snapshot.settings.families));
        // Where no apiserver has seen the object, its version may be none.
        if snapshot.crds.is_some() && matches!(decision.reason, Reason::Valid | Reason::Invalid) {
            decision.findings.splice(0..0, form::unserved(request, kind.version));
        }
        decision.untold = limits::keep_first(&mut decision.findings);
        return decision;
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
    let works = Works::new(request);
    let object = match text.map(|text| Tree::parse_within(text, &kind.schema, &works.new)) {
        Some(Ok(object)) => object,
        Some(Err(_)) => return Decision::pass(Reason::Unreadable),
        None if deleted => return Decision::pass(Reason::NotJudged),
        None => return Decision::pass(Reason::Malformed),
    };
    // On CREATE the apiserver takes the timestamp away, so there it means nothing.
    if is_deleting(&object) && request.operation == Operation::Update {
        return Decision::pass(Reason::Deleting);
    }
    // A family's own silence does not stop policies.
    let is_silent = family.validation.changes_only && is_metadata_only_update(request);
    if is_silent && snapshot.policies.is_empty() {
        return Decision::pass(Reason::NotJudged);
    }
    let old = request.old_object.filter(|_| request.operation == Operation::Update);
    let old = old.and_then(|text| Tree::parse_within(text, &kind.schema, &works.old).ok());
    if let Some(ended) = limits::ended_resource(request, &works.new, [&works.old], false) {
        return ended;
    }
    let (subject, state) = subject(kind, request, (&object, old.as_ref()), snapshot, &works.new);
    let asked = Asked { request, snapshot, is_silent };
    let decision = decide_subject(family, &subject, state, &asked, &works);
    let unchanged = old.as_ref() == Some(&object);
    let old = [&works.old, &works.old_findings];
    let ended = limits::ended_resource(request, &works.new, old, unchanged);
    let ended = ended.or_else(|| limits::ended_resource(request, &works.again, old, unchanged));
    let is_cancelled = works.schema.stopped() == Some(Stop::Cancelled);
    ended.or_else(|| is_cancelled.then(|| Decision::pass(Reason::Cancelled))).unwrap_or(decision)
}

/// An object of a family's own kind with its name and namespace, and the way to the state from there.
fn subject<'n>(
    kind: &'static Kind,
    request: &'n Request<'_>,
    (object, old): (&'n Tree, Option<&'n Tree>),
    snapshot: &'n Snapshot,
    work: &'n Work<'n>,
) -> (Subject<'n>, StateReader<'n>) {
    let metadata = |field| object.at(&["metadata", field]).and_then(Tree::text).unwrap_or_default();
    let name = first_non_empty([&request.name, metadata("name")]);
    let namespace = first_non_empty([&request.namespace, metadata("namespace")]);
    let (namespace, state) = if kind.namespaced {
        resolve_namespace(namespace, snapshot, work)
    } else {
        ("", StateReader::new(snapshot, work))
    };
    (Subject { kind, operation: request.operation, namespace, name, object, old }, state)
}

/// The first text that is not empty. Callers put the request before the object's own metadata.
fn first_non_empty<const N: usize>(texts: [&str; N]) -> &str {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// What is asked about an object of a family's own kind.
struct Asked<'s> {
    request: &'s Request<'s>,
    snapshot: &'s Snapshot,
    /// Whether the family has nothing to say, and only policies judge.
    is_silent: bool,
}

/// Decides about an object of a family's own kind.
fn decide_subject<'s>(
    family: &'static Family,
    subject: &Subject<'_>,
    mut state: StateReader<'s>,
    asked: &Asked<'s>,
    works: &'s Works<'s>,
) -> Decision {
    let Asked { request, snapshot, is_silent } = *asked;
    // Where no apiserver has seen the object, the definitions of kinds stand in for it.
    let stand_in = snapshot.crds.as_ref().map(|crds| (request, crds));
    let (mut findings, of_schema) = if is_silent {
        (Vec::new(), Untold::default())
    } else {
        find(family, subject, &mut state, stand_in, works)
    };
    let mut edits = if is_silent || subject.operation == Operation::Delete {
        Vec::new()
    } else {
        (family.faces.default)(subject, &mut state)
    };
    if let Some(judged) = policies::judged(family, subject, request, snapshot) {
        policy::defaults::add(&mut edits, subject, &judged, snapshot, &mut state);
    }
    let Judgement { findings: judged, untold: of_policies, policies, exemptions, fired, .. } =
        policies::of_resource(family, subject, request, snapshot, &mut state);
    findings.extend(judged);
    let denied = limits::denies(&findings);
    findings.retain(|finding| !(denied && finding.when_allowed));
    let is_refused_by_policy = policies::is_refused_by_policy(&findings);
    let is_refused_by_family = findings.iter().any(|it| it.policy.is_none() && it.severity == Severity::Deny);
    if Patch(&edits).is_longer_than(MAX_PATCH_BYTES) {
        edits.clear();
        findings.insert(0, limits::no_defaults());
    }
    let untold = of_schema.and(of_policies).and(limits::keep_told(&mut findings, subject.object));
    // Where there was too much, only that is said.
    if !works.new.has_ended() && findings.iter().any(Finding::is_wordless) {
        give_words(family, subject, &mut state, &works.again, &mut findings);
    }
    let reason = match (is_refused_by_family, edits.is_empty()) {
        (true, _) => Reason::Invalid,
        (false, _) if is_refused_by_policy => Reason::PolicyDenied,
        (false, false) => Reason::Defaulted,
        (false, true) if is_silent => Reason::NotJudged,
        (false, true) => Reason::Valid,
    };
    let unknown = state.into_unknown();
    let families = vec![FamilyShare { family, edits: edits.len() }];
    Decision {
        findings,
        untold,
        edits,
        unknown,
        families,
        policies,
        exemptions,
        fired,
        phase: Phase::Validate,
        ..Decision::pass(reason)
    }
}

/// All findings about an object, in any order, and how much more the schema has to say.
fn find<'s>(
    family: &'static Family,
    subject: &Subject<'_>,
    state: &mut StateReader<'s>,
    stand_in: Option<(&Request<'_>, &Crds)>,
    works: &'s Works<'s>,
) -> (Vec<Finding>, Untold) {
    let mut findings = (family.faces.validate)(subject, state);
    let schema = stand_in.map(|(request, crds)| {
        let stand_in = StandIn { request, crds, work: &works.schema, old_work: &works.old_schema };
        schema::findings(family, subject, &stand_in, &mut findings)
    });
    let (schema, of_schema) = schema.unwrap_or_default();
    // Where there was too much to find everything, the stored object is asked whether it is so of it too.
    let compares = !family.validation.ratchets && limits::denies(&findings);
    let ended = state.work().has_ended();
    if !ended && subject.old == Some(subject.object) {
        // All of it is stored already.
        for finding in findings.iter_mut().filter(|_| !family.validation.ratchets) {
            finding.severity = Severity::Warn;
        }
    } else if let Some(old) = subject.old.filter(|_| compares || ended) {
        let subject = Subject { operation: Operation::Create, object: old, old: None, ..*subject };
        let work = state.count_in(&works.old_findings);
        let stored = (family.faces.validate)(&subject, state);
        state.count_in(work);
        ratchet(&mut findings, &stored);
    }
    findings.extend(schema);
    findings.extend(limits::of_schema(&works.schema));
    let denied = limits::denies(&findings);
    findings.retain(|finding| !(denied && finding.when_allowed));
    (findings, of_schema)
}

/// Asks a family once more for its findings, to give words to those that are told and have none.
fn give_words<'s>(
    family: &'static Family,
    subject: &Subject<'_>,
    state: &mut StateReader<'s>,
    again: &'s Work<'s>,
    told: &mut [Finding],
) {
    let wordless = || told.iter().filter(|finding| finding.is_wordless());
    again.tell_only(wordless().map(|finding| finding.pointer.clone()).collect());
    let work = state.count_in(again);
    let mut worded = (family.faces.validate)(subject, state);
    state.count_in(work);
    worded.retain(|finding| !finding.is_wordless());
    for finding in told.iter_mut().filter(|finding| finding.is_wordless()) {
        let is_same = |other: &Finding| {
            other.pointer == finding.pointer && other.fingerprint() == finding.fingerprint()
        };
        if let Some(found) = worded.iter().position(is_same) {
            let severity = finding.severity;
            *finding = Finding { severity, ..worded.remove(found) };
        }
    }
}

/// Turns each denial that the stored object already deserves into a warning, so that a stored object can
/// still be labelled, annotated and freed of its finalizers.
/// Source: Kubernetes documentation, CRD validation ratcheting.
fn ratchet(findings: &mut [Finding], stored: &[Finding]) {
    let is_denial = |finding: &&Finding| finding.severity == Severity::Deny;
    // What is wrong with both is mostly found in the same order, and two in step need no search.
    let mut in_step = stored.iter().filter(is_denial).peekable();
    let others = OnceCell::new();
    let all = || stored.iter().filter(is_denial).map(Finding::fingerprint).collect::<Members<_>>();
    for finding in findings.iter_mut().filter(|finding| finding.severity == Severity::Deny) {
        let fingerprint = finding.fingerprint();
        let same = in_step.next_if(|stored| stored.fingerprint() == fingerprint).is_some();
        if same || others.get_or_init(all).contains(&fingerprint) {
            finding.severity = Severity::Warn;
        }
    }
}
