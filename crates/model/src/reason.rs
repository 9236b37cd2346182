//! The reason of a decision: one word of a closed set.

use memgate_primitives::named::named;

named! {
    /// The reason of a decision, in one word for metrics, logs and audit annotations.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Reason {
        /// No enabled family decides about the object.
        #[default]
        NotOurs = "not-ours",
        /// memgate does not decide about this operation or subresource.
        NotJudged = "not-judged",
        /// The pod or its namespace opted out by label.
        OptedOut = "opted-out",
        /// A mirror pod. The kubelet makes it from a file on its node.
        MirrorPod = "mirror-pod",
        /// The object is being deleted.
        Deleting = "deleting",
        /// The object does not have the form that its kind requires; the apiserver reports that.
        Malformed = "malformed",
        /// The JSON holds a string that is not Unicode text, a number that no double can hold, or a field of a pod twice;
        /// or a whole review cannot be read.
        Unreadable = "unreadable",
        /// The object, or its mutated form, is larger than the limits of memgate, or is large and there are too many others.
        OverLimit = "over-limit",
        /// The caller went away before the decision was complete. Never answered.
        Cancelled = "cancelled",
        /// The pod requires memory and no enabled family knows it.
        NotRecognised = "not-recognised",
        /// The agent claims no memory.
        NoMemory = "no-memory",
        /// A referenced object does not exist.
        ReferenceMissing = "reference-missing",
        /// The referenced memory resource is invalid.
        ReferenceInvalid = "reference-invalid",
        /// A referenced object does not exist yet, and the pod is refused for a moment to wait for it. Only the
        /// server sets this reason, never a decision.
        ReferencePending = "reference-pending",
        /// A referenced object could not be looked up.
        ReferenceUnknown = "reference-unknown",
        /// The container that would get the memory does not exist.
        NoContainer = "no-container",
        /// The pod already sets another value.
        Conflict = "conflict",
        /// The pod already has everything that memgate would add.
        Complete = "complete",
        /// Memory was injected.
        Injected = "injected",
        /// Defaults were written.
        Defaulted = "defaulted",
        /// A family resource was validated and is good, apart from warnings.
        Valid = "valid",
        /// A family resource was validated and is refused.
        Invalid = "invalid",
        /// A policy refuses what works.
        PolicyDenied = "policy-denied",
    }
}
