//! The finding codes of the family.

use memgate_model::codes::codes;

codes! { "orka";
    /// A value that violates only the CRD's schema, or a rule on metadata.
    SCHEMA = "schema", Invalid;
    /// A field that the CRD does not have; the apiserver drops it.
    UNKNOWN_FIELD = "unknown-field", Invalid;
    /// A switch that is neither on nor off.
    ANNOTATION_ENABLED = "annotation-enabled", NotSupported;
    /// A number of memories that is invalid or too high.
    ANNOTATION_LIMIT = "annotation-limit", Invalid;
    /// A number of bytes that is invalid or too high.
    ANNOTATION_MAX_CHARS = "annotation-max-chars", Invalid;
    /// So few bytes that no memory fits.
    ANNOTATION_MAX_CHARS_TINY = "annotation-max-chars-tiny", Invalid;
    /// A switch of the memory tools that is neither on nor off.
    ANNOTATION_TOOLS = "annotation-tools", NotSupported;
    /// An annotation that memgate does not know.
    ANNOTATION_UNKNOWN = "annotation-unknown", Invalid;
    /// An annotation on an object without a memory section.
    ANNOTATION_NO_EFFECT = "annotation-no-effect", Conflict;
    /// A memory tool in the list of tools that need an approval.
    APPROVAL_BUILTIN = "approval-builtin", Conflict;
    /// A tool name that is close to the name of a memory tool.
    TOOL_TYPO = "tool-typo", NotFound;
    /// A memory tool whose switch has no effect.
    TOOL_DISABLE_NO_EFFECT = "tool-disable-no-effect", Conflict;
    /// A memory tool that never reaches the runtime.
    TOOL_RUNTIME = "tool-runtime", Conflict;
    /// A variable with a number of memories that the worker does not accept.
    ENV_LIMIT = "env-limit", Invalid;
    /// A variable with a number of bytes that the worker does not accept.
    ENV_MAX_CHARS = "env-max-chars", Invalid;
    /// A variable whose value looks like off, but switches memory on.
    ENV_ENABLED = "env-enabled", NotSupported;
    /// A variable whose value looks like off, but switches the memory tools on.
    ENV_TOOLS = "env-tools", NotSupported;
    /// A variable that is nearly one of memory.
    ENV_NEAR_MISS = "env-near-miss", NotFound;
    /// A memory variable that is never read.
    ENV_NO_EFFECT = "env-no-effect", Conflict;
    /// A memory variable that occurs twice.
    ENV_DUPLICATE = "env-duplicate", Conflict;
    /// A variable that the controller sets.
    ENV_RESERVED = "env-reserved", Conflict;
    /// A variable with the name of an Agent other than the Task's.
    ENV_AGENT_FORGED = "env-agent-forged", Conflict;
    /// A token in clear text.
    ENV_LITERAL_TOKEN = "env-literal-token", Invalid;
    /// A variable that turns memory on although the Agent opts out.
    OPT_OUT_ENV = "opt-out-env", Conflict;
    /// An annotation that turns memory on although the Agent opts out.
    OPT_OUT_ANNOTATION = "opt-out-annotation", Conflict;
    /// A variable that turns the memory tools on although the Agent opts out.
    OPT_OUT_TOOLS_ENV = "opt-out-tools-env", Conflict;
    /// An annotation that turns the memory tools on although the Agent opts out.
    OPT_OUT_TOOLS_ANNOTATION = "opt-out-tools-annotation", Conflict;
    /// An Agent that does not exist.
    AGENT_MISSING = "agent-missing", NotFound;
    /// A Secret or ConfigMap of a variable of memory, or its key, that does not exist.
    ENV_SOURCE_MISSING = "env-source-missing", NotFound;
    /// A Secret of a MemoryBackend, or its key, that does not exist.
    SECRET_MISSING = "secret-missing", NotFound;
    /// An Agent in another namespace.
    AGENT_CROSS_NAMESPACE = "agent-cross-namespace", Conflict;
    /// A MemoryBackend with a name other than `default`.
    BACKEND_NAME = "backend-name", Invalid;
    /// A change of a MemoryBackend's protocol.
    BACKEND_PROTOCOL_IMMUTABLE = "backend-protocol-immutable", Conflict;
    /// A change of a MemoryBackend's store.
    BACKEND_STORE_IMMUTABLE = "backend-store-immutable", Conflict;
    /// An endpoint that is not a plain https URL.
    BACKEND_ENDPOINT = "backend-endpoint", Invalid;
    /// An endpoint that is not on the public network.
    BACKEND_ENDPOINT_PRIVATE = "backend-endpoint-private", Invalid;
    /// A pod that names another namespace as the namespace of its Task.
    POD_NAMESPACE_DIFFERS = "pod-namespace-differs", Conflict;
    /// A pod whose label does not belong to its Task.
    POD_LABEL_DIFFERS = "pod-label-differs", Conflict;
    /// A pod that sets a variable to a value other than the annotations'.
    POD_ENV_CONFLICT = "pod-env-conflict", Conflict;
    /// A pod without a token for requests for memories.
    POD_NO_TOKEN = "pod-no-token", Required;
    /// A pod whose Task or Agent could not be looked up.
    LOOKUP_FAILED = "lookup-failed", Unavailable;
    /// An unsupported value of the inject label.
    INJECT_LABEL_UNKNOWN = "inject-label-unknown", NotSupported;
}
