//! Decisions: everything that was found and is to be changed, and what could not be known.

use crate::model::edit::Edit;
use crate::model::event::PodEvent;
use crate::model::family::Family;
use crate::model::finding::{Finding, Phase, Severity};
use crate::model::snapshot::Reference;

/// Why a decision is as it is, in one word for metrics, logs and audit annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Nothing that any enabled family looks at.
    NotOurs,
    /// An operation or a subresource that memgate never looks at.
    NotJudged,
    /// The pod or its namespace opted out by label.
    OptedOut,
    /// A mirror pod: its true form is a file on a node.
    MirrorPod,
    /// The object is being deleted.
    Deleting,
    /// The object is not of the form that its kind asks for; the apiserver says so.
    Malformed,
    /// The JSON holds a string that is not Unicode text, or a number that no double can hold.
    Unreadable,
    /// The pod requires memory and no enabled family knows it.
    NotRecognised,
    /// The agent claims no memory.
    NoMemory,
    /// What is referred to does not exist.
    ReferenceMissing,
    /// The memory resource that is referred to is invalid.
    ReferenceInvalid,
    /// What is referred to could not be looked up.
    ReferenceUnknown,
    /// The container that would get the memory does not exist.
    NoContainer,
    /// The pod already says something else.
    Conflict,
    /// All that memgate would add is there already.
    Complete,
    /// Memory was injected.
    Injected,
    /// Defaults were written.
    Defaulted,
    /// The findings are those that the pods of a workload will get.
    Previewed,
    /// A family resource was validated and is good, apart from warnings.
    Valid,
    /// A family resource was validated and is refused.
    Invalid,
}

impl Reason {
    /// Every reason, for tables and tests.
    pub const ALL: [Self; 20] = [
        Self::NotOurs,
        Self::NotJudged,
        Self::OptedOut,
        Self::MirrorPod,
        Self::Deleting,
        Self::Malformed,
        Self::Unreadable,
        Self::NotRecognised,
        Self::NoMemory,
        Self::ReferenceMissing,
        Self::ReferenceInvalid,
        Self::ReferenceUnknown,
        Self::NoContainer,
        Self::Conflict,
        Self::Complete,
        Self::Injected,
        Self::Defaulted,
        Self::Previewed,
        Self::Valid,
        Self::Invalid,
    ];

    /// The stable name in metrics, logs and audit annotations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotOurs => "not-ours",
            Self::NotJudged => "not-judged",
            Self::OptedOut => "opted-out",
            Self::MirrorPod => "mirror-pod",
            Self::Deleting => "deleting",
            Self::Malformed => "malformed",
            Self::Unreadable => "unreadable",
            Self::NotRecognised => "not-recognised",
            Self::NoMemory => "no-memory",
            Self::ReferenceMissing => "reference-missing",
            Self::ReferenceInvalid => "reference-invalid",
            Self::ReferenceUnknown => "reference-unknown",
            Self::NoContainer => "no-container",
            Self::Conflict => "conflict",
            Self::Complete => "complete",
            Self::Injected => "injected",
            Self::Defaulted => "defaulted",
            Self::Previewed => "previewed",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
        }
    }
}

/// What is decided about one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Everything that is wrong, in document order.
    pub findings: Vec<Finding>,
    /// The changes, in the order in which they apply.
    pub edits: Vec<Edit>,
    /// Why, in one word.
    pub reason: Reason,
    /// Which of the two webhook calls reports the findings, but for those about an edit.
    pub phase: Phase,
    /// What the decision asked for and the snapshot could not answer. The server looks these up, lays the
    /// answers over the snapshot and decides again.
    pub unknown: Vec<Reference>,
    /// Whether the pod asked to be refused rather than started without its memory.
    pub required: bool,
    /// The Event about a pod that is admitted without its memory.
    pub event: Option<PodEvent>,
    /// The family that decided; `None` when the object does not concern any.
    pub family: Option<&'static Family>,
}

impl Decision {
    /// A decision without findings and edits.
    #[must_use]
    pub const fn pass(reason: Reason) -> Self {
        Self {
            findings: Vec::new(),
            edits: Vec::new(),
            reason,
            phase: Phase::Mutate,
            unknown: Vec::new(),
            required: false,
            event: None,
            family: None,
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
        self.findings.iter().all(|finding| finding.severity == Severity::Warn)
    }
}
