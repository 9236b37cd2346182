//! Judges an object by policies.
//!
//! Policies come in the order of their names, rules in the order of their policy. All of them judge, also after a
//! denial.

mod verdict;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;
use std::sync::Arc;

use serde_json::Value;

use crate::codes::INVALID;
use memgate_model::decision::NotShown;
use memgate_model::finding::{Finding, Severity};
use memgate_model::memory_view::{MemoryView, SourceView, Why};
use memgate_model::policy::{Policy, Question, Rule, When};
use memgate_model::policy_rule::{AtAdmission, PolicyFinding, PolicyRule, PolicyStatus};
use memgate_model::snapshot::Snapshot;
use memgate_model::state_reader::StateReader;
use memgate_model::typed_rule::{Judged, RuleOutcome, RuleViolation, Unknown};
use memgate_primitives::budget::{Budget, OverLimit};
use memgate_primitives::members::Members;
use memgate_primitives::pointer::Pointer;

use self::verdict::Verdict;
pub use self::verdict::{action, promotion};
use super::matching::{self, Matches};
use super::selection::{Selection, Subject, select};
use super::text::plain_name;

/// How many findings of each severity are kept: more than are reported, since a decision selects from those of all
/// policies in document order.
const MAX_KEPT: usize = 200;

/// The views of an object, and of the stored one.
#[derive(Debug)]
pub struct Views {
    /// Of the object.
    pub new: MemoryView,
    /// Of the stored one.
    pub old: Option<MemoryView>,
    /// The JSON of the object after mutation, where that is not what was sent.
    pub object: Option<String>,
}

/// The result of judging an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The findings by policy and rule; of very many, the first of each severity.
    pub findings: Vec<Finding>,
    /// How many findings were left out.
    pub not_shown: NotShown,
    /// The names of the policies that judged it.
    pub policies: Vec<String>,
    /// The exemptions that counted, as `namespace/name`.
    pub exemptions: BTreeSet<String>,
    /// The rules with violations, exempt or not.
    pub fired: Vec<Arc<PolicyRule>>,
    /// The number of findings of each policy by its name, with those that were left out.
    pub counts: BTreeMap<String, Counts>,
    /// How many findings there are of each severity.
    found: BTreeMap<Severity, usize>,
}

/// The number of findings of a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Violations, without those that are exempt.
    pub violations: usize,
    /// Exempt findings: violations and those that cannot be judged.
    pub exempted: usize,
    /// Findings that cannot be judged.
    pub unknown: usize,
    /// In an audit: the violations that admission refuses today.
    pub denied: usize,
    /// In an audit: the violations that admission is going to refuse.
    pub denied_later: usize,
    /// In an audit: all findings that admission is going to refuse, with those that are exempt until then and those that
    /// cannot be judged.
    pub at_risk: usize,
}

impl Counts {
    /// Adds the counts of another object.
    pub fn add(&mut self, other: Self) {
        let Self { violations, exempted, unknown, denied, denied_later, at_risk } = other;
        self.violations += violations;
        self.exempted += exempted;
        self.unknown += unknown;
        self.denied += denied;
        self.denied_later += denied_later;
        self.at_risk += at_risk;
    }

    fn count(&mut self, finding: &PolicyFinding) {
        let is_denied_later = matches!(finding.at_admission, Some(AtAdmission::DeniesFrom { .. }));
        self.at_risk += usize::from(is_denied_later);
        match finding.status {
            PolicyStatus::Exempt => self.exempted += 1,
            PolicyStatus::Unknown => self.unknown += 1,
            PolicyStatus::Violated => {
                self.violations += 1;
                self.denied += usize::from(finding.at_admission == Some(AtAdmission::Denies));
                self.denied_later += usize::from(is_denied_later);
            }
        }
    }
}

impl Judgement {
    /// Adds a finding. A rule may have ten thousand findings about one object: of each severity, only the first are
    /// kept and the later ones are counted.
    fn add(&mut self, finding: Finding) {
        if let Some(policy) = &finding.policy {
            self.counts.entry(policy.rule.policy.clone()).or_default().count(policy);
        }
        let found = self.found.entry(finding.severity).or_default();
        *found += 1;
        match finding.severity {
            _ if *found <= MAX_KEPT => self.findings.push(finding),
            Severity::Deny => self.not_shown.denials += 1,
            Severity::Warn => self.not_shown.warnings += 1,
            Severity::Note => {}
        }
    }
}

