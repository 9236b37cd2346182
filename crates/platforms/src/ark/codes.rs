//! The finding codes of the ark family.

use memgate_model::codes::codes;

codes! { "ark";
    /// A Memory without an address.
    MEMORY_ADDRESS_REQUIRED = "memory-address-required", Required;
    /// An address with a literal and a source.
    MEMORY_ADDRESS_EXCLUSIVE = "memory-address-exclusive", Conflict;
    /// A `valueFrom` of an address without a source.
    MEMORY_ADDRESS_SOURCE = "memory-address-source", Required;
    /// An address with several sources.
    MEMORY_ADDRESS_SOURCES = "memory-address-sources", Conflict;
    /// An address that is not an absolute URL.
    MEMORY_ADDRESS_URL = "memory-address-url", Invalid;
    /// An address with a blank in its path.
    MEMORY_ADDRESS_BLANK = "memory-address-blank", Invalid;
    /// A reference without a name.
    MEMORY_REF_NAME = "memory-ref-name", Required;
    /// A reference without a key.
    MEMORY_REF_KEY = "memory-ref-key", Required;
    /// A port number outside 1 to 65535.
    MEMORY_PORT_RANGE = "memory-port-range", Invalid;
    /// A port that is neither a name nor a number.
    MEMORY_PORT_TYPE = "memory-port-type", TypeInvalid;
    /// A port number where the platform wants a port's name.
    MEMORY_PORT_INTEGER = "memory-port-integer", TypeInvalid;
    /// A port that the Service does not have.
    MEMORY_PORT_UNKNOWN = "memory-port-unknown", NotFound;
    /// A Service with several ports, and a reference without a port.
    MEMORY_PORT_AMBIGUOUS = "memory-port-ambiguous", Invalid;
    /// A Service without ports.
    MEMORY_SERVICE_NO_PORTS = "memory-service-no-ports", Invalid;
    /// A Service that does not exist.
    MEMORY_SERVICE_MISSING = "memory-service-missing", NotFound;
    /// A Service in another namespace.
    MEMORY_SERVICE_CROSS_NAMESPACE = "memory-service-cross-namespace", Conflict;
    /// A Secret that does not exist.
    MEMORY_SECRET_MISSING = "memory-secret-missing", NotFound;
    /// A Secret without the referenced key.
    MEMORY_SECRET_KEY_MISSING = "memory-secret-key-missing", NotFound;
    /// A ConfigMap that does not exist.
    MEMORY_CONFIGMAP_MISSING = "memory-configmap-missing", NotFound;
    /// A ConfigMap without the referenced key.
    MEMORY_CONFIGMAP_KEY_MISSING = "memory-configmap-key-missing", NotFound;
    /// A ConfigMap value that is not a clean URL.
    MEMORY_CONFIGMAP_VALUE = "memory-configmap-value", Invalid;
    /// An address from a query parameter.
    MEMORY_ADDRESS_QUERY_PARAMETER = "memory-address-query-parameter", NotSupported;
    /// An address with a user name or password in it.
    MEMORY_ADDRESS_CREDENTIALS = "memory-address-credentials", Invalid;
    /// An address with a query string or a fragment.
    MEMORY_ADDRESS_SUFFIX = "memory-address-suffix", Invalid;
    /// An address that leads back to the caller.
    MEMORY_ADDRESS_LOCAL = "memory-address-local", Invalid;
    /// Headers that travel unencrypted.
    MEMORY_ADDRESS_PLAIN_HTTP = "memory-address-plain-http", Invalid;
    /// A header without a name, or with an invalid one.
    HEADER_NAME = "header-name", Invalid;
    /// Two headers with the same name.
    HEADER_DUPLICATE = "header-duplicate", Conflict;
    /// A header without a value.
    HEADER_VALUE_REQUIRED = "header-value-required", Required;
    /// A header with a literal and a source.
    HEADER_VALUE_EXCLUSIVE = "header-value-exclusive", Conflict;
    /// A `valueFrom` of a header without a source.
    HEADER_SOURCE = "header-source", Required;
    /// A header with several sources.
    HEADER_SOURCES = "header-sources", Conflict;
    /// A header value that cannot be sent.
    HEADER_VALUE_CHARS = "header-value-chars", Invalid;
    /// A credential in clear text.
    HEADER_INLINE_SECRET = "header-inline-secret", Invalid;
    /// A header that the client sets itself.
    HEADER_IGNORED = "header-ignored", Conflict;
    /// The deletion of a Memory that Queries use.
    MEMORY_DELETE_REFERENCED = "memory-delete-referenced", Conflict;
    /// A reference to a Memory without a name.
    QUERY_MEMORY_NAME = "query-memory-name", Required;
    /// A Memory that does not exist.
    QUERY_MEMORY_MISSING = "query-memory-missing", NotFound;
    /// A Memory whose address is not resolved.
    QUERY_MEMORY_NOT_READY = "query-memory-not-ready", Invalid;
    /// A Memory in another namespace.
    QUERY_MEMORY_CROSS_NAMESPACE = "query-memory-cross-namespace", Conflict;
    /// A conversation without a Memory to keep it.
    QUERY_CONVERSATION_WITHOUT_MEMORY = "query-conversation-without-memory", NotFound;
    /// A Query that changes its Memory after it has started.
    QUERY_MEMORY_CHANGED = "query-memory-changed", Conflict;
    /// A list of targets in place of a single target.
    QUERY_TARGET_LIST = "query-target-list", TypeInvalid;
    /// A TTL of a Query that is not a duration.
    QUERY_TTL = "query-ttl", Invalid;
    /// A TTL of a Query that is too short for the memory service.
    QUERY_TTL_SHORT = "query-ttl-short", Invalid;
    /// A timeout of a Query that is not a duration.
    QUERY_TIMEOUT = "query-timeout", Invalid;
    /// A Query of the older type `messages`.
    QUERY_TYPE_MESSAGES = "query-type-messages", NotSupported;
    /// A default Memory without a name.
    CONFIG_DEFAULT_MEMORY_NAME = "config-default-memory-name", Required;
    /// A default Memory with a namespace.
    CONFIG_DEFAULT_MEMORY_NAMESPACE = "config-default-memory-namespace", Conflict;
    /// The Memory `default` with a prefix or a suffix of kustomize.
    MEMORY_DEFAULT_RENAMED = "memory-default-renamed", Invalid;
    /// A default Memory that no namespace has.
    CONFIG_MEMORY_MISSING = "config-memory-missing", NotFound;
    /// A default TTL that is not a duration above 0.
    CONFIG_QUERY_TTL = "config-query-ttl", Invalid;
    /// A default TTL that is too short for the memory service.
    CONFIG_QUERY_TTL_SHORT = "config-query-ttl-short", Invalid;
    /// An ArkConfig that the platform does not read.
    CONFIG_NAME = "config-name", Invalid;
    /// A value that the schema refuses.
    SCHEMA = "schema", Invalid;
    /// A field that the schema does not have.
    UNKNOWN_FIELD = "unknown-field", Invalid;
    /// A pod's annotation that does not name a Memory.
    POD_REF_INVALID = "pod-ref-invalid", Invalid;
    /// A timeout that is not a number of seconds.
    POD_TIMEOUT_INVALID = "pod-timeout-invalid", Invalid;
    /// A pod's Memory does not exist.
    POD_MEMORY_MISSING = "pod-memory-missing", NotFound;
    /// A pod's Memory has no address.
    POD_MEMORY_UNRESOLVED = "pod-memory-unresolved", Invalid;
    /// A pod's Memory is in another namespace.
    POD_MEMORY_CROSS_NAMESPACE = "pod-memory-cross-namespace", Conflict;
    /// A header that no variable can carry.
    POD_HEADER_SKIPPED = "pod-header-skipped", Invalid;
    /// A variable that the container sets to another value.
    POD_ENV_EXISTS = "pod-env-exists", Conflict;
    /// A container that does not exist.
    POD_CONTAINER_UNKNOWN = "pod-container-unknown", NotFound;
    /// A pod of the memory service itself that asks for a Memory.
    POD_BROKER = "pod-broker", Conflict;
    /// A lookup without an answer.
    LOOKUP_FAILED = "lookup-failed", Unavailable;
    /// An unsupported value of the inject label.
    INJECT_LABEL_UNKNOWN = "inject-label-unknown", NotSupported;
}
