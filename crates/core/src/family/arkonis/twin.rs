//! The rules that the apiserver can check by itself.

use crate::model::finding::Code;
use crate::model::twin::{Let, Rule, Table, Without};

use super::api::{AGENTOPS, ARKONIS, ARKONIS_OLD, KUBESWARM};
use super::codes::{
    BACKEND_REQUIRED, BACKEND_UNKNOWN, CONFIG_REF_NAME, EMBEDDING_MODEL_REQUIRED, EMBEDDING_PROVIDER_UNKNOWN,
    ENDPOINT_REQUIRED, FIELD_TYPE, MEMORY_BACKEND_UNKNOWN, MEMORY_REF_NAME, PROVIDER_REQUIRED,
    PROVIDER_UNKNOWN, REDIS_REQUIRED, REDIS_SECRET_REQUIRED, SECRET_NAME_INVALID, SECTION_UNUSED,
    VECTOR_SECRET_NAME, VECTOR_STORE_REQUIRED,
};

/// The tables of the family.
pub static TABLES: [Table; 1] = [Table {
    name: "arkonis-memories",
    kinds: &[&ARKONIS.memory, &ARKONIS_OLD.memory, &AGENTOPS.memory, &KUBESWARM.memory],
    lets: &[
        Let::new("backend", "has(self.spec) && has(self.spec.backend) ? self.spec.backend : ''"),
        Let::new("redis", "$backend == 'redis' && has(self.spec.redis)"),
        Let::new("vector_store", "$backend == 'vector-store' && has(self.spec.vectorStore)"),
        Let::new(
            "redis_secret",
            "$redis && has(self.spec.redis.secretRef) && has(self.spec.redis.secretRef.name) \
             ? self.spec.redis.secretRef.name : ''",
        ),
        Let::new("has_vector_secret", "$vector_store && has(self.spec.vectorStore.secretRef)"),
        Let::new(
            "vector_secret",
            "$has_vector_secret && has(self.spec.vectorStore.secretRef.name) \
             ? self.spec.vectorStore.secretRef.name : ''",
        ),
    ],
    rules: &[
        Rule {
            code: &REDIS_REQUIRED,
            faults: "$backend == 'redis' && !$redis ? [''] : []",
            message: "spec.redis is required when backend is \"redis\"",
        },
        Rule {
            code: &REDIS_SECRET_REQUIRED,
            faults: "$redis && $redis_secret == '' ? [''] : []",
            message: "spec.redis.secretRef.name is required",
        },
        Rule {
            code: &SECRET_NAME_INVALID,
            faults: "[$redis_secret].filter(name, name != '' && (size(name) > 253 || \
                     !name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')))",
            message: "spec.redis.secretRef.name: not a valid Secret name",
        },
        Rule {
            code: &VECTOR_STORE_REQUIRED,
            faults: "$backend == 'vector-store' && !$vector_store ? [''] : []",
            message: "spec.vectorStore is required when backend is \"vector-store\"",
        },
        Rule {
            code: &ENDPOINT_REQUIRED,
            faults: "$vector_store && has(self.spec.vectorStore.endpoint) \
                     && size(self.spec.vectorStore.endpoint) <= 4096 \
                     && self.spec.vectorStore.endpoint.trim() == '' ? [self.spec.vectorStore.endpoint] : []",
            message: "spec.vectorStore.endpoint is required",
        },
        Rule {
            code: &VECTOR_SECRET_NAME,
            faults: "$has_vector_secret && $vector_secret == '' ? [''] : []",
            message: "spec.vectorStore.secretRef.name is required when secretRef is set",
        },
        Rule {
            code: &SECRET_NAME_INVALID,
            faults: "[$vector_secret].filter(name, name != '' && (size(name) > 253 || \
                     !name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')))",
            message: "spec.vectorStore.secretRef.name: not a valid Secret name",
        },
    ],
}];

/// The codes that refuse something and are in no table.
pub static WITHOUT: [(&Code, Without); 11] = [
    (&BACKEND_REQUIRED, Without::Schema),
    (&BACKEND_UNKNOWN, Without::Schema),
    (&PROVIDER_REQUIRED, Without::Schema),
    (&PROVIDER_UNKNOWN, Without::Schema),
    (&MEMORY_REF_NAME, Without::Schema),
    (&CONFIG_REF_NAME, Without::Schema),
    (&FIELD_TYPE, Without::Schema),
    (&MEMORY_BACKEND_UNKNOWN, Without::Schema),
    (&SECTION_UNUSED, Without::Schema),
    (&EMBEDDING_MODEL_REQUIRED, Without::Schema),
    (&EMBEDDING_PROVIDER_UNKNOWN, Without::Schema),
];

/// What of the family's defaults the apiserver can write.
pub const DEFAULTS: &str = "nothing is left to write: the schema of the definitions has the same defaults";
