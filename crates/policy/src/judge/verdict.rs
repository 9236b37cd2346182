//! Makes findings of violations: first the action, then the exemption, then the ratchet, then the message.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::codes::RULE;
use memgate_model::elsewhere::Elsewhere;
use memgate_model::finding::{Finding, Severity};
use memgate_model::kind::MEMORY_POLICY;
use memgate_model::memory_view::Why;
use memgate_model::object::Reference;
use memgate_model::policy::{Action, Exemption, Policies, Policy, Promotion, Rule};
use memgate_model::policy_rule::{AtAdmission, ExemptBy, PolicyFinding, PolicyStatus};
use memgate_model::request::{Occasion, Operation, Point};
use memgate_primitives::budget::Budget;
use memgate_primitives::pointer::Pointer;

use crate::exempt;
use crate::matching::{Candidate, Matches};
use crate::reader::with_field;
use crate::text::plain_name;

/// So many conditions of a rule are reported.
const MAX_APPLIES: usize = 16;

/// The action of a rule for an object, before the rule is judged.
pub(super) struct Verdict<'v> {
    policy: &'v Policy,
    rule: &'v Rule,
    occasion: Occasion<'v>,
    candidate: &'v Candidate<'v>,
    /// Whether the policy matches only because a Namespace is not known.
    is_assumed: bool,
    /// What follows from a violation.
    pub(super) action: Action,
}

/// What follows from a violation, before its texts are made.
#[derive(Clone)]
pub(super) struct Follows {
    pub(super) severity: Severity,
    /// The time from which it is going to be refused.
    promised: Option<Timestamp>,
    pub(super) about: PolicyFinding,
}

impl<'v> Verdict<'v> {
    pub(super) fn new(
        policy: &'v Policy,
        rule: &'v Rule,
        matches: Matches,
        occasion: Occasion<'v>,
        candidate: &'v Candidate<'v>,
    ) -> Self {
        let is_assumed = matches == Matches::Unknown;
        let action = action(policy, rule, occasion);
        let action = if is_assumed { action.min(Action::Warn) } else { action };
        Self { policy, rule, occasion, candidate, is_assumed, action }
    }

    /// Whether the rule has an effect.
    pub(super) fn counts(&self) -> bool {
        self.action != Action::None
    }

