//! Decisions: everything that was found and is to be changed, and what could not be known.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::edit::Edit;
use crate::model::event::PodEvent;
use crate::model::family::Family;
use crate::model::finding::{Finding, Phase, Severity};
use crate::model::object::Reference;
use crate::model::policy_rule::PolicyRule;
use crate::model::reason::Reason;

/// What is decided about one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What is wrong, in document order: everything, or of very much what is told of it.
    pub findings: Vec<Finding>,
    /// How much more is wrong than what is told.
    pub untold: Untold,
    /// The changes, in the order in which they apply.
    pub edits: Vec<Edit>,
    /// Why, in one word.
    pub reason: Reason,
    /// Which of the two webhook calls reports the findings, but for those about an edit.
    pub phase: Phase,
    /// What the decision asked for and the snapshot could not answer. The server looks these up, lays the
    /// answers over the snapshot and decides again.
    pub unknown: Vec<Reference>,
    /// What the pod's memory depends on and does not exist, perhaps because it is still on its way. Where it
    /// may turn up under several kinds, all of them.
    pub missing: Vec<Reference>,
    /// Whether a controller made the pod that will make it again if it is refused.
    pub from_controller: bool,
    /// Whether the pod asked to be refused rather than started without its memory.
    pub required: bool,
    /// The Events about a pod that is admitted without its memory: at most one for each family.
    pub events: Vec<PodEvent>,
    /// The policies that judged the object, by name.
    pub policies: Vec<String>,
    /// The exemptions that counted, as `namespace/name`.
    pub exemptions: BTreeSet<String>,
    /// The rules of policies that are broken, exempted or not, told or not.
    pub fired: Vec<Arc<PolicyRule>>,
    /// The families that decided, in their order; empty when the object does not concern any.
    pub families: Vec<FamilyShare>,
}

/// The findings about an object that are counted and not told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Untold {
    /// How many of them refuse the request.
    pub denials: usize,
    /// How many of them warn.
    pub warnings: usize,
}

impl Untold {
    /// Both together.
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
    #[must_use]
    pub const fn pass(reason: Reason) -> Self {
        Self {
            findings: Vec::new(),
            untold: Untold { denials: 0, warnings: 0 },
            edits: Vec::new(),
            reason,
            phase: Phase::Mutate,
            unknown: Vec::new(),
            missing: Vec::new(),
            from_controller: false,
            required: false,
            events: Vec::new(),
            policies: Vec::new(),
            exemptions: BTreeSet::new(),
            fired: Vec::new(),
            families: Vec::new(),
        }
    }

    /// The findings that one of the two webhook calls reports.
    #[must_use]
    pub fn findings_for(&self, phase: Phase) -> Vec<&Finding> {
        let call = |finding: &Finding| if finding.on_rewrite { Phase::Mutate } else { self.phase };
        self.findings.iter().filter(|finding| call(finding) == phase).collect()
    }

    /// Whether the request is allowed: no finding denies it.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Deny)
    }
}
