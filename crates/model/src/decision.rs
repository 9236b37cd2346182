//! Decisions: findings, edits, and references to objects that are not known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::edit::Edit;
use crate::event::PodEvent;
use crate::family::Family;
use crate::finding::{Code, Finding, Severity};
use crate::object::Reference;
use crate::policy_rule::{Counts, PolicyRule, RuleResult};
use crate::reason::Reason;
use memgate_primitives::review_path::Phase;

/// The decision about one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// The findings in document order. Of a large number, only those that are reported.
    pub findings: Vec<Finding>,
    /// How many more findings there are.
    pub not_shown: NotShown,
    /// The changes, in the order in which they apply.
    pub edits: Vec<Edit>,
    /// The reason.
    pub reason: Reason,
    /// The webhook call that gives the verdict, and reports the findings but for those about an edit: the mutating call
    /// about a pod, the validating one about any other object.
    pub phase: Phase,
    /// Objects that the decision needs and the snapshot does not hold. The server looks them up, overlays the
    /// answers on the snapshot and decides again.
    pub unknown: Vec<Reference>,
    /// Missing objects that the pod's memory depends on and that may still be created. An object that could
    /// have several kinds is listed under each of them.
    pub missing: Vec<Reference>,
    /// Whether a controller made the pod. It makes the pod again if the pod is refused.
    pub from_controller: bool,
    /// What a pod without a name is known by.
    pub origin: Option<PodOrigin>,
    /// Whether the pod asked to be refused rather than started without its memory.
    pub required: bool,
    /// Why a pod gets no memory, or not all of it, unless that refuses it: the code of the first finding that says so.
    pub unmet: Option<&'static Code>,
    /// The Events about a pod that is admitted without its memory: at most one for each family.
    pub events: Vec<PodEvent>,
    /// The policies that judged the object, by name.
    pub policies: Vec<String>,
    /// The number of findings of each policy by its name, with those that are not reported.
    pub counts: BTreeMap<String, Counts>,
    /// The exemptions that counted, as `namespace/name`.
    pub exemptions: BTreeSet<String>,
    /// What the rules of policies made of the object; empty unless the occasion asks for it.
    pub rules: Vec<(Arc<PolicyRule>, RuleResult)>,
    /// The families that decided, in their order; empty when the object does not concern any.
    pub families: Vec<FamilyShare>,
    /// How many steps it took, and how many objects of the state it looked at.
    pub steps: u32,
}

/// What a pod without a name is known by, for the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodOrigin {
    /// The prefix of the name that the apiserver will give it; empty when it has none.
    pub generate_name: String,
    /// The controller that owns it, as `KIND/NAME`.
    pub owner: Option<String>,
}

/// How many findings about an object are counted and not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NotShown {
    /// The number of findings that refuse the request.
    pub denials: usize,
    /// The number of findings that warn.
    pub warnings: usize,
}

impl NotShown {
    /// The sum of two counts.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { denials: self.denials + other.denials, warnings: self.warnings + other.warnings }
    }
}

/// A family that decided about an object, and how much of the patch is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FamilyShare {
    /// The family.
    pub family: &'static Family,
    /// The number of its edits.
    pub edits: usize,
}

impl Decision {
    /// A decision without findings and edits.
    pub fn pass(reason: Reason) -> Self {
        Self { reason, ..Self::default() }
    }

    /// The findings that one of the two webhook calls reports.
    pub fn findings_for(&self, phase: Phase) -> Vec<&Finding> {
        let call = |finding: &Finding| if finding.on_rewrite { Phase::Mutate } else { self.phase };
        self.findings.iter().filter(|finding| call(finding) == phase).collect()
    }

    /// Whether a pod that exists would get memory if it was made today.
    pub fn adds_memory(&self) -> bool {
        self.allowed() && self.edits.iter().any(Edit::gives_memory)
    }

    /// Whether the request is allowed: no finding denies it.
    pub fn allowed(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Deny)
    }
}
