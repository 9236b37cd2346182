//! Why a decision is as it is: one word of a closed set.

/// Why a decision is as it is, in one word for metrics, logs and audit annotations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Nothing that any enabled family looks at.
    #[default]
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

/// Each reason with its stable name.
const NAMES: [(Reason, &str); 24] = [
    (Reason::NotOurs, "not-ours"),
    (Reason::NotJudged, "not-judged"),
    (Reason::OptedOut, "opted-out"),
    (Reason::MirrorPod, "mirror-pod"),
    (Reason::Deleting, "deleting"),
    (Reason::Malformed, "malformed"),
    (Reason::Unreadable, "unreadable"),
    (Reason::OverLimit, "over-limit"),
    (Reason::Cancelled, "cancelled"),
    (Reason::NotRecognised, "not-recognised"),
    (Reason::NoMemory, "no-memory"),
    (Reason::ReferenceMissing, "reference-missing"),
    (Reason::ReferenceInvalid, "reference-invalid"),
    (Reason::ReferencePending, "reference-pending"),
    (Reason::ReferenceUnknown, "reference-unknown"),
    (Reason::NoContainer, "no-container"),
    (Reason::Conflict, "conflict"),
    (Reason::Complete, "complete"),
    (Reason::Injected, "injected"),
    (Reason::Defaulted, "defaulted"),
    (Reason::Previewed, "previewed"),
    (Reason::Valid, "valid"),
    (Reason::Invalid, "invalid"),
    (Reason::PolicyDenied, "policy-denied"),
];

impl Reason {
    /// Every reason, for tables and tests.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(reason, _)| reason)
    }

    /// The stable name in metrics, logs and audit annotations.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.into_iter().find(|(reason, _)| *reason == self).map_or("", |(_, name)| name)
    }
}