/// Judges an object by the policies of a snapshot. `views` makes the object's views, once a policy may match; it returns
/// `None` for an object that has nothing to do with memory.
pub fn judge<'p>(
    subject: &Subject<'_>,
    snapshot: &'p Snapshot,
    state: &mut StateReader<'p>,
    views: impl FnOnce(&mut StateReader<'p>) -> Option<Views>,
) -> Judgement {
    let question = if subject.kind == "Pod" { Question::Pod } else { Question::Resource };
    let Some(mut selection) = select(subject, snapshot, state, question) else {
        return Judgement::default();
    };
    let reads_others = selection.policies.iter().any(|(policy, _)| reads_other_objects(policy));
    let views = if reads_others { views(state) } else { state.quietly(views) };
    let Some(mut views) = views else { return Judgement::default() };
    selection.identity.complete(&mut views.new);
    if let (Some(view), Some(old)) = (&mut views.old, &selection.old) {
        old.complete(view);
    }
    let sources = views.new.sources.iter().map(|source| source.view.namespace.as_str());
    selection.look_up(sources, state);
    let object = views.object.as_deref().unwrap_or(subject.object);
    let object = LazyCell::new(|| serde_json::from_str(object).unwrap_or_default());
    let nearest = |pointer: &Pointer| nearest(&object, pointer);
    let budget = state.budget();
    let judge = Judge { subject, snapshot, selection: &selection, views: &views, budget, nearest: &nearest };
    // Judging has steps of its own: what many policies cost is not the object's fault.
    let (judgement, over) = budget.apart(subject.object.len(), || judge.all());
    if let Some(OverLimit { pointer, limit }) = over {
        budget.over_limit(|| pointer, limit);
    }
    judgement
}

/// Whether a rule of the policy depends on other objects than the judged one. Otherwise nothing is looked up.
fn reads_other_objects(policy: &Policy) -> bool {
    let reads = |rule: &Rule| !rule.by_sources.is_empty() || rule.check.reads_other_objects();
    policy.rules.iter().any(reads)
}

/// One object with everything that rules need.
struct Judge<'j> {
    subject: &'j Subject<'j>,
    snapshot: &'j Snapshot,
    selection: &'j Selection<'j>,
    views: &'j Views,
    budget: &'j Budget<'j>,
    /// The place of a finding: an existing field, or its nearest existing parent.
    nearest: &'j dyn Fn(&Pointer) -> Pointer,
}

impl Judge<'_> {
    fn all(&self) -> Judgement {
        let mut judgement = Judgement::default();
        for (policy, matches) in &self.selection.policies {
            judgement.policies.push(policy.name.clone());
            if let Some(fault) = &policy.invalid {
                judgement.add(not_in_force(&policy.name, fault));
                continue;
            }
            for rule in &policy.rules {
                if self.budget.has_ended() {
                    return judgement;
                }
                self.rule(policy, rule, *matches, &mut judgement);
            }
        }
        judgement
    }

    fn rule(&self, policy: &Policy, rule: &Rule, matches: Matches, judgement: &mut Judgement) {
        let view = &self.views.new;
        let candidate = self.selection.candidate(self.subject);
        let verdict = Verdict::new(policy, rule, matches, self.subject.occasion, &candidate);
        if !rule.roles.contains(&view.role) || !verdict.counts() {
            return;
        }
        let RuleOutcome { violations, unknown } = self.outcome(rule, view, self.views.old.as_ref());
        if violations.is_empty() && unknown.is_none() {
            return;
        }
        if !violations.is_empty() {
            judgement.fired.push(Arc::clone(&rule.about));
        }
        let exemption = verdict.exemption(&self.snapshot.policies, &self.selection.identity.labels);
        let stored =
            (exemption.is_none() && verdict.ratchets(self.subject.operation)).then(|| self.stored(rule));
        let stored = stored.flatten().unwrap_or_default();
        let known: Members<RuleViolation> = stored.violations.into_iter().collect();
        // Compared before the pointers are cut to existing fields: two missing labels have two pointers.
        let placed = self.nearest;
        let violated = violations.iter().filter_map(|it| {
            let is_stored = known.contains(it);
            verdict.finding(&placed(&it.pointer), &it.message, PolicyStatus::Violated, is_stored, exemption)
        });
        let is_stored = unknown.as_ref().is_some_and(|unknown| stored.unknown.as_ref() == Some(unknown));
        let unknown = unknown.and_then(|it| {
            let message = format!("cannot be judged: {}{}", it.why, it.of);
            verdict.finding(&placed(&it.pointer), &message, PolicyStatus::Unknown, is_stored, exemption)
        });
        // A finding that several parts of an object share is reported once.
        let mut told = Members::default();
        let new = |finding: &Finding| told.insert((finding.pointer.clone(), finding.message().into_owned()));
        let mut findings = violated.chain(unknown).filter(new).peekable();
        if let Some(exemption) = exemption.filter(|_| findings.peek().is_some()) {
            judgement.exemptions.insert(exemption.key());
        }
        findings.for_each(|finding| judgement.add(finding));
    }

    /// The outcome of a rule for the stored object, compared with itself: it has no changes.
    fn stored(&self, rule: &Rule) -> Option<RuleOutcome> {
        let old = self.views.old.as_ref()?;
        Some(self.outcome(rule, old, Some(old)))
    }

    /// The outcome of a rule for a view, or for the memory that the object uses.
    fn outcome(&self, rule: &Rule, view: &MemoryView, old: Option<&MemoryView>) -> RuleOutcome {
        if !rule.by_sources.contains(&view.role) {
            let applies = rule.when.as_ref().is_none_or(|when| applies(when, view));
            return if applies { in_words(&self.judged(view, old), rule) } else { RuleOutcome::default() };
        }
        let mut all = RuleOutcome::default();
        for SourceView { view, field } in &view.sources {
            if rule.when.as_ref().is_some_and(|when| !applies(when, view)) {
                continue;
            }
            let of = format!(" ({} {})", view.kind, plain_name(&view.path()));
            let judged = self.judged(view, None);
            let outcome = in_words(&judged, rule);
            all.violations.extend(outcome.violations.into_iter().map(
                |RuleViolation { message, value, .. }| RuleViolation {
                    pointer: field.clone(),
                    message: message + &of,
                    value: value + &of,
                },
            ));
            if let Some(Unknown { why, .. }) = outcome.unknown {
                let why = if judged.is_foreign() { without_names(why, &view.namespace) } else { why };
                all.unknown.get_or_insert_with(|| Unknown { pointer: field.clone(), why, of });
            }
        }
        all
    }

    fn judged<'v>(&'v self, view: &'v MemoryView, old: Option<&'v MemoryView>) -> Judged<'v> {
        let own = matching::namespace_of(view.kind, &view.namespace, &view.name);
        let own_labels = (own != view.namespace).then_some(&view.labels);
        let namespace_labels = self.selection.namespaces.labels(own, own_labels);
        let subject_namespace = &self.views.new.namespace;
        Judged { view, old, namespace_labels, budget: self.budget, subject_namespace }
    }
}

