//! The finding codes of the sympozium family.

use memgate_model::codes::codes;

codes! { "sympozium";
    /// A value that violates only the CRD's schema, or a rule on metadata.
    SCHEMA = "schema", Invalid;
    /// A field of the wrong JSON type.
    TYPE_INVALID = "type-invalid", TypeInvalid;
    /// A field name that is likely a misspelling.
    UNKNOWN_FIELD = "unknown-field", Invalid;
    /// A field that the CRD's schema requires.
    CRD_REQUIRED = "crd-required", Required;
    /// A visibility that does not exist.
    VISIBILITY_UNSUPPORTED = "visibility-unsupported", NotSupported;
    /// An access that does not exist.
    ACCESS_UNSUPPORTED = "access-unsupported", NotSupported;
    /// An access rule without a config.
    ACCESS_CONFIG_REQUIRED = "access-config-required", Required;
    /// An access rule whose two name fields differ.
    ACCESS_CONFIG_CONFLICT = "access-config-conflict", Conflict;
    /// An access rule for a config that does not exist.
    ACCESS_CONFIG_UNKNOWN = "access-config-unknown", NotFound;
    /// A second access rule for a config.
    ACCESS_DUPLICATE = "access-duplicate", Conflict;
    /// A config without an access rule, although other configs have one.
    ACCESS_UNCOVERED = "access-uncovered", Required;
    /// A permeability rule without a config.
    PERMEABILITY_CONFIG_REQUIRED = "permeability-config-required", Required;
    /// A permeability rule for a config that does not exist.
    PERMEABILITY_CONFIG_UNKNOWN = "permeability-config-unknown", NotFound;
    /// A second permeability rule for a config.
    PERMEABILITY_DUPLICATE = "permeability-duplicate", Conflict;
    /// A trust group without a name.
    TRUST_GROUP_NAME_REQUIRED = "trust-group-name-required", Required;
    /// A second trust group with the same name.
    TRUST_GROUP_DUPLICATE = "trust-group-duplicate", Conflict;
    /// A trust group with a member that does not exist.
    TRUST_GROUP_MEMBER_UNKNOWN = "trust-group-member-unknown", NotFound;
    /// A trust group with fewer than two members.
    TRUST_GROUP_TOO_SMALL = "trust-group-too-small", Invalid;
    /// A tag that does not reach the agent as it is written.
    TAG_INVALID = "tag-invalid", Invalid;
    /// Tags of entries to show, for an agent that cannot store entries.
    EXPOSE_READ_ONLY = "expose-read-only", Conflict;
    /// An agent whose trusted entries only the agent itself can see.
    TRUSTED_WITHOUT_PEERS = "trusted-without-peers", Conflict;
    /// A budget action that does not exist.
    TOKEN_ACTION_UNSUPPORTED = "token-action-unsupported", NotSupported;
    /// A negative number of tokens.
    TOKEN_NEGATIVE = "token-negative", Invalid;
    /// A budget without a limit.
    TOKEN_NO_EFFECT = "token-no-effect", Invalid;
    /// A budget for one run that is larger than the budget for all runs.
    TOKEN_PER_RUN_ABOVE_TOTAL = "token-per-run-above-total", Conflict;
    /// A circuit breaker with a count below 1.
    BREAKER_FAILURES_LOW = "breaker-failures-low", Invalid;
    /// A cooldown that is not a duration.
    BREAKER_COOLDOWN_INVALID = "breaker-cooldown-invalid", Invalid;
    /// A cooldown, which the platform never reads.
    BREAKER_COOLDOWN_IGNORED = "breaker-cooldown-ignored", Invalid;
    /// An age limit that is not a duration.
    TTL_INVALID = "ttl-invalid", Invalid;
    /// A decay function that does not exist.
    DECAY_UNSUPPORTED = "decay-unsupported", NotSupported;
    /// A decay function, which the platform never reads.
    DECAY_IGNORED = "decay-ignored", Invalid;
    /// A kind of evidence that does not exist.
    EVIDENCE_KIND_UNSUPPORTED = "evidence-kind-unsupported", NotSupported;
    /// A storage size that is not a quantity.
    STORAGE_SIZE_INVALID = "storage-size-invalid", Invalid;
    /// A change of the storage size, which does not resize the volume.
    STORAGE_SIZE_CHANGED = "storage-size-changed", Conflict;
    /// Settings for a shared memory that is off.
    MEMBRANE_WITHOUT_MEMORY = "membrane-without-memory", Conflict;
    /// A config without a name.
    CONFIG_NAME_REQUIRED = "config-name-required", Required;
    /// A second config with the same name.
    CONFIG_NAME_DUPLICATE = "config-name-duplicate", Conflict;
    /// A name that is too long for the name of its Service.
    NAME_TOO_LONG = "name-too-long", Invalid;
    /// A config whose Agent would have a name that is too long.
    AGENT_NAME_TOO_LONG = "agent-name-too-long", Invalid;
    /// A name that is invalid for a Service.
    NAME_NOT_SERVICE = "name-not-service", Invalid;
    /// A relationship with a config that does not exist.
    RELATIONSHIP_UNKNOWN = "relationship-unknown", NotFound;
    /// A field under its old name.
    LEGACY_PERSONAS = "legacy-personas", Invalid;
    /// The old name of an AgentRun's `agentRef`.
    LEGACY_INSTANCE_REF = "legacy-instance-ref", Invalid;
    /// A skill of an Ensemble that is written as an object.
    SKILLS_OBJECT_FORM = "skills-object-form", TypeInvalid;
    /// A blank seed.
    SEEDS_EMPTY = "seeds-empty", Invalid;
    /// Seeds for a memory that is off.
    SEEDS_DISABLED = "seeds-disabled", Conflict;
    /// Seeds that are too large for a variable.
    SEEDS_TOO_LARGE = "seeds-too-large", Invalid;
    /// A memory size that has no effect.
    MAX_SIZE = "max-size", Invalid;
    /// A DELETE that deletes a shared memory.
    SHARED_MEMORY_DATA_LOSS = "shared-memory-data-loss", Conflict;
    /// A config that is newly excluded.
    EXCLUDE_DATA_LOSS = "exclude-data-loss", Conflict;
    /// A skill with a name that is almost `memory`.
    SKILL_NEAR_MISS = "skill-near-miss", Invalid;
    /// A skill without a reference.
    SKILL_EMPTY = "skill-empty", Required;
    /// A SkillPack that does not exist.
    SKILLPACK_MISSING = "skillpack-missing", NotFound;
    /// An auto-store setting on an agent without memory.
    AUTO_STORE_NO_EFFECT = "auto-store-no-effect", Conflict;
    /// The older memory in a ConfigMap.
    LEGACY_MEMORY = "legacy-memory", Conflict;
    /// A volume name that Sympozium reserves.
    RESERVED_VOLUME = "reserved-volume", Conflict;
    /// A variable that an Ensemble overwrites.
    RESERVED_ENV = "reserved-env", Conflict;
    /// A variable that is nearly one of memory.
    ENV_NEAR_MISS = "env-near-miss", NotFound;
    /// A variable that must be a number.
    ENV_NUMBER = "env-number", Invalid;
    /// A URL of a memory server that the user sets.
    PRIVATE_URL_OVERRIDE = "private-url-override", Conflict;
    /// An AgentRun whose Agent does not exist.
    AGENT_MISSING = "agent-missing", NotFound;
    /// An Ensemble that does not exist.
    ENSEMBLE_MISSING = "ensemble-missing", NotFound;
    /// An AgentRun whose token budget is spent.
    BUDGET_SPENT = "budget-spent", Conflict;
    /// An AgentRun whose Ensemble had too many failures.
    CIRCUIT_OPEN = "circuit-open", Conflict;
    /// An AgentRun that names another Ensemble than its Agent.
    ENSEMBLE_LABEL_DIFFERS = "ensemble-label-differs", Conflict;
    /// A memory that is turned off, while its data stays.
    SKILL_REMOVED = "skill-removed", Conflict;
    /// A change that the Ensemble reverts.
    MANAGED_AGENT_EDIT = "managed-agent-edit", Conflict;
    /// An Agent that is deleted with its memories.
    AGENT_DELETE_DATA_LOSS = "agent-delete-data-loss", Conflict;
    /// A tool with the name of one of Sympozium's own tools.
    TOOL_NAME_BUILTIN = "tool-name-builtin", Conflict;
    /// A memory pack that task runs leave out.
    MEMORY_PACK_SERVER = "memory-pack-server", Conflict;
    /// A memory pack that is deleted while Agents use it.
    MEMORY_PACK_DELETE = "memory-pack-delete", Conflict;
    /// A pod whose Agent does not exist.
    POD_AGENT_NOT_FOUND = "pod-agent-not-found", NotFound;
    /// A pod whose Ensemble does not exist.
    POD_ENSEMBLE_NOT_FOUND = "pod-ensemble-not-found", NotFound;
    /// A pod whose labels contradict its AgentRun.
    INSTANCE_MISMATCH = "instance-mismatch", Conflict;
    /// A pod without the container that gets the memory.
    POD_NO_AGENT_CONTAINER = "pod-no-agent-container", NotFound;
    /// A pod that requires memory although its agent has none.
    AGENT_WITHOUT_MEMORY = "agent-without-memory", Required;
    /// A pod that sets a variable to a value other than its memory's.
    POD_ENV_CONFLICT = "pod-env-conflict", Conflict;
    /// A pod with another volume under the name of its memory's volume.
    POD_VOLUME_CONFLICT = "pod-volume-conflict", Conflict;
    /// A memory mode that does not exist.
    MEMORY_MODE_UNKNOWN = "memory-mode-unknown", NotSupported;
    /// Sidecar mode for a pod that already has the URL of a server.
    SIDECAR_MODE_IGNORED = "sidecar-mode-ignored", Conflict;
    /// A sidecar whose volume claim does not exist.
    CLAIM_MISSING = "claim-missing", NotFound;
    /// An agent whose config is not known.
    CONFIG_UNKNOWN = "config-unknown", NotFound;
    /// A pod on its node's network whose DNS policy does not resolve Services.
    HOST_NETWORK_DNS = "host-network-dns", Conflict;
    /// A sidecar on its node's network.
    HOST_NETWORK_SIDECAR = "host-network-sidecar", Conflict;
    /// A memory sidecar next to a harness, which may not have the volume of requests.
    HARNESS_NO_IPC = "harness-no-ipc", Conflict;
    /// A credential in a SkillPack.
    POD_PACK_CREDENTIAL = "pod-pack-credential", Invalid;
    /// A run of Celln whose skills would give it memory.
    CELLN_NO_MEMORY = "celln-no-memory", Conflict;
    /// A run in a sandbox that was made before it.
    WARM_POOL_NO_MEMORY = "warm-pool-no-memory", Conflict;
    /// A run of Celln in an Ensemble with shared memory.
    CELLN_NO_SHARED_MEMORY = "celln-no-shared-memory", Conflict;
    /// Settings of session workspaces that are off.
    WORKSPACE_NO_EFFECT = "workspace-no-effect", Conflict;
    /// A time of a session that is not a duration.
    WORKSPACE_TTL_INVALID = "workspace-ttl-invalid", Invalid;
    /// A size of a session's volume that is not a quantity.
    WORKSPACE_SIZE_INVALID = "workspace-size-invalid", Invalid;
    /// A size that becomes smaller.
    WORKSPACE_SHRINK = "workspace-shrink", Conflict;
    /// A storage class that changes.
    WORKSPACE_CLASS_CHANGED = "workspace-class-changed", Conflict;
    /// Session workspaces that are turned off.
    WORKSPACE_OFF = "workspace-off", Conflict;
    /// A session that is deleted with its state.
    WORKSPACE_DELETE_DATA_LOSS = "workspace-delete-data-loss", Conflict;
    /// A token in clear text in a map of variables.
    WRITER_TOKEN_ENV = "writer-token-env", Invalid;
    /// A token in the sidecar of a skill.
    SIDECAR_WRITER_TOKEN = "sidecar-writer-token", Conflict;
    /// A Secret without the key of its token.
    WRITER_TOKEN_KEY = "writer-token-key", NotFound;
    /// A container other than the agent and its server that has a writer token.
    POD_TOKEN_EXPOSED = "pod-token-exposed", Conflict;
    /// A writer token of the shared memory in a pod that may only read.
    POD_TOKEN_READ_ONLY = "pod-token-read-only", Conflict;
    /// A writer token in a harness.
    POD_TOKEN_HARNESS = "pod-token-harness", Conflict;
    /// A token in clear text, or the administrator's token in an agent.
    POD_TOKEN_LITERAL = "pod-token-literal", Invalid;
    /// A pod that does not start before the Secret with its writer token exists.
    WRITER_TOKEN_MISSING = "writer-token-missing", NotFound;
    /// An object that could not be looked up.
    LOOKUP_FAILED = "lookup-failed", Unavailable;
    /// An unsupported value of the inject label.
    INJECT_LABEL_UNKNOWN = "inject-label-unknown", NotSupported;
}
