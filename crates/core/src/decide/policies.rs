//! Judges an object by the policies, once the families have decided: with their edits applied.

use std::collections::BTreeMap;

use memgate_model::decision::Decision;
use memgate_model::edit::Edit;
use memgate_model::family::{Family, Subject};
use memgate_model::finding::{Finding, Severity};
use memgate_model::memory_view::MemoryView;
use memgate_model::pod::Pod;
use memgate_model::policy::{Group, Question};
use memgate_model::policy_rule::Counts;
use memgate_model::reason::Reason;
use memgate_model::request::{Operation, Point, Request};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_model::tree::Tree;
use memgate_policy::judge::{Judgement, Views, judge, refuse_unread as refuse_unread_pod};
use memgate_policy::written::{self, Written};
use memgate_policy::{defaults, selection};
use memgate_primitives::budget::{Budget, OverLimit};
use memgate_primitives::members::Members;

use super::{reported, views};
use crate::patch::apply::apply;

/// A request with its objects as policies read them.
pub(super) struct Asked<'r> {
    request: &'r Request<'r>,
    object: Option<Written<'r>>,
    old: Option<Written<'r>>,
}

impl<'r> Asked<'r> {
    pub(super) fn of(request: &'r Request<'r>) -> Self {
        let object = request.object.map(Written::new);
        Self { request, object, old: request.old_object.map(Written::new) }
    }

    pub(super) const fn request(&self) -> &'r Request<'r> {
        self.request
    }
}

/// Judges an object of a family's own kind.
pub(super) fn of_resource<'s>(
    family: &'static Family,
    subject: &Subject<'_>,
    asked: &Asked<'_>,
    snapshot: &'s Snapshot,
    state: &mut StateReader<'s>,
) -> Judgement {
    let judged = judged(family, subject, asked, snapshot);
    let Some(judged) = judged else { return Judgement::default() };
    judge(&judged, snapshot, state, |state| {
        let counts_users = snapshot.policies.has_any(Group::Users);
        let mut view =
            |object, old| views::of_object(family, &Subject { object, old, ..*subject }, counts_users, state);
        let new = view(subject.object, subject.old);
        let old = subject.old.filter(|_| judged.old.is_some()).and_then(|old| view(old, None));
        let gone = || Some(MemoryView { is_gone: true, ..old.clone()? });
        let new = new.or_else(gone)?;
        Some(Views { new, old, stored: None })
    })
}

/// Adds the defaults that policies set to those of the family. An audit judges objects as they are stored: there, the
/// missing ones are notes among the findings.
pub(super) fn add_defaults<'s>(
    mut edits: Vec<Edit>,
    findings: &mut Vec<Finding>,
    family: &'static Family,
    subject: &Subject<'_>,
    asked: &Asked<'_>,
    snapshot: &'s Snapshot,
    state: &mut StateReader<'s>,
) -> Vec<Edit> {
    let Some(judged) = judged(family, subject, asked, snapshot) else { return edits };
    let is_audit = asked.request.occasion.point == Point::Audit;
    let of_family = is_audit.then(|| edits.clone());
    // What an update drops keeps its stored value at every point.
    let operation = asked.request.operation;
    let old = asked.old.as_ref().filter(|_| operation == Operation::Update);
    let judged = selection::Subject { operation, old, ..judged };
    defaults::add(&mut edits, subject, &judged, snapshot, state);
    let mut edits = match of_family {
        Some(of_family) => {
            findings.extend(edits.iter().filter_map(defaults::missing));
            of_family
        }
        None => edits,
    };
    if snapshot.policies.has_any(Group::Written) {
        let again = |text: &str| {
            let Ok(tree) = Tree::parse(text, &subject.kind.schema) else { return Vec::new() };
            let subject = Subject { object: &tree, ..*subject };
            let mut edits = (family.faces.default)(&subject, state);
            let written = Written::new(text);
            let judged = selection::Subject { object: &written, ..judged };
            defaults::add(&mut edits, &subject, &judged, snapshot, state);
            edits
        };
        // What is stored is as memgate left it.
        let old = if is_audit { Some(judged.object) } else { judged.old };
        written::mark(&mut edits, judged.object, old, again);
    }
    edits
}

/// An object of a family's own kind as policies see it; `None` without any policy.
fn judged<'r>(
    family: &'static Family,
    subject: &Subject<'r>,
    asked: &'r Asked<'r>,
    snapshot: &Snapshot,
) -> Option<selection::Subject<'r>> {
    if snapshot.policies.is_empty() {
        return None;
    }
    let objects = (asked.object.as_ref()?, asked.old.as_ref());
    selection::Subject::of(asked.request, family, subject.kind.kind, subject.namespace, objects)
}

