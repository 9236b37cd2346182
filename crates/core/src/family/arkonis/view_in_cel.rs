//! The views of the family's objects as far as an apiserver can make them.

use memgate_model::cel::CelVariable;
use memgate_model::cel_view::{CelPath, CelView};
use memgate_model::memory_view::Role;

use super::api::{AGENTOPS, ARKONIS, ARKONIS_OLD, KUBESWARM};
use crate::family::cel_reasons::{ADDRESS, CREDENTIALS, OTHER_OBJECTS};

/// The views.
pub static VIEWS: [CelView; 2] = [
    CelView {
        name: "memory",
        kinds: &[&ARKONIS.memory, &ARKONIS_OLD.memory, &AGENTOPS.memory, &KUBESWARM.memory],
        role: Role::Memory,
        viewed: "true",
        lets: &LETS,
        paths: &PATHS,
        unsaid: &[("endpoint", ADDRESS), ("inline", CREDENTIALS)],
    },
    CelView {
        name: "agent",
        kinds: &[&ARKONIS.agent, &ARKONIS_OLD.agent, &AGENTOPS.agent, &KUBESWARM.agent],
        role: Role::Referrer,
        viewed: "true",
        lets: &[],
        paths: &[],
        unsaid: &[("references", OTHER_OBJECTS)],
    },
];

const LETS: [CelVariable; 6] = [
    CelVariable::new("memory_kind", "has(self.spec) && has(self.spec.backend) ? self.spec.backend : ''"),
    CelVariable::new("memory_redis", "$memory_kind == 'redis' && has(self.spec.redis)"),
    CelVariable::new("memory_store", "$memory_kind == 'vector-store' && has(self.spec.vectorStore)"),
    CelVariable::new(
        "memory_redis_secret",
        "$memory_redis && has(self.spec.redis.secretRef) && has(self.spec.redis.secretRef.name) \
         && self.spec.redis.secretRef.name != '' \
         ? ['spec.redis.secretRef.name ' + self.spec.redis.secretRef.name] : []",
    ),
    CelVariable::new(
        "memory_store_secret",
        "$memory_store && has(self.spec.vectorStore.secretRef) && has(self.spec.vectorStore.secretRef.name) \
         && self.spec.vectorStore.secretRef.name != '' \
         ? ['spec.vectorStore.secretRef.name ' + self.spec.vectorStore.secretRef.name] : []",
    ),
    CelVariable::new(
        "memory_embedding_secret",
        "$memory_kind == 'vector-store' && has(self.spec.embedding) && has(self.spec.embedding.apiKeyRef) \
         && has(self.spec.embedding.apiKeyRef.name) && self.spec.embedding.apiKeyRef.name != '' \
         ? ['spec.embedding.apiKeyRef.name ' + self.spec.embedding.apiKeyRef.name] : []",
    ),
];

const PATHS: [CelPath; 9] = [
    CelPath::new(
        "backend",
        "has(self.spec) && has(self.spec.backend) ? ['spec.backend ' + self.spec.backend] : []",
    ),
    CelPath::new(
        "durable",
        "has(self.spec) && has(self.spec.backend) \
         ? ['spec.backend ' + string(self.spec.backend != 'in-context')] : []",
    ),
    CelPath::new(
        "provider",
        "$memory_store && has(self.spec.vectorStore.provider) \
         ? ['spec.vectorStore.provider ' + self.spec.vectorStore.provider] : []",
    ),
    CelPath::new(
        "endpoint.from",
        "size($memory_redis_secret) > 0 ? ['spec.redis.secretRef secret'] \
         : $memory_store && has(self.spec.vectorStore.endpoint) && self.spec.vectorStore.endpoint.trim() != '' \
         ? ['spec.vectorStore.endpoint literal'] : []",
    ),
    CelPath::new(
        "ttlSeconds",
        "$memory_redis ? ['spec.redis.ttlSeconds ' + string(!has(self.spec.redis.ttlSeconds) ? 3600 \
         : self.spec.redis.ttlSeconds < 0 ? 0 : self.spec.redis.ttlSeconds)] \
         : $memory_store ? ['spec.vectorStore.ttlSeconds ' + string(has(self.spec.vectorStore.ttlSeconds) \
         && self.spec.vectorStore.ttlSeconds > 0 ? self.spec.vectorStore.ttlSeconds : 0)] : []",
    ),
    CelPath::new(
        "maxEntries",
        "$memory_redis ? ['spec.redis.maxEntries ' + string(has(self.spec.redis.maxEntries) \
         && self.spec.redis.maxEntries > 0 ? self.spec.redis.maxEntries : 0)] : []",
    ),
    CelPath::new(
        "collection",
        "$memory_store ? ['spec.vectorStore.collection ' + (has(self.spec.vectorStore.collection) \
         && self.spec.vectorStore.collection.trim() != '' ? self.spec.vectorStore.collection \
         : 'agent-memories')] : []",
    ),
    CelPath::new("secrets", "$memory_redis_secret + $memory_store_secret + $memory_embedding_secret"),
    CelPath::new(
        "secrets.place",
        "[$memory_kind == 'redis' ? 'spec.redis.secretRef ' \
         : $memory_kind == 'vector-store' ? 'spec.vectorStore.secretRef ' : 'spec.backend ']",
    ),
];
