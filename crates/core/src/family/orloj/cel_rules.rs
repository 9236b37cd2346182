//! The rules that the apiserver can check by itself.

use memgate_model::cel::{CelRule, CelTable, CelVariable, NotInCel};
use memgate_model::finding::Code;

use super::api::{AGENT, MEMORY, MODEL_ENDPOINT};
use super::codes::{
    AGENT_ALLOW_INVALID, AGENT_ALLOW_NEEDS_REF, AGENT_REF_INVALID, HTTP_ENDPOINT_BLOCKED,
    HTTP_ENDPOINT_INVALID, HTTP_ENDPOINT_REQUIRED, MODELENDPOINT_MODEL_REQUIRED, NAME_RESERVED,
    PGVECTOR_EMBEDDING_REQUIRED, PGVECTOR_ENDPOINT_INVALID, PGVECTOR_ENDPOINT_REQUIRED, REF_INVALID, SCHEMA,
};

/// The tables of the family.
pub static TABLES: [CelTable; 4] = [
    CelTable {
        name: "orloj",
        kinds: &[&MEMORY, &AGENT, &MODEL_ENDPOINT],
        lets: &[],
        rules: &[CelRule {
            code: &NAME_RESERVED,
            faults: "request.operation == 'CREATE' && self.metadata.name in \
                     ['status', 'logs', 'exec', 'scale', 'proxy', 'binding'] ? [''] : []",
            message: "metadata.name is a reserved subresource name",
        }],
    },
    CelTable { name: "orloj-memories", kinds: &[&MEMORY], lets: &MEMORY_LETS, rules: &MEMORY_RULES },
    CelTable {
        name: "orloj-agents",
        kinds: &[&AGENT],
        lets: &[
            CelVariable::new("claim", "has(self.spec) && has(self.spec.memory)"),
            CelVariable::new(
                "ref",
                "!$claim || !has(self.spec.memory.ref) ? '' : size(self.spec.memory.ref) > 4096 ? 'too-long' \
                 : self.spec.memory.ref.trim()",
            ),
            CelVariable::new(
                "allow",
                "$claim && has(self.spec.memory.allow) && size(self.spec.memory.allow) <= 128 \
                 ? self.spec.memory.allow.map(entry, size(entry) <= 256, entry.trim()) : []",
            ),
        ],
        rules: &[
            CelRule {
                code: &AGENT_ALLOW_NEEDS_REF,
                faults: "$ref == '' && size($allow) > 0 ? [$allow] : []",
                message: "spec.memory.ref is required when spec.memory.allow is set",
            },
            CelRule {
                code: &AGENT_REF_INVALID,
                faults: "[$ref].filter(name, name.matches('[/\\\\s\\\\x0b\\\\x{85}\\\\pZ]'))",
                message: "spec.memory.ref must be the name of a Memory in the Agent's own namespace",
            },
            CelRule {
                code: &AGENT_ALLOW_INVALID,
                faults: "$allow.exists(entry, !entry.lowerAscii()\
                         .matches('^(memory[.])?(read|write|search|list|ingest)$')) ? [$allow] : []",
                message: "invalid spec.memory.allow: expected read, write, search, list, or ingest",
            },
        ],
    },
    CelTable {
        name: "orloj-modelendpoints",
        kinds: &[&MODEL_ENDPOINT],
        lets: &[],
        rules: &[CelRule {
            code: &MODELENDPOINT_MODEL_REQUIRED,
            faults: "has(self.spec) && has(self.spec.default_model) && (size(self.spec.default_model) > 4096 \
                     || self.spec.default_model.trim() != '') ? [] : ['']",
            message: "spec.default_model is required",
        }],
    },
];

const MEMORY_LETS: [CelVariable; 11] = [
    CelVariable::new(
        "short",
        "has(self.spec) && (!has(self.spec.provider) || size(self.spec.provider) <= 256) \
         && (!has(self.spec.endpoint) || size(self.spec.endpoint) <= 4096) \
         && (!has(self.spec.endpoint_secret_ref) || size(self.spec.endpoint_secret_ref) <= 4096) \
         && (!has(self.spec.embedding_model) || size(self.spec.embedding_model) <= 4096)",
    ),
    CelVariable::new("provider_text", "$short && has(self.spec.provider) ? self.spec.provider.trim() : ''"),
    CelVariable::new("provider", "$provider_text.lowerAscii()"),
    CelVariable::new("given", "$short && has(self.spec.endpoint) ? self.spec.endpoint.trim() : ''"),
    CelVariable::new(
        "reference",
        "$short && has(self.spec.endpoint_secret_ref) ? self.spec.endpoint_secret_ref.trim() : ''",
    ),
    // The endpoint, where it is the one that counts: a Secret with the endpoint wins.
    CelVariable::new("endpoint", "$reference == '' ? $given : ''"),
    CelVariable::new(
        "embedding",
        "$short && has(self.spec.embedding_model) ? self.spec.embedding_model.trim() : ''",
    ),
    CelVariable::new(
        "secret",
        "has(self.spec) && has(self.spec.auth) && has(self.spec.auth.secretRef) \
         && size(self.spec.auth.secretRef) <= 4096 ? self.spec.auth.secretRef.trim() : ''",
    ),
    CelVariable::new(
        "is_url",
        "$endpoint.matches('^(?i:https?)://([^/?#]*@)?\
         ([[][^]/?#@\\\\s\\\\x0b\\\\x{85}\\\\pZ]+[]]\
         |[^:[/?#@\\\\s\\\\x0b\\\\x{85}\\\\pZ][^:/?#@\\\\s\\\\x0b\\\\x{85}\\\\pZ]*)\
         (:[0-9]*)?\
         ([/?#]|$)')",
    ),
    CelVariable::new(
        "authority",
        "$is_url ? $endpoint.split('://', 2)[1].split('/', 2)[0].split('?', 2)[0].split('#', 2)[0]\
         .find('[^@]*$') : ''",
    ),
    // An address as it is written; in brackets one of IPv6, where IPv4 counts as itself.
    CelVariable::new(
        "host",
        "!$authority.startsWith('[') ? $authority.split(':', 2)[0].lowerAscii() \
         : $authority.substring(1).split(']', 2)[0].lowerAscii().matches('^::ffff:[0-9.]+$') \
         ? $authority.substring(8).split(']', 2)[0] \
         : $authority.contains(':') ? $authority.substring(1).split(']', 2)[0].lowerAscii() : ''",
    ),
];

