//! The family's kinds, and the fields that memgate reads of them.
//!
//! A Memory is a pointer to an HTTP service. A Query refers to a Memory by name; without a reference
//! it uses the Memory `default` of its namespace. ArkConfig can name another one.

use std::borrow::Cow;

use crate::workloads;
use memgate_model::family::AggregatedServer;
use memgate_model::kind::Kind;
use memgate_model::schema::{Field, LABELS, METADATA, METADATA_OF_JUDGED, Schema, schema};
use memgate_model::selector::PodSelector;
use memgate_model::tree::Tree;

/// The name of the Memory that a Query uses by default, and the only valid name of an ArkConfig.
pub(crate) const DEFAULT: &str = "default";

/// The sources of an address, in the order in which the platform looks. It never resolves the last one.
pub(crate) const ADDRESS_SOURCES: [&str; 4] =
    ["secretKeyRef", "configMapKeyRef", "serviceRef", "queryParameterRef"];

/// The sources of a header's value, in the order in which the platform looks. The first one also overrides
/// a literal.
pub(crate) const SOURCES_OF_HEADERS: [&str; 3] = ["queryParameterRef", "secretKeyRef", "configMapKeyRef"];

/// Headers whose value is a credential.
const CREDENTIAL_HEADERS: [&str; 5] =
    ["Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "X-Auth-Token"];

/// The annotation by which a pod opts in; its value names the Memory.
pub(crate) const MEMORY_ANNOTATION: &str = "memgate.dev/ark-memory";

/// The annotation that names the containers that get the Memory.
pub(crate) const CONTAINERS_ANNOTATION: &str = "memgate.dev/ark-containers";

/// The annotation with the time to wait for the memory service, in seconds.
pub(crate) const TIMEOUT_ANNOTATION: &str = "memgate.dev/ark-memory-timeout";

const GROUP: (&str, &str) = ("ark.mckinsey.com", "v1alpha1");

/// The memory resource.
pub(crate) static MEMORY: Kind = Kind::new(GROUP, "Memory", "memories", MEMORY_SCHEMA);

/// The referrer: a chat request.
pub(crate) static QUERY: Kind = Kind::new(GROUP, "Query", "queries", QUERY_SCHEMA);

/// A Query in the state: the Memory that it uses, for warnings about a DELETE of that Memory. There can be
/// very many Queries.
pub(crate) static STATE_QUERY: Kind = Kind::new(GROUP, "Query", "queries", STATE_QUERY_SCHEMA);

/// The settings for the whole cluster.
pub(crate) static ARK_CONFIG: Kind =
    Kind::new(GROUP, "ArkConfig", "arkconfigs", ARK_CONFIG_SCHEMA).of_cluster();

const MEMORY_SCHEMA: Schema = schema! { open {
    "metadata": METADATA_OF_JUDGED,
    "spec": open { "address": ADDRESS, "headers": [HEADER], },
    "status": open { "lastResolvedAddress" "phase" "message": text, },
} };

const ADDRESS: Schema = schema! { open {
    "value": text,
    "valueFrom": open {
        "secretKeyRef" "configMapKeyRef": KEY_REF,
        // Ports of other types have rules of their own.
        "serviceRef": open { "name" "namespace" "port" "path": text, },
        "queryParameterRef": QUERY_PARAMETER_REF,
    },
} };

const HEADER: Schema = schema! { open {
    "name": text,
    "value": open {
        "value": text,
        "valueFrom": open {
            "secretKeyRef" "configMapKeyRef": KEY_REF,
            "queryParameterRef": QUERY_PARAMETER_REF,
        },
    },
} };

const KEY_REF: Schema = schema! { open { "name" "key": text, "optional": boolean, } };

const QUERY_PARAMETER_REF: Schema = schema! { open { "name": text, } };

const QUERY_SCHEMA: Schema = schema! { open {
    "metadata": METADATA,
    "spec": open {
        "memory": MEMORY_REF,
        "conversationId" "sessionId" "ttl" "timeout" "type": text,
        "target": any,
        // The older form, which is not a misspelt one.
        (Field::new("targets", Schema::Any)),
        // `input` is not among them: of a field that is not read it is known that it is there, null or not.
        "selector" "serviceAccount" "parameters" "cancel" "overrides": any,
    },
    "status": open { "phase": text, },
} };

const STATE_QUERY_SCHEMA: Schema = schema! { pruned {
    "metadata": pruned { "name" "namespace" "deletionTimestamp": text, LABELS, },
    "spec": pruned { "memory": pruned { "name" "namespace": text, }, },
} };

const ARK_CONFIG_SCHEMA: Schema = schema! { open {
    "metadata": METADATA_OF_JUDGED,
    "spec": open { "defaultMemory": MEMORY_REF, "queryTTL": text, },
} };

/// The fields of older versions, which users still write. Their own rules speak of them, or nothing does.
pub(crate) static OLD_FIELDS: [(&Kind, &str); 1] = [(&QUERY, "spec.targets")];

/// A reference to a Memory, in a Query or in an ArkConfig.
const MEMORY_REF: Schema = schema! { open { "name" "namespace": text, } };

/// The label by which the platform's chart marks its memory service.
const LABELLED: &str = "app.kubernetes.io/name in (ark-broker, ark-cluster-memory)";

/// The workloads, in the order in which one of several is named.
pub(crate) static WORKLOADS: [(&Kind, Option<&str>); 4] = [
    (&workloads::DAEMON_SET, None),
    (&workloads::DEPLOYMENT, Some(LABELLED)),
    (&workloads::REPLICA_SET, None),
    (&workloads::STATEFUL_SET, Some(LABELLED)),
];

/// The memory resources.
pub(crate) static MEMORIES: [&Kind; 1] = [&MEMORY];

/// Pods that talk to a Memory have no common label, so they opt in by annotation.
pub(crate) static POD_SELECTORS: [PodSelector; 1] =
    [PodSelector { annotation: Some(MEMORY_ANNOTATION), ..PodSelector::labelled("ark", &[]) }];

/// The platform's API server on Postgres, from its chart `ark-apiserver`.
pub(crate) const AGGREGATED_SERVER: AggregatedServer = AggregatedServer {
    api_service: "v1alpha1.ark.mckinsey.com",
    help: "pods and `memgate check` work; the webhook and the default Memory of a Query only with \
           policy.thirdPartyWebhooks.enabled in its chart ark-apiserver",
};

/// The status of a Memory; `None` if the platform has not processed it yet.
pub(crate) fn status(memory: &Tree) -> Option<&Tree> {
    let says = |status: &&Tree| {
        let known = ["lastResolvedAddress", "phase", "message"];
        known.iter().any(|field| status.get(field).is_some()) || status.unknown_fields().next().is_some()
    };
    memory.get("status").filter(says)
}

/// Whether a text is a name that HTTP allows. Source: RFC 9110, 5.6.2.
pub(crate) fn is_header_name(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// The same text for all names of one header, as the platform's client sends them: case counts only in a name that HTTP
/// does not allow. Source: Go, net/textproto, `CanonicalMIMEHeaderKey`.
pub(crate) fn one_spelling(name: &str) -> Cow<'_, str> {
    if is_header_name(name) && name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        name.to_ascii_lowercase().into()
    } else {
        name.into()
    }
}

/// Whether the value of the header of this name is a credential.
pub(crate) fn is_credential_header(name: &str) -> bool {
    CREDENTIAL_HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name))
}

/// The address that the platform resolved.
pub(crate) fn resolved_address(memory: &Tree) -> Option<&str> {
    status(memory)?.filled_at(&["lastResolvedAddress"])
}
