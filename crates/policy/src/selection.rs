//! Which policies judge an object.
//!
//! Cheap conditions come first: family, kind, operation and namespace, then the name, for which the object is read,
//! then labels. The Namespace is looked up only if a policy reads its labels.

use std::sync::Arc;

use memgate_model::family::Family;
use memgate_model::kind::{Kind, NAMESPACE};
use memgate_model::memory_view::MemoryView;
use memgate_model::policy::{Policies, Policy, Question};
use memgate_model::request::{Occasion, Operation, Point, Request};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;

use super::matching::{self, Candidate, Labels, Matches};
use super::namespaces::Namespaces;
use super::written::Written;

/// An object to judge.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'s> {
    /// The family.
    pub family: &'static Family,
    /// The kind; `Pod` for the pod of a workload too.
    pub kind: &'s str,
    /// The namespace; empty for cluster-wide kinds.
    pub namespace: &'s str,
    /// What is being done.
    pub operation: Operation,
    /// The object after mutation.
    pub object: &'s Written<'s>,
    /// The stored object, on UPDATE.
    pub old: Option<&'s Written<'s>>,
    /// The point, the time and the user.
    pub occasion: Occasion<'s>,
}

impl<'s> Subject<'s> {
    /// The object of a request; `None` if policies do not judge it. CI and audits do not know stored objects, so every
    /// request is a CREATE there.
    pub fn of(
        request: &'s Request<'_>,
        family: &'static Family,
        kind: &'s str,
        namespace: &'s str,
        (object, old): (&'s Written<'s>, Option<&'s Written<'s>>),
    ) -> Option<Self> {
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        if !writes || !request.subresource.is_empty() {
            return None;
        }
        let is_admission = request.occasion.point == Point::Admission;
        let operation = if is_admission { request.operation } else { Operation::Create };
        let old = old.filter(|_| operation == Operation::Update);
        let occasion = request.occasion;
        Some(Self { family, kind, namespace, operation, object, old, occasion })
    }
}

/// The policies that judge an object, and what was read for that.
#[derive(Debug)]
pub(super) struct Selection<'p> {
    /// In the order of their names; never [`Matches::No`].
    pub(super) policies: Vec<(&'p Arc<Policy>, Matches)>,
    /// The name of the object, or what it begins with.
    name: String,
    pub(super) namespaces: Namespaces<'p>,
    /// Whether a policy reads labels of Namespaces.
    reads_namespaces: bool,
}

/// Whether a policy may judge stored objects of a kind.
pub fn may_be_judged(policies: &Policies, family: &Family, kind: &Kind) -> bool {
    let mut asked = policies.asked(Question::Resource, family.name);
    asked.any(|policy| matching::judges_kind(&policy.matching, kind.kind, Operation::Create))
}

/// The policies that match an object, with those that may once the budget has ended; `None` if none does.
pub(super) fn select<'p>(
    subject: &Subject<'_>,
    snapshot: &'p Snapshot,
    state: &mut StateReader<'p>,
    question: Question,
) -> Option<Selection<'p>> {
    let (Subject { family, kind, operation, .. }, budget) = (*subject, state.budget());
    // A Namespace is matched by its own name, which is yet to be read.
    let known_namespace = (kind != NAMESPACE.kind).then_some(subject.namespace);
    let is_known = question != Question::Users;
    let judges = |policy: &&Arc<Policy>| {
        (!is_known || matching::judges_kind(&policy.matching, kind, operation))
            && known_namespace.is_none_or(|it| matching::judges_namespace(&policy.matching, it, budget))
    };
    let mut policies: Vec<&Arc<Policy>> =
        snapshot.policies.asked(question, family.name).filter(judges).collect();
    if policies.is_empty() {
        return None;
    }
    let mut name = subject.object.name().to_owned();
    if let Some(workload) = subject.occasion.workload.filter(|it| name.is_empty() && !it.is_empty()) {
        name = format!("{workload}-");
    }
    let namespace = matching::namespace_of(kind, subject.namespace, &name);
    if matching::is_excluded(namespace, &snapshot.settings.policies) {
        return None;
    }
    policies.retain(|policy| {
        (known_namespace.is_some() || matching::judges_namespace(&policy.matching, namespace, budget))
            && (!is_known || matching::judges_name(&policy.matching, &name, budget))
    });
    let reads_namespaces = policies.iter().any(|policy| reads_namespaces(policy));
    let mut namespaces = Namespaces::new(&snapshot.settings.policies);
    if reads_namespaces {
        namespaces.look_up([subject.namespace], state);
    }
    let own = (namespace != subject.namespace || namespace.is_empty()).then(|| &**subject.object.labels());
    let labels =
        Labels { object: subject.object, old: subject.old, namespace: namespaces.labels(namespace, own) };
    let asks_for_user = policies.iter().any(|policy| matching::asks_for_user(&policy.matching));
    // Only an apiserver knows the user.
    let is_admission = subject.occasion.point == Point::Admission;
    let user = (asks_for_user && is_admission).then(|| subject.occasion.user());
    let selected = |policy: &'p Arc<Policy>| {
        let is_excluded =
            user.as_ref().is_some_and(|user| matching::excludes_user(&policy.matching, user, budget));
        let matches = match is_excluded {
            true => Matches::No,
            false if is_known => matching::selects(&policy.matching, &labels),
            false => matching::selects_namespace(&policy.matching, &labels),
        };
        (matches != Matches::No).then_some((policy, matches))
    };
    let policies: Vec<_> = policies.into_iter().filter_map(selected).collect();
    (!policies.is_empty()).then_some(Selection { policies, name, namespaces, reads_namespaces })
}

impl<'p> Selection<'p> {
    /// The policies that match the object even if unknown Namespaces are left aside.
    pub(super) fn certain(&self) -> impl Iterator<Item = &'p Arc<Policy>> {
        self.policies.iter().filter(|(_, matches)| *matches == Matches::Yes).map(|(policy, _)| *policy)
    }

    /// The parts of the object that policies and exemptions match.
    pub(super) fn candidate<'s>(&'s self, subject: &Subject<'s>) -> Candidate<'s> {
        let Subject { family, kind, .. } = *subject;
        let namespace = matching::namespace_of(kind, subject.namespace, &self.name);
        Candidate { family: family.name, kind, namespace, name: &self.name }
    }

    /// Adds the labels to a view of the object, and the name by which it was selected.
    pub(super) fn complete(&self, subject: &Subject<'_>, view: &mut MemoryView) {
        subject.object.complete(view);
        view.name.clone_from(&self.name);
    }

    /// Looks up more Namespaces, where a policy reads their labels.
    pub(super) fn look_up<'n>(
        &mut self,
        names: impl IntoIterator<Item = &'n str>,
        state: &mut StateReader<'p>,
    ) {
        if self.reads_namespaces {
            self.namespaces.look_up(names, state);
        }
    }
}

fn reads_namespaces(policy: &Policy) -> bool {
    policy.matching.namespace_selector.is_some()
        || policy.rules.iter().any(|rule| rule.check.reads_namespaces())
}
