//! The finding codes of the family.

use memgate_model::codes::codes;

codes! { "orloj";
    /// A value that violates only the CRD's schema, or a rule on metadata.
    SCHEMA = "schema", Invalid;
    /// Provider `http` without an endpoint.
    HTTP_ENDPOINT_REQUIRED = "http-endpoint-required", Required;
    /// Provider `pgvector` without an endpoint.
    PGVECTOR_ENDPOINT_REQUIRED = "pgvector-endpoint-required", Required;
    /// Provider `pgvector` without a ModelEndpoint.
    PGVECTOR_EMBEDDING_REQUIRED = "pgvector-embedding-required", Required;
    /// An endpoint in addition to a Secret that holds one.
    ENDPOINT_EXCLUSIVE = "endpoint-exclusive", Conflict;
    /// An endpoint of provider `http` that is not a URL.
    HTTP_ENDPOINT_INVALID = "http-endpoint-invalid", Invalid;
    /// An endpoint at an address that Orloj does not dial.
    HTTP_ENDPOINT_BLOCKED = "http-endpoint-blocked", Invalid;
    /// An endpoint of provider `pgvector` that is not a connection string.
    PGVECTOR_ENDPOINT_INVALID = "pgvector-endpoint-invalid", Invalid;
    /// A reference to an invalid name.
    REF_INVALID = "ref-invalid", Invalid;
    /// A name that Orloj's API reserves.
    NAME_RESERVED = "name-reserved", Invalid;
    /// A provider that Orloj does not include.
    PROVIDER_UNKNOWN = "provider-unknown", NotSupported;
    /// A custom provider without an endpoint.
    CUSTOM_ENDPOINT_MISSING = "custom-endpoint-missing", Required;
    /// A custom vector database without a ModelEndpoint.
    CUSTOM_EMBEDDING_MISSING = "custom-embedding-missing", Required;
    /// A ModelEndpoint that does not exist.
    EMBEDDING_MISSING = "embedding-missing", NotFound;
    /// A Secret that does not exist.
    SECRET_MISSING = "secret-missing", NotFound;
    /// A Secret without the key that Orloj reads.
    SECRET_KEY_MISSING = "secret-key-missing", NotFound;
    /// A ModelEndpoint that cannot make embeddings.
    EMBEDDING_UNUSABLE = "embedding-unusable", Invalid;
    /// An endpoint with a password in it.
    INLINE_CREDENTIAL = "inline-credential", Invalid;
    /// A Secret that is not used.
    AUTH_IGNORED = "auth-ignored", Conflict;
    /// An endpoint that the in-memory provider does not use.
    FIELD_IGNORED = "field-ignored", Conflict;
    /// A reference with a key that only memgate understands.
    SECRET_KEY_SUFFIX = "secret-key-suffix", Invalid;
    /// A token that leaves the cluster over plain http.
    CLEARTEXT_TOKEN = "cleartext-token", Invalid;
    /// A database address that is the worker's own machine.
    PGVECTOR_LOOPBACK = "pgvector-loopback", Invalid;
    /// Two Memories that use the same table.
    SHARED_TABLE = "shared-table", Conflict;
    /// An object that belongs to another Orloj namespace.
    TARGET_NAMESPACE = "target-namespace", Conflict;
    /// A field that the schema does not have.
    UNKNOWN_FIELD = "unknown-field", Invalid;
    /// The deletion of a Memory that Agents use.
    MEMORY_IN_USE = "memory-in-use", Conflict;
    /// Operations without a Memory to use them on.
    AGENT_ALLOW_NEEDS_REF = "agent-allow-needs-ref", Required;
    /// An operation that does not exist.
    AGENT_ALLOW_INVALID = "agent-allow-invalid", NotSupported;
    /// A reference to an invalid name of a Memory.
    AGENT_REF_INVALID = "agent-ref-invalid", Invalid;
    /// An Agent whose Memory does not exist.
    AGENT_MEMORY_MISSING = "agent-memory-missing", NotFound;
    /// An Agent whose Memory has failed.
    AGENT_MEMORY_FAILING = "agent-memory-failing", Invalid;
    /// An Agent that is not granted any operation on its Memory.
    AGENT_ALLOW_EMPTY = "agent-allow-empty", Required;
    /// An operation that is granted twice.
    AGENT_ALLOW_DUPLICATE = "agent-allow-duplicate", Conflict;
    /// A field that has moved to the Memory.
    AGENT_LEGACY_FIELD = "agent-legacy-field", Invalid;
    /// A memory tool among the Agent's own tools.
    AGENT_TOOL_LISTED = "agent-tool-listed", Conflict;
    /// A ModelEndpoint without a model.
    MODELENDPOINT_MODEL_REQUIRED = "modelendpoint-model-required", Required;
    /// The deletion of a ModelEndpoint that Memories use.
    MODELENDPOINT_IN_USE = "modelendpoint-in-use", Conflict;
    /// A pod without the container that gets the memory.
    POD_CONTAINER_MISSING = "pod-container-missing", NotFound;
    /// A pod whose label fits several Agents.
    POD_AGENT_AMBIGUOUS = "pod-agent-ambiguous", Conflict;
    /// A pod whose Agent or memory is claimed by several namespaces.
    POD_AMBIGUOUS = "pod-ambiguous", Conflict;
    /// A pod whose Agent does not exist.
    POD_AGENT_MISSING = "pod-agent-missing", NotFound;
    /// A pod whose Agent is granted an operation that does not exist.
    POD_ALLOW_INVALID = "pod-allow-invalid", Invalid;
    /// A pod whose Memory does not exist.
    POD_MEMORY_MISSING = "pod-memory-missing", NotFound;
    /// A pod outside the namespaces in which Orloj runs its Jobs.
    POD_FOREIGN_NAMESPACE = "pod-foreign-namespace", Conflict;
    /// A pod that requires memory although its Agent uses none.
    POD_MEMORY_NONE = "pod-memory-none", Required;
    /// A password that is not copied into a pod.
    POD_ENDPOINT_WITHHELD = "pod-endpoint-withheld", Invalid;
    /// A Secret that is not in the pod's namespace.
    POD_SECRET_NAMESPACE = "pod-secret-namespace", NotFound;
    /// A Secret to which an object of another namespace may not give pods access.
    POD_SECRET_FOREIGN = "pod-secret-foreign", Invalid;
    /// A pod that sets a variable to a value other than its Memory's.
    POD_ENV_KEPT = "pod-env-kept", Conflict;
    /// A pod whose Agent or Memory could not be looked up.
    LOOKUP_FAILED = "lookup-failed", Unavailable;
    /// An unsupported value of the inject label.
    INJECT_LABEL_UNKNOWN = "inject-label-unknown", NotSupported;
}
