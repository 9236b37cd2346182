//! The finding codes of the kagent family.

use memgate_model::codes::codes;

codes! { "kagent";
    /// A value that violates only the CRD's schema, or a rule on metadata.
    SCHEMA = "schema", Invalid;
    /// A memory section without the name of a ModelConfig.
    MEMORY_MODEL_REQUIRED = "memory-model-required", Required;
    /// A name of a ModelConfig that cannot exist.
    MEMORY_MODEL_NAME = "memory-model-name", Invalid;
    /// A number of days that kagent cannot use.
    TTL_DAYS = "ttl-days", Invalid;
    /// A field of the wrong JSON type.
    FIELD_TYPE = "field-type", TypeInvalid;
    /// A field that the schema does not have.
    UNKNOWN_FIELD = "unknown-field", Invalid;
    /// An embedder whose provider has no embeddings in kagent.
    EMBEDDER_PROVIDER = "embedder-provider", NotSupported;
    /// An embedder without a field that embeddings need.
    EMBEDDER_INCOMPLETE = "embedder-incomplete", Required;
    /// An embedder that names a chat model.
    EMBEDDER_CHAT_MODEL = "embedder-chat-model", Invalid;
    /// An embedder whose vectors do not have 768 values.
    EMBEDDER_DIMENSIONS = "embedder-dimensions", Invalid;
    /// A setting of an embedder that embedding requests do not use.
    EMBEDDER_SETTING_IGNORED = "embedder-setting-ignored", Conflict;
    /// An endpoint with a user name or password in it.
    ENDPOINT_CREDENTIALS = "endpoint-credentials", Invalid;
    /// A Secret that does not exist.
    SECRET_MISSING = "secret-missing", NotFound;
    /// A Secret without the required key.
    SECRET_KEY_MISSING = "secret-key-missing", NotFound;
    /// A ConfigMap of an endpoint, or its key, that does not exist.
    CONFIG_MAP_MISSING = "config-map-missing", NotFound;
    /// A harness that does not exist.
    HARNESS_NOT_FOUND = "harness-not-found", NotFound;
    /// A change of the model, after which stored memories are not found.
    EMBEDDER_CHANGED = "embedder-changed", Conflict;
    /// A change of an embedder that running agents do not take.
    EMBEDDER_STALE = "embedder-stale", Conflict;
    /// The deletion of an embedder.
    EMBEDDER_DELETED = "embedder-deleted", Conflict;
    /// A memory section whose ModelConfig does not exist.
    EMBEDDER_NOT_FOUND = "embedder-not-found", NotFound;
    /// A memory section whose ModelConfig cannot embed.
    EMBEDDER_UNUSABLE = "embedder-unusable", Invalid;
    /// A ModelConfig that is both the chat model and the embedder.
    EMBEDDER_IS_CHAT_MODEL = "embedder-is-chat-model", Conflict;
    /// A chat model and an embedder that need two values of one setting.
    EMBEDDER_CREDENTIAL_CONFLICT = "embedder-credential-conflict", Conflict;
    /// A provider that embeds with the other runtime only.
    EMBEDDER_RUNTIME = "embedder-runtime", Conflict;
    /// A memory section that this type of agent ignores.
    MEMORY_IGNORED = "memory-ignored", Conflict;
    /// Settings of kagent without vectors.
    VECTORS_OFF = "vectors-off", Conflict;
    /// Memory of 0.x where kagent is 1.x.
    LINE_REMOVED = "line-removed", NotSupported;
    /// A version that was served in another group before the release.
    GROUP_MOVED = "group-moved", NotSupported;
    /// A Memory, which no kagent since 0.7 reads.
    MEMORY_KIND_UNREAD = "memory-kind-unread", NotSupported;
    /// A list of Memories, which no kagent since 0.7 reads.
    AGENT_MEMORY_UNREAD = "agent-memory-unread", NotSupported;
    /// The deletion of an agent whose memories stay.
    MEMORIES_STAY = "memories-stay", Conflict;
    /// A compaction that the runtime ignores.
    COMPACTION_IGNORED = "compaction-ignored", Conflict;
    /// One of two settings that belong together.
    COMPACTION_PAIR = "compaction-pair", Required;
    /// A summarizer whose ModelConfig does not exist.
    SUMMARIZER_NOT_FOUND = "summarizer-not-found", NotFound;
}
