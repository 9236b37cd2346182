//! The finding codes that belong to no single family.

use memgate_model::codes::codes;

codes! { "memgate";
    /// An entry of a baseline whose finding no longer occurs, or occurs less often.
    BASELINE_FIXED = "baseline-fixed", NotFound;
    /// A URL of which clients read different hosts.
    HOST_AMBIGUOUS = "host-ambiguous", Invalid;
    /// A comment to ignore a finding that names a code that does not exist.
    IGNORE_UNKNOWN = "ignore-unknown", NotSupported;
    /// A comment that ignores a finding that does not occur.
    IGNORE_UNUSED = "ignore-unused", NotFound;
    /// A comment to ignore a finding that does not give a reason.
    IGNORE_WITHOUT_REASON = "ignore-without-reason", Required;
    /// A pod that an apiserver would refuse with its memory.
    INVALID_WITH_MEMORY = "invalid-with-memory", Invalid;
    /// A pod that requires its memory and is not recognised by any enabled family.
    POD_NOT_RECOGNISED = "pod-not-recognised", Invalid;
    /// A sidecar that holds a credential of the agent's memory.
    POD_CREDENTIAL_SHARED = "pod-credential-shared", Conflict;
    /// A container of a memory that no size lets into its namespace.
    POD_RESOURCES = "pod-resources", Invalid;
    /// A kind or group in a file that is nearly one that memgate checks.
    KIND_MISSPELT = "kind-misspelt", NotSupported;
    /// A document in a file that is not a Kubernetes object.
    NOT_AN_OBJECT = "not-an-object", Invalid;
    /// An object that occurs twice among the files.
    OBJECT_REPEATED = "object-repeated", Duplicate;
    /// A reference to memory that is being deleted.
    REFERENCE_TERMINATING = "reference-terminating", Invalid;
    /// An object of state whose name or namespace cannot be read.
    STATE_UNREADABLE = "state-unreadable", TypeInvalid;
    /// A file of state that decisions do not use.
    STATE_UNUSED = "state-unused", NotFound;
    /// An object that is too large to be read, or whose patch would be too large.
    OVER_LIMIT = "over-limit", Invalid;
    /// A pod or workload whose form or metadata an apiserver refuses.
    SCHEMA = "schema", Invalid;
    /// Values in files that a later step fills in.
    VALUE_UNKNOWN = "value-unknown", NotSupported;
    /// A version of a kind that its definition does not serve.
    VERSION_UNKNOWN = "version-unknown", NotSupported;
}
