//! Why a decision is as it is: one word of a closed set.

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
    /// The object, or what it would become, is larger than what memgate reads and writes.
    OverLimit,
    /// The caller went away before the decision was complete. Never answered.
    Cancelled,
    /// The pod requires memory and no enabled family knows it.
    NotRecognised,
    /// The agent claims no memory.
    NoMemory,
    /// What is referred to does not exist.
    ReferenceMissing,
    /// The memory resource that is referred to is invalid.
    ReferenceInvalid,
    /// What is referred to does not exist yet, and the pod is refused for a moment to wait for it. Only a
    /// server says so, never a decision.
    ReferencePending,
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
    /// A policy refuses what works.
    PolicyDenied,
}

impl Reason {
    /// Every reason, for tables and tests.
    pub const ALL: [Self; 24] = [
        Self::NotOurs,
        Self::NotJudged,
        Self::OptedOut,
        Self::MirrorPod,
        Self::Deleting,
        Self::Malformed,
        Self::Unreadable,
        Self::OverLimit,
        Self::Cancelled,
        Self::NotRecognised,
        Self::NoMemory,
        Self::ReferenceMissing,
        Self::ReferenceInvalid,
        Self::ReferencePending,
        Self::ReferenceUnknown,
        Self::NoContainer,
        Self::Conflict,
        Self::Complete,
        Self::Injected,
        Self::Defaulted,
        Self::Previewed,
        Self::Valid,
        Self::Invalid,
        Self::PolicyDenied,
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
            Self::OverLimit => "over-limit",
            Self::Cancelled => "cancelled",
            Self::NotRecognised => "not-recognised",
            Self::NoMemory => "no-memory",
            Self::ReferenceMissing => "reference-missing",
            Self::ReferenceInvalid => "reference-invalid",
            Self::ReferencePending => "reference-pending",
            Self::ReferenceUnknown => "reference-unknown",
            Self::NoContainer => "no-container",
            Self::Conflict => "conflict",
            Self::Complete => "complete",
            Self::Injected => "injected",
            Self::Defaulted => "defaulted",
            Self::Previewed => "previewed",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::PolicyDenied => "policy-denied",
        }
    }
}
