//! The views of the family's objects as far as an apiserver can make them.

use crate::family::cel_reasons::{ADDRESS, CREDENTIALS, OTHER_OBJECTS};
use memgate_model::cel::CelVariable;
use memgate_model::cel_view::{CelPath, CelView};
use memgate_model::memory_view::Role;

use super::api::{MEMORY, VALIDATED_AGENT};
use super::view::NAMESPACE_PATH;

/// Names in references have a namespace, a key and blanks.
const REFERENCE: &str =
    "names of Secrets stand in references with a namespace and a key, which Orloj takes apart";

/// The namespace is that of an annotation.
const NAMESPACE: &str = "the namespace that Orloj sees an object in is its own notion";

/// The views.
pub static VIEWS: [CelView; 2] = [
    CelView {
        name: "memory",
        kinds: &[&MEMORY],
        role: Role::Memory,
        viewed: "true",
        lets: &LETS,
        paths: &MEMORY_PATHS,
        unsaid: &[
            ("endpoint", ADDRESS),
            ("inline", CREDENTIALS),
            ("secrets", REFERENCE),
            ("references", OTHER_OBJECTS),
            (NAMESPACE_PATH, NAMESPACE),
        ],
    },
    CelView {
        name: "agent",
        kinds: &[&VALIDATED_AGENT],
        role: Role::Referrer,
        viewed: "has(self.spec) && has(self.spec.memory)",
        lets: &AGENT_LETS,
        paths: &AGENT_PATHS,
        unsaid: &[("references", OTHER_OBJECTS), (NAMESPACE_PATH, NAMESPACE)],
    },
];

const LETS: [CelVariable; 4] = [
    CelVariable::new(
        "memory_written",
        "has(self.spec) && has(self.spec.provider) ? self.spec.provider.trim().lowerAscii() : ''",
    ),
    CelVariable::new("memory_name", "$memory_written in ['', 'memory'] ? 'in-memory' : $memory_written"),
    CelVariable::new(
        "memory_from_secret",
        "has(self.spec) && has(self.spec.endpoint_secret_ref) && self.spec.endpoint_secret_ref.trim() != ''",
    ),
    CelVariable::new(
        "memory_from_literal",
        "has(self.spec) && has(self.spec.endpoint) && self.spec.endpoint.trim() != ''",
    ),
];

const MEMORY_PATHS: [CelPath; 4] = [
    CelPath::new("backend", "['spec.provider ' + $memory_name]"),
    CelPath::new("provider", "['spec.provider ' + $memory_name]"),
    CelPath::new(
        "durable",
        "$memory_name == 'in-memory' ? ['spec.provider false'] \
         : $memory_name == 'pgvector' ? ['spec.provider true'] : []",
    ),
    CelPath::new(
        "endpoint.from",
        "$memory_name == 'in-memory' ? [] : $memory_from_secret ? ['spec.endpoint_secret_ref secret'] \
         : $memory_from_literal ? ['spec.endpoint literal'] : []",
    ),
];

const AGENT_LETS: [CelVariable; 1] = [
    // What each entry grants; nothing for a bad one.
    CelVariable::new(
        "agent_allow",
        "has(self.spec) && has(self.spec.memory) && has(self.spec.memory.allow) \
         ? self.spec.memory.allow.map(entry, \
         entry.trim().lowerAscii().matches('^(memory[.])?(read|write|search|list|ingest)$') \
         ? entry.trim().lowerAscii().replace('memory.', '') : '') : []",
    ),
];

const AGENT_PATHS: [CelPath; 1] = [
    // Each once, where it stands first.
    CelPath::new(
        "operations",
        "$indices.filter(i, i < size($agent_allow) && $agent_allow[i] != '' \
         && !$indices.exists(j, j < i && $agent_allow[j] == $agent_allow[i]))\
         .map(i, 'spec.memory.allow[' + string(i) + '] ' + $agent_allow[i])",
    ),
];
