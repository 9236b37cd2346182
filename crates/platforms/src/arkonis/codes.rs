//! The finding codes of the arkonis family.

use memgate_model::codes::codes;

codes! { "arkonis";
    /// A value that violates only the CRD's schema, or a rule on metadata.
    SCHEMA = "schema", Invalid;
    /// Backend `redis` without the section.
    REDIS_REQUIRED = "redis-required", Required;
    /// A Redis section whose Secret has no name.
    REDIS_SECRET_REQUIRED = "redis-secret-required", Required;
    /// Backend `vector-store` without the section.
    VECTOR_STORE_REQUIRED = "vector-store-required", Required;
    /// A vector store without an endpoint.
    ENDPOINT_REQUIRED = "endpoint-required", Required;
    /// A `secretRef` of a vector store without a name.
    VECTOR_SECRET_NAME = "vector-secret-name", Required;
    /// An invalid name of a Secret.
    SECRET_NAME_INVALID = "secret-name-invalid", Invalid;
    /// No backend, or no spec at all.
    BACKEND_REQUIRED = "backend-required", Required;
    /// A backend that does not exist.
    BACKEND_UNKNOWN = "backend-unknown", NotSupported;
    /// A vector store without a provider.
    PROVIDER_REQUIRED = "provider-required", Required;
    /// A provider that does not exist.
    PROVIDER_UNKNOWN = "provider-unknown", NotSupported;
    /// A `memoryRef` without a name.
    MEMORY_REF_NAME = "memory-ref-name", Required;
    /// A field of the wrong JSON type.
    FIELD_TYPE = "field-type", TypeInvalid;
    /// A field that the schema does not have.
    UNKNOWN_FIELD = "unknown-field", Invalid;
    /// A `memoryBackend` that does not exist.
    MEMORY_BACKEND_UNKNOWN = "memory-backend-unknown", NotSupported;
    /// A section that the backend does not use.
    SECTION_UNUSED = "section-unused", Conflict;
    /// An endpoint that is not a URL.
    ENDPOINT_NOT_URL = "endpoint-not-url", Invalid;
    /// An endpoint with a user name or password in it.
    ENDPOINT_CREDENTIALS = "endpoint-credentials", Invalid;
    /// A hosted vector database without a Secret.
    HOSTED_WITHOUT_SECRET = "hosted-without-secret", Required;
    /// An empty collection.
    COLLECTION_EMPTY = "collection-empty", Invalid;
    /// A Secret that does not exist.
    SECRET_MISSING = "secret-missing", NotFound;
    /// A Secret without the required key.
    SECRET_KEY_MISSING = "secret-key-missing", NotFound;
    /// A change to a memory that running agents use.
    IN_USE_CHANGED = "in-use-changed", Conflict;
    /// The deletion of a memory that agents use.
    IN_USE_DELETED = "in-use-deleted", Conflict;
    /// A negative number, which means 0.
    NUMBER_NEGATIVE = "number-negative", Invalid;
    /// A value that only older releases of the successor take.
    SWARM_OLDER_VALUE = "swarm-older-value", NotSupported;
    /// A vector store of the successor without an embedding model.
    EMBEDDING_MISSING = "embedding-missing", Required;
    /// A `memoryRef.name` that cannot be the name of a memory.
    MEMORY_REF_UNUSABLE = "memory-ref-unusable", Invalid;
    /// An agent whose memory does not exist.
    MEMORY_NOT_FOUND = "memory-not-found", NotFound;
    /// An agent whose memory is invalid.
    MEMORY_INVALID = "memory-invalid", Invalid;
    /// An agent whose settings do not exist.
    SETTINGS_NOT_FOUND = "settings-not-found", NotFound;
    /// Settings that name a backend for an agent without memory.
    SETTINGS_WITHOUT_MEMORY = "settings-without-memory", Conflict;
    /// Settings that name a backend other than the memory's.
    SETTINGS_CONFLICT = "settings-conflict", Conflict;
    /// Settings that name a durable backend for agents without memory.
    DURABLE_BACKEND = "durable-backend", Conflict;
    /// An apiVersion that no apiserver serves.
    API_VERSION_NOT_SERVED = "api-version-not-served", NotSupported;
    /// A pod whose agent does not exist.
    POD_AGENT_NOT_FOUND = "pod-agent-not-found", NotFound;
    /// A pod whose memory does not exist.
    POD_MEMORY_NOT_FOUND = "pod-memory-not-found", NotFound;
    /// A pod whose memory is invalid.
    POD_MEMORY_INVALID = "pod-memory-invalid", Invalid;
    /// A pod without the container that gets the memory.
    POD_NO_AGENT_CONTAINER = "pod-no-agent-container", NotFound;
    /// A pod that sets a variable to a value other than its memory's.
    POD_ENV_CONFLICT = "pod-env-conflict", Conflict;
    /// A pod that requires memory although its agent claims none.
    AGENT_WITHOUT_MEMORY = "agent-without-memory", Required;
    /// A pod whose agent or memory could not be looked up.
    LOOKUP_FAILED = "lookup-failed", Unavailable;
    /// An unsupported value of the inject label.
    INJECT_LABEL_UNKNOWN = "inject-label-unknown", NotSupported;
}
