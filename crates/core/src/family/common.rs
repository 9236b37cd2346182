//! The finding codes that do not belong to a family.

use memgate_model::codes::codes;

codes! { "memgate";
    /// An entry of a baseline whose finding no longer occurs, or occurs less often.
    BASELINE_FIXED = "baseline-fixed", NotFound;
    /// A URL of which clients read different hosts.
    HOST_AMBIGUOUS = "host-ambiguous", Invalid;
    /// A comment that would ignore a finding, but names a code that does not exist.
    IGNORE_UNKNOWN = "ignore-unknown", NotSupported;
    /// A comment that ignores a finding that does not occur.
    IGNORE_UNUSED = "ignore-unused", NotFound;
    /// A comment that would ignore a finding, and does not say why.
    IGNORE_WITHOUT_REASON = "ignore-without-reason", Required;
    /// A pod that requires its memory and is not recognised by any enabled family.
    POD_NOT_RECOGNISED = "pod-not-recognised", Invalid;
    /// A kind or group in a file that is nearly one that memgate checks.
    KIND_MISSPELT = "kind-misspelt", NotSupported;
    /// A document in a file that is not a Kubernetes object.
    NOT_AN_OBJECT = "not-an-object", Invalid;
    /// An object that occurs twice among the files.
    OBJECT_REPEATED = "object-repeated", Duplicate;
    /// A file of state that decisions do not use.
    STATE_UNUSED = "state-unused", NotFound;
    /// An object that is too large to be read, or whose patch would be too large.
    OVER_LIMIT = "over-limit", Invalid;
    /// A pod or workload that an apiserver refuses for its form or its metadata.
    SCHEMA = "schema", Invalid;
    /// A version of a kind that its definition does not serve.
    VERSION_UNKNOWN = "version-unknown", NotSupported;
}
