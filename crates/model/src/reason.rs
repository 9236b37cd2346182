//! The reason of a decision: one word of a closed set.

/// The reason of a decision, in one word for metrics, logs and audit annotations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No enabled family decides about the object.
    #[default]
    NotOurs,
    /// memgate does not decide about this operation or subresource.
    NotJudged,
    /// The pod or its namespace opted out by label.
    OptedOut,
    /// A mirror pod. The kubelet makes it from a file on its node.
    MirrorPod,
    /// The object is being deleted.
    Deleting,
    /// The object does not have the form that its kind requires; the apiserver reports that.
    Malformed,
    /// The JSON holds a string that is not Unicode text, or a number that no double can hold.
    Unreadable,
    /// The object, or its mutated form, is larger than the limits of memgate.
    OverLimit,
    /// The caller went away before the decision was complete. Never answered.
    Cancelled,
    /// The pod requires memory and no enabled family knows it.
    NotRecognised,
    /// The agent claims no memory.
    NoMemory,
    /// A referenced object does not exist.
    ReferenceMissing,
    /// The referenced memory resource is invalid.
    ReferenceInvalid,
    /// A referenced object does not exist yet, and the pod is refused for a moment to wait for it. Only the
    /// server sets this reason, never a decision.
    ReferencePending,
    /// A referenced object could not be looked up.
    ReferenceUnknown,
    /// The container that would get the memory does not exist.
    NoContainer,
    /// The pod already sets another value.
    Conflict,
    /// The pod already has everything that memgate would add.
    Complete,
    /// Memory was injected.
    Injected,
    /// Defaults were written.
    Defaulted,
    /// The findings are those that the workload's pods will get.
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
    pub fn name(self) -> &'static str {
        NAMES.into_iter().find(|(reason, _)| *reason == self).map_or("", |(_, name)| name)
    }
}