/// Adds the findings of policies about a pod to the decision about it. `text` is the pod as it was sent.
pub(super) fn add_to_pod<'s>(
    decision: Decision,
    pod: &Pod<'_>,
    (text, namespace): (&str, &str),
    request: &Request<'_>,
    snapshot: &'s Snapshot,
    state: &mut StateReader<'s>,
) -> Decision {
    if snapshot.policies.is_silent(Question::PodWithUnseen) {
        return decision;
    }
    let request = &Request { operation: Operation::Create, old_object: None, ..request.clone() };
    // All platforms look at the same pod.
    let written = Written::of_pod(text, pod, &snapshot.policies);
    let mut all = Judgement::default();
    // Judging has steps of its own: what many policies cost is not the pod's fault.
    let (budget, families) = (state.budget(), &snapshot.settings.families);
    let changed = if decision.edits.is_empty() { None } else { apply(text, &decision.edits).ok() };
    let parsed = changed.as_deref().and_then(|text| Pod::parse(text).ok());
    let stored = parsed.as_ref().unwrap_or(pod);
    let judge_all = || {
        let known = families.iter().filter(|family| may_know(family, pod));
        for family in known.take_while(|_| !budget.has_ended()) {
            let subject = selection::Subject::of(request, family, "Pod", namespace, (&written, None));
            let Some(subject) = subject else { continue };
            let judgement = judge(&subject, snapshot, state, |state| {
                let new = views::of_pod(family, [pod, stored], namespace, state)?;
                Some(Views {
                    new,
                    old: None,
                    stored: changed.as_deref().filter(|_| family.pods.adds_containers),
                })
            });
            all.add_all(judgement);
        }
    };
    let ((), over) = budget.judging(text.len(), judge_all);
    if let Some(OverLimit { pointer, limit }) = over {
        budget.over_limit(|| pointer, limit);
    }
    join(decision, all)
}

/// Whether a family may know a pod, by its labels and annotations. No other pod has a view.
fn may_know(family: &Family, pod: &Pod<'_>) -> bool {
    let has_annotation = |key: &str| pod.annotation(key).is_some();
    family.pods.selectors.iter().any(|selector| selector.may_select(|key| pod.label(key), has_annotation))
}

/// Adds the denials of policies that judge pods: a pod that exceeds a limit could contain anything in the rest. Which
/// families it belongs to is seen by its metadata, and by the decision so far.
pub(super) fn refuse_unread(
    decision: Decision,
    pod: &Pod<'_>,
    (text, namespace): (&str, &str),
    over: &OverLimit,
    request: &Request<'_>,
    snapshot: &Snapshot,
) -> Decision {
    if snapshot.policies.is_silent(Question::PodWithUnseen) {
        return decision;
    }
    let request = &Request { operation: Operation::Create, old_object: None, ..request.clone() };
    // The budget of the decision has ended. If this one does too, every policy matches.
    let budget = Budget::new(request.cancelled, text.len());
    let mut state = StateReader::new(snapshot, &budget);
    let written = Written::new(text);
    let is_cut = over.pointer.as_str().starts_with("/metadata");
    let mut all = Judgement::default();
    for family in &snapshot.settings.families {
        let subject = selection::Subject::of(request, family, "Pod", namespace, (&written, None));
        let Some(subject) = subject else { continue };
        let has_annotation = |key: &str| is_cut || pod.annotation(key).is_some();
        let (selectors, injecting) = (family.pods.selectors, &decision.families);
        all.add_all(refuse_unread_pod(&subject, snapshot, &mut state, &over.pointer, |labels| {
            selectors.iter().any(|selector| selector.selects(labels, has_annotation))
                || injecting.iter().any(|share| share.family.name == family.name)
        }));
    }
    Decision { unknown: state.into_unknown(), ..join(decision, all) }
}

/// Joins a decision about a pod with the findings of policies. Two families may recognise the pod; each finding
/// counts once.
fn join(decision: Decision, judgement: Judgement) -> Decision {
    if judgement == Judgement::default() {
        return decision;
    }
    let Judgement { findings, not_shown: of_policies, policies, exemptions, rules, counts, .. } = judgement;
    let mut seen = Members::default();
    let new = |finding: &Finding| {
        seen.insert((finding.code_name().to_owned(), finding.pointer.clone(), finding.message().into_owned()))
    };
    let found = findings.len();
    let findings: Vec<Finding> = findings.into_iter().filter(new).collect();
    let mut joined = Decision { policies, exemptions, rules, counts, ..decision };
    if findings.len() < found {
        joined.counts = counts_of(&findings);
    }
    joined.findings.extend(findings);
    joined.findings.sort_by_cached_key(|finding| reported::position(&finding.pointer));
    let not_shown = reported::keep_first(&mut joined.findings);
    joined.not_shown = joined.not_shown.and(of_policies).and(not_shown);
    if is_refused_by_policy(&joined.findings) {
        joined.reason = Reason::PolicyDenied;
        // It stays refused when the missing objects exist.
        joined.events.clear();
        joined.missing.clear();
    }
    joined
}

/// The number of findings of each policy.
fn counts_of(findings: &[Finding]) -> BTreeMap<String, Counts> {
    let mut counts = BTreeMap::<_, Counts>::new();
    for (finding, policy) in findings.iter().filter_map(|it| Some((it, it.policy.as_ref()?))) {
        counts.entry(policy.rule.policy.clone()).or_default().count(finding.severity, policy);
    }
    counts
}

/// Whether a policy refuses the object.
pub(super) fn is_refused_by_policy(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.policy.is_some() && finding.severity == Severity::Deny)
}