const MEMORY_RULES: [CelRule; 9] = [
    CelRule {
        code: &HTTP_ENDPOINT_REQUIRED,
        faults: "$provider == 'http' && $given == '' && $reference == '' ? [$provider_text] : []",
        message: "http memory provider requires spec.endpoint",
    },
    CelRule {
        code: &PGVECTOR_ENDPOINT_REQUIRED,
        faults: "$provider == 'pgvector' && $given == '' && $reference == '' ? [$provider_text] : []",
        message: "pgvector memory provider requires spec.endpoint (postgres connection string)",
    },
    CelRule {
        code: &PGVECTOR_EMBEDDING_REQUIRED,
        faults: "$provider == 'pgvector' && $embedding == '' ? [$provider_text] : []",
        message: "pgvector memory provider requires spec.embedding_model (reference to a ModelEndpoint)",
    },
    CelRule {
        code: &HTTP_ENDPOINT_INVALID,
        faults: "$provider == 'http' && $endpoint != '' && !$is_url ? [[$provider_text, $endpoint]] : []",
        message: "spec.endpoint must be an http or https URL with a host",
    },
    CelRule {
        code: &HTTP_ENDPOINT_BLOCKED,
        faults: "$provider == 'http' && $is_url && ($host == 'localhost' || isIP($host) && \
                 (ip($host).isLoopback() || ip($host).isLinkLocalUnicast() || ip($host).isUnspecified() \
                 || cidr('224.0.0.0/24').containsIP(ip($host)) || cidr('ff02::/16').containsIP(ip($host)) \
                 || ip($host) == ip('fd00:ec2::254'))) ? [[$provider_text, $endpoint]] : []",
        message: "spec.endpoint: a loopback, cloud metadata, link-local or unspecified address is not allowed",
    },
    CelRule {
        code: &PGVECTOR_ENDPOINT_INVALID,
        faults: "$provider == 'pgvector' && $endpoint != '' && !$endpoint.startsWith('postgres://') \
                 && !$endpoint.startsWith('postgresql://') && ($endpoint.matches('^[A-Za-z][-+.A-Za-z0-9]*://') \
                 || !$endpoint.contains('=')) ? [[$provider_text, $endpoint]] : []",
        message: "spec.endpoint must be a postgres:// or postgresql:// URL or a key=value connection string",
    },
    CelRule {
        code: &REF_INVALID,
        faults: "[$secret].filter(text, text != '' && !(text.contains('/') ? text.split('/', 2)[1] : text)\
                 .trim().split(':', 2)[0].trim().matches('^[^/\\\\s\\\\x0b\\\\x{85}\\\\pZ]+$'))",
        message: "spec.auth.secretRef: must be <name> or <namespace>/<name>",
    },
    CelRule {
        code: &REF_INVALID,
        faults: "[$reference].filter(text, text != '' && !(text.contains('/') ? text.split('/', 2)[1] : text)\
                 .trim().split(':', 2)[0].trim().matches('^[^/\\\\s\\\\x0b\\\\x{85}\\\\pZ]+$'))",
        message: "spec.endpoint_secret_ref: must be <name> or <namespace>/<name>",
    },
    CelRule {
        code: &REF_INVALID,
        faults: "[$embedding].filter(text, text != '' && !(text.contains('/') ? text.split('/', 2)[1] : text)\
                 .trim().matches('^[^/\\\\s\\\\x0b\\\\x{85}\\\\pZ]+$'))",
        message: "spec.embedding_model: must be <name> or <namespace>/<name>",
    },
];

/// The codes that deny and are not checked in CEL.
pub static NOT_IN_CEL: [(&Code, NotInCel); 1] = [(&SCHEMA, NotInCel::Schema)];

/// Which of the family's defaults the apiserver can write.
pub const ABOUT_DEFAULTS: &str = "there are none";
