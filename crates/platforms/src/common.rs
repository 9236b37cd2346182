//! The finding codes that belong to no single family.

use memgate_model::codes::codes;

codes! { "memgate";
    /// A URL of which clients read different hosts.
    HOST_AMBIGUOUS = "host-ambiguous", Invalid;
    /// A comment to ignore a finding that names a code that does not exist.
    IGNORE_UNKNOWN = "ignore-unknown", NotSupported;
    /// A comment to ignore a finding that does not give a reason.
    IGNORE_WITHOUT_REASON = "ignore-without-reason", Required;
    /// A pod that an apiserver would refuse with its memory.
    INVALID_WITH_MEMORY = "invalid-with-memory", Invalid;
    /// A part of what memgate added to a pod, which another webhook dropped.
    POD_PART_LOST = "pod-part-lost", Invalid;
    /// Another container on the port of the memory sidecar.
    POD_PORT_CLASH = "pod-port-clash", Conflict;
    /// A memory sidecar that never ends, for which the pod waits.
    POD_SIDECAR_BLOCKS = "pod-sidecar-blocks", Invalid;
    /// A volume of memory that cannot be written.
    POD_VOLUME_READ_ONLY = "pod-volume-read-only", Invalid;
    /// A pod on nodes for which the image of its memory may not exist.
    POD_ARCH = "pod-arch", NotSupported;
    /// A pod that does not find its memory, since it does not ask the cluster's DNS.
    POD_DNS = "pod-dns", Conflict;
    /// A variable of memory that uses one which is defined behind it.
    POD_ENV_ORDER = "pod-env-order", Conflict;
    /// A proxy that also gets the requests to memory.
    POD_PROXY = "pod-proxy", Conflict;
    /// A pod on Windows, to which its memory would add parts that exist for Linux only.
    POD_WINDOWS = "pod-windows", NotSupported;
    /// A pod that requires its memory and is not recognised by any enabled family.
    POD_NOT_RECOGNISED = "pod-not-recognised", Invalid;
    /// A pod in which an init container that waits for memory has no network.
    POD_WAIT_NO_NETWORK = "pod-wait-no-network", Invalid;
    /// A sidecar that holds a credential of the agent's memory.
    POD_CREDENTIAL_SHARED = "pod-credential-shared", Conflict;
    /// A container of a memory that no size lets into its namespace.
    POD_RESOURCES = "pod-resources", Invalid;
    /// A pod template of an agent in an object of an unknown kind.
    POD_TEMPLATE_UNREAD = "pod-template-unread", NotSupported;
    /// A kind or group in a file that is nearly one that memgate checks.
    KIND_MISSPELT = "kind-misspelt", NotSupported;
    /// A name that a build follows and that leads nowhere.
    KUSTOMIZATION_INVALID = "kustomization-invalid", Invalid;
    /// A document that a branch hides from its check.
    NOT_JUDGED = "not-judged", NotSupported;
    /// A document in a file that is not a Kubernetes object.
    NOT_AN_OBJECT = "not-an-object", Invalid;
    /// An object that occurs twice among the files.
    OBJECT_REPEATED = "object-repeated", Duplicate;
    /// A reference to memory that is being deleted.
    REFERENCE_TERMINATING = "reference-terminating", Invalid;
    /// An answer of a server that hears nothing from the apiserver.
    STATE_AGE = "state-age", NotSupported;
    /// An object of state whose name or namespace cannot be read.
    STATE_UNREADABLE = "state-unreadable", TypeInvalid;
    /// An object that is too large to be read, or whose patch would be too large.
    OVER_LIMIT = "over-limit", Invalid;
    /// A pod or workload whose form or metadata an apiserver refuses.
    SCHEMA = "schema", Invalid;
    /// Values in files that a later step fills in.
    VALUE_UNKNOWN = "value-unknown", NotSupported;
    /// A version of a kind that its definition does not serve.
    VERSION_UNKNOWN = "version-unknown", NotSupported;
}

/// What the judge does to a new pod, as its messages end. A pod that exists is not changed, so that readers put other words
/// in this place.
pub const PUT_BACK: &str = "put back; another webhook dropped it";

/// The same of an init container.
pub const TAKEN_OUT: &str = "it is taken out";
