//! The views of the family's objects as far as an apiserver can make them.

use crate::family::cel_reasons::{ADDRESS, CREDENTIALS, OTHER_OBJECTS, SWITCHES};
use memgate_model::cel_view::{CelPath, CelView};
use memgate_model::kind::NAMESPACE;
use memgate_model::memory_view::Role;

use super::api::{AGENT, MEMORY_BACKEND, TASK};

/// The views.
pub static VIEWS: [CelView; 4] = [
    CelView {
        name: "backend",
        kinds: &[&MEMORY_BACKEND],
        role: Role::Memory,
        viewed: "true",
        lets: &[],
        paths: &BACKEND_PATHS,
        unsaid: &[("endpoint", ADDRESS)],
    },
    CelView {
        name: "agent",
        kinds: &[&AGENT],
        role: Role::Referrer,
        viewed: "true",
        lets: &[],
        paths: &AGENT_PATHS,
        unsaid: &[("operations", SWITCHES)],
    },
    CelView {
        name: "task",
        kinds: &[&TASK],
        role: Role::Referrer,
        viewed: "has(self.spec) && has(self.spec.type) && self.spec.type == 'ai'",
        lets: &[],
        paths: &[],
        unsaid: &[("operations", SWITCHES), ("inline", CREDENTIALS), ("references", OTHER_OBJECTS)],
    },
    CelView {
        name: "namespace",
        kinds: &[&NAMESPACE],
        role: Role::Referrer,
        viewed: "has(self.metadata.annotations) \
                 && self.metadata.annotations.exists(key, key.startsWith('memgate.dev/orka-'))",
        lets: &[],
        paths: &[],
        unsaid: &[("operations", SWITCHES)],
    },
];

const BACKEND_PATHS: [CelPath; 5] = [
    CelPath::new(
        "backend",
        "has(self.spec) && has(self.spec.protocol) && has(self.spec.protocol.profile) \
         && self.spec.protocol.profile != '' ? ['spec.protocol.profile ' + self.spec.protocol.profile] : []",
    ),
    CelPath::new(
        "endpoint.from",
        "has(self.spec) && has(self.spec.deployment) && has(self.spec.deployment.endpoint) \
         && self.spec.deployment.endpoint != '' ? ['spec.deployment.endpoint literal'] : []",
    ),
    CelPath::new(
        "collection",
        "has(self.spec) && has(self.spec.store) && has(self.spec.store.name) \
         && self.spec.store.name != '' ? ['spec.store.name ' + self.spec.store.name] : []",
    ),
    CelPath::new(
        "secrets",
        "has(self.spec) && has(self.spec.clientAuth) && has(self.spec.clientAuth.bearerTokenSecretRef) \
         && has(self.spec.clientAuth.bearerTokenSecretRef.name) \
         && self.spec.clientAuth.bearerTokenSecretRef.name != '' \
         ? ['spec.clientAuth.bearerTokenSecretRef.name ' + self.spec.clientAuth.bearerTokenSecretRef.name] : []",
    ),
    CelPath::new("secrets.place", "['spec.clientAuth.bearerTokenSecretRef.name ']"),
];

const AGENT_PATHS: [CelPath; 2] = [
    CelPath::new(
        "secrets",
        "has(self.spec) && has(self.spec.secretRef) && has(self.spec.secretRef.name) \
         && self.spec.secretRef.name != '' ? ['spec.secretRef.name ' + self.spec.secretRef.name] : []",
    ),
    CelPath::new("secrets.place", "['spec.secretRef.name ']"),
];
