//! The finding codes that belong to no family.

use crate::model::codes::codes;

codes! { "memgate";
    /// An entry of a baseline that occurs no longer, or less often.
    BASELINE_FIXED = "baseline-fixed", NotFound;
    /// A comment that would ignore a finding, and names no code that exists.
    IGNORE_UNKNOWN = "ignore-unknown", NotSupported;
    /// A comment that ignores a finding that is not there.
    IGNORE_UNUSED = "ignore-unused", NotFound;
    /// A comment that would ignore a finding, and does not say why.
    IGNORE_WITHOUT_REASON = "ignore-without-reason", Required;
    /// A pod that requires its memory and is not recognised by any enabled family.
    POD_NOT_RECOGNISED = "pod-not-recognised", Invalid;
    /// A kind or group in a file that is nearly one that memgate checks.
    KIND_MISSPELT = "kind-misspelt", NotSupported;
    /// A document in a file that is no Kubernetes object.
    NOT_AN_OBJECT = "not-an-object", Invalid;
    /// An object that stands twice among the files.
    OBJECT_REPEATED = "object-repeated", Duplicate;
    /// A file of state that holds nothing at which decisions look.
    STATE_UNUSED = "state-unused", NotFound;
    /// An object that is larger than what memgate reads, or whose patch would be.
    OVER_LIMIT = "over-limit", Invalid;
    /// A pod or workload that no apiserver takes, for its form or its metadata.
    SCHEMA = "schema", Invalid;
    /// A version of a kind that its definition does not serve.
    VERSION_UNKNOWN = "version-unknown", NotSupported;
}