/// The pointer, or its nearest parent that exists in the object.
fn nearest(object: &Value, pointer: &Pointer) -> Pointer {
    let exists = |place: &Pointer| object.pointer(place.as_str()).is_some_and(|value| !value.is_null());
    successors(Some(pointer.clone()), Pointer::parent).find(exists).unwrap_or_default()
}

/// The reason for an unknown value without the names of objects in another namespace. The namespace itself is part of
/// the message anyway.
fn without_names(why: Why, namespace: &str) -> Why {
    match why {
        Why::Service(_) => Why::Service("…".to_owned()),
        Why::Object(name) => {
            let kind = name.split(' ').next().unwrap_or_default();
            Why::Object(format!("{kind} \"…\""))
        }
        Why::Namespace(name) if name != namespace => Why::Namespace("…".to_owned()),
        why => why,
    }
}

/// The outcome of a rule, with the message of the policy if it has one.
fn in_words(judged: &Judged<'_>, rule: &Rule) -> RuleOutcome {
    let mut outcome = RuleOutcome::default();
    if judged.budget.bytes(judged.view.entries()) {
        rule.check.judge(judged, &mut outcome);
    }
    for _ in &outcome.violations {
        judged.budget.finding();
    }
    if let Some(message) = &rule.message {
        for violation in &mut outcome.violations {
            violation.message.clone_from(message);
        }
    }
    outcome
}

/// Whether the backends and providers of a rule include those of this memory.
fn applies(when: &When, view: &MemoryView) -> bool {
    let fits = |wanted: &Option<Vec<String>>, value: &Option<String>| {
        let is_among = |wanted: &Vec<String>| {
            value.as_ref().is_some_and(|value| wanted.iter().any(|one| *one == value.to_lowercase()))
        };
        wanted.as_ref().is_none_or(is_among)
    };
    fits(&when.backends, &view.backend) && fits(&when.providers, &view.provider)
}

/// The note on every object that a policy with faults would judge.
fn not_in_force(policy: &str, fault: &str) -> Finding {
    let message = format!("policy {} is not in force: {fault}", plain_name(policy));
    Finding { severity: Severity::Note, ..Finding::warn(&INVALID, Pointer::root(), message) }
        .help("mend the policy; until then this object is not judged by it")
}
