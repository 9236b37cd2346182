//! The rules that the apiserver can check by itself.

use memgate_model::cel::{CelRule, CelTable, CelVariable, NotInCel};
use memgate_model::finding::Code;

use super::api::{AGENTOPS, ARKONIS, ARKONIS_OLD, KUBESWARM};
use super::codes::{
    BACKEND_REQUIRED, BACKEND_UNKNOWN, ENDPOINT_REQUIRED, FIELD_TYPE, MEMORY_BACKEND_UNKNOWN,
    MEMORY_REF_NAME, PROVIDER_REQUIRED, PROVIDER_UNKNOWN, REDIS_REQUIRED, REDIS_SECRET_REQUIRED, SCHEMA,
    SECRET_NAME_INVALID, SECTION_UNUSED, VECTOR_SECRET_NAME, VECTOR_STORE_REQUIRED,
};

/// The tables of the family.
pub static TABLES: [CelTable; 1] = [CelTable {
    name: "arkonis-memories",
    kinds: &[&ARKONIS.memory, &ARKONIS_OLD.memory, &AGENTOPS.memory, &KUBESWARM.memory],
    lets: &[
        CelVariable::new("backend", "has(self.spec) && has(self.spec.backend) ? self.spec.backend : ''"),
        CelVariable::new("redis", "$backend == 'redis' && has(self.spec.redis)"),
        CelVariable::new("vector_store", "$backend == 'vector-store' && has(self.spec.vectorStore)"),
        CelVariable::new(
            "redis_secret",
            "$redis && has(self.spec.redis.secretRef) && has(self.spec.redis.secretRef.name) \
             ? self.spec.redis.secretRef.name : ''",
        ),
        CelVariable::new("has_vector_secret", "$vector_store && has(self.spec.vectorStore.secretRef)"),
        CelVariable::new(
            "vector_secret",
            "$has_vector_secret && has(self.spec.vectorStore.secretRef.name) \
             ? self.spec.vectorStore.secretRef.name : ''",
        ),
    ],
    rules: &[
        CelRule {
            code: &REDIS_REQUIRED,
            faults: "$backend == 'redis' && !$redis ? [''] : []",
            message: "spec.redis is required when backend is \"redis\"",
        },
        CelRule {
            code: &REDIS_SECRET_REQUIRED,
            faults: "$redis && $redis_secret == '' ? [''] : []",
            message: "spec.redis.secretRef.name is required",
        },
        CelRule {
            code: &SECRET_NAME_INVALID,
            faults: "[$redis_secret].filter(name, name != '' && (size(name) > 253 || \
                     !name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')))",
            message: "spec.redis.secretRef.name: not a valid Secret name",
        },
        CelRule {
            code: &VECTOR_STORE_REQUIRED,
            faults: "$backend == 'vector-store' && !$vector_store ? [''] : []",
            message: "spec.vectorStore is required when backend is \"vector-store\"",
        },
        CelRule {
            code: &ENDPOINT_REQUIRED,
            faults: "$vector_store && has(self.spec.vectorStore.endpoint) \
                     && size(self.spec.vectorStore.endpoint) <= 4096 \
                     && self.spec.vectorStore.endpoint.trim() == '' ? [self.spec.vectorStore.endpoint] : []",
            message: "spec.vectorStore.endpoint is required",
        },
        CelRule {
            code: &VECTOR_SECRET_NAME,
            faults: "$has_vector_secret && $vector_secret == '' ? [''] : []",
            message: "spec.vectorStore.secretRef.name is required when secretRef is set",
        },
        CelRule {
            code: &SECRET_NAME_INVALID,
            faults: "[$vector_secret].filter(name, name != '' && (size(name) > 253 || \
                     !name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')))",
            message: "spec.vectorStore.secretRef.name: not a valid Secret name",
        },
    ],
}];

/// The codes that deny and are not checked in CEL.
pub static NOT_IN_CEL: [(&Code, NotInCel); 9] = [
    (&SCHEMA, NotInCel::Schema),
    (&BACKEND_REQUIRED, NotInCel::Schema),
    (&BACKEND_UNKNOWN, NotInCel::Schema),
    (&PROVIDER_REQUIRED, NotInCel::Schema),
    (&PROVIDER_UNKNOWN, NotInCel::Schema),
    (&MEMORY_REF_NAME, NotInCel::Schema),
    (&FIELD_TYPE, NotInCel::Schema),
    (&MEMORY_BACKEND_UNKNOWN, NotInCel::Schema),
    (&SECTION_UNUSED, NotInCel::Schema),
];

/// Which of the family's defaults the apiserver can write.
pub const ABOUT_DEFAULTS: &str =
    "nothing is left to write: the schema of the definitions has the same defaults";