    /// The exemption that counts for the object, or for a memory that it uses.
    pub(super) fn exemption(
        &self,
        policies: &'v Policies,
        candidate: &Candidate<'_>,
        labels: &BTreeMap<String, String>,
        budget: &Budget<'_>,
    ) -> Option<&'v Exemption> {
        exempt::find(policies, (self.policy, self.rule), (candidate, labels), self.occasion.now, budget)
    }

    /// Whether violations of the stored object only warn.
    pub(super) fn ratchets(&self, operation: Operation) -> bool {
        !self.policy.enforces_existing && operation == Operation::Update && self.action == Action::Deny
    }

    /// The finding about a violation without an exemption.
    pub(super) fn finding(&self, pointer: &Pointer, message: &str, is_stored: bool) -> Option<Finding> {
        let follows = self.follows(None, is_stored, None)?;
        Some(self.told(follows, pointer, (message, String::new()), None, &[]))
    }

    /// What follows from a violation, or from what cannot be judged for the reason `why`.
    pub(super) fn follows(
        &self,
        why: Option<&Why>,
        is_stored: bool,
        exemption: Option<&Exemption>,
    ) -> Option<Follows> {
        let status = if why.is_some() { PolicyStatus::Unknown } else { PolicyStatus::Violated };
        let action = if why.is_some() { self.action.min(self.rule.on_unknown) } else { self.action };
        let needs_namespace = self.is_assumed || matches!(why, Some(Why::Namespace(_)));
        // An audit only reports, so there the action at admission decides whether anything depends on it.
        let is_audit = self.occasion.point == Point::Audit;
        let matters =
            || self.action >= Action::Warn || is_audit && self.action_at_admission() >= Action::Warn;
        let is_assumed = needs_namespace && exemption.is_none() && matters();
        let ratcheted = is_stored && action == Action::Deny;
        let (action, status) = match exemption {
            Some(_) => (Action::Report, PolicyStatus::Exempt),
            None if ratcheted => (Action::Warn, status),
            None => (action, status),
        };
        let severity = action.severity()?;
        let promised = self.promised(status).filter(|_| action == Action::Warn && !ratcheted);
        let at_admission = self.at_admission(status, exemption);
        let exemption_of = |it: &Exemption| ExemptBy { name: it.key(), until: it.expires_at };
        let exempt_by = exemption.map(exemption_of);
        let about = PolicyFinding {
            rule: self.rule.about.clone(),
            status,
            at_admission,
            exemption: exempt_by,
            is_assumed,
            excess: 0,
        };
        Some(Follows { severity, promised, about })
    }

    /// The finding with its texts: the message, the value that was judged, and the values by which the rule applies.
    pub(super) fn told(
        &self,
        follows: Follows,
        pointer: &Pointer,
        (message, value): (&str, String),
        exemption: Option<&Exemption>,
        applies: &[String],
    ) -> Finding {
        let Follows { severity, promised, about: policy } = follows;
        let end = self.rule.about.ending(promised) + &exemption.map(exempt::suffix).unwrap_or_default();
        let finding = Finding::deny(&RULE, pointer.clone(), with_field(pointer, message)).ending(&end);
        let policy = Some(Box::new(policy));
        let finding = Finding { policy, severity, fingerprint_value: value, ..finding };
        let finding = finding.and_elsewhere(|| Some(self.place()));
        let help = self.help(exemption, applies);
        if help.is_empty() { finding } else { finding.help(help) }
    }

    /// The time from which the rule denies, if a promotion sets one.
    fn promised(&self, status: PolicyStatus) -> Option<Timestamp> {
        let promotion = promotion(self.policy, self.rule, self.occasion.now)?;
        let stays_weaker =
            self.is_assumed || status == PolicyStatus::Unknown && self.rule.on_unknown != Action::Deny;
        (promotion.to == Action::Deny && !stays_weaker).then_some(promotion.at)
    }

    /// The action at admission today.
    fn action_at_admission(&self) -> Action {
        let action = action(self.policy, self.rule, Occasion { point: Point::Admission, ..self.occasion });
        if self.is_assumed { action.min(Action::Warn) } else { action }
    }

    /// In an audit: what admission does today.
    fn at_admission(&self, status: PolicyStatus, exemption: Option<&Exemption>) -> Option<AtAdmission> {
        if self.occasion.point != Point::Audit {
            return None;
        }
        let action = self.action_at_admission();
        let action = if status == PolicyStatus::Unknown { action.min(self.rule.on_unknown) } else { action };
        let warns = action == Action::Warn;
        Some(match (status, action, self.promised(status)) {
            (PolicyStatus::Exempt, _, Some(at)) if exemption.is_some_and(|it| it.expires_at <= at) => {
                AtAdmission::DeniesFrom { at, warns: false }
            }
            (PolicyStatus::Exempt, ..) => AtAdmission::Allows,
            (_, Action::Deny, _) => AtAdmission::Denies,
            (_, _, Some(at)) => AtAdmission::DeniesFrom { at, warns },
            (_, _, None) if warns => AtAdmission::Warns,
            (_, _, None) => AtAdmission::Allows,
        })
    }

    /// Where the rule stands in the policy.
    fn place(&self) -> Elsewhere {
        let name = self.policy.name.clone();
        let object = Reference { kind: &MEMORY_POLICY, namespace: String::new(), name };
        Elsewhere { object, pointer: self.rule.about.pointer.key("id"), label: "by this rule" }
    }

    fn help(&self, exemption: Option<&Exemption>, applies: &[String]) -> String {
        let about = &self.rule.about;
        let namespace = self.is_assumed.then(|| {
            let shown = plain_name(self.candidate.namespace);
            format!("Namespace {shown} is unknown; give its manifest or --namespace-labels NS:K=V")
        });
        let docs = about.docs.as_ref().map(|docs| format!("see {docs}"));
        let parts = [exemption.map(exempt::help), about.hint.clone(), docs, namespace];
        let applies = applies.iter().take(MAX_APPLIES).map(|words| format!("applies: {words}"));
        parts.into_iter().flatten().chain(applies).collect::<Vec<_>>().join("; ")
    }
}

/// The future promotion of a rule, which counts once the rule applies; `None` for a rule with its own action at admission,
/// or one that ends before.
pub fn promotion(policy: &Policy, rule: &Rule, now: Timestamp) -> Option<Promotion> {
    let promotion = policy.promote.filter(|_| rule.action.admission.is_none())?;
    let at = rule.during.from.map_or(promotion.at, |from| from.max(promotion.at));
    (now < at && rule.during.spans(at)).then_some(Promotion { at, ..promotion })
}

/// The action for a violation: the rule's own, else the policy's, which is stricter after the promotion. A rule whose
/// time has not come, or is over, has none.
fn action(policy: &Policy, rule: &Rule, occasion: Occasion<'_>) -> Action {
    let of_policy = || {
        let promoted =
            policy.promote.filter(|it| occasion.point == Point::Admission && occasion.now >= it.at);
        promoted.map_or_else(|| policy.actions.at(occasion.point), |it| it.to)
    };
    if !rule.during.has(occasion.now) {
        return Action::None;
    }
    rule.action.at(occasion.point).unwrap_or_else(of_policy)
}
