//! The views of the family's objects as far as an apiserver can make them.

use crate::family::cel_reasons::{ADDRESS, OTHER_OBJECTS};
use memgate_model::cel::CelVariable;
use memgate_model::cel_view::{CelPath, CelView};
use memgate_model::memory_view::Role;

use super::api::{AGENT, AGENT_OLD, AGENT_RUN, ENSEMBLE, ENSEMBLE_OLD, SKILL_PACK};

/// The views.
pub static VIEWS: [CelView; 4] = [
    CelView {
        name: "agent",
        kinds: &[&AGENT, &AGENT_OLD],
        role: Role::Memory,
        viewed: "size($agent_skill) > 0 || $agent_legacy",
        lets: &AGENT_LETS,
        paths: &AGENT_PATHS,
        unsaid: &[("endpoint", ADDRESS), ("references", OTHER_OBJECTS)],
    },
    CelView {
        name: "ensemble",
        kinds: &[&ENSEMBLE, &ENSEMBLE_OLD],
        role: Role::Memory,
        viewed: "has(self.spec) && has(self.spec.sharedMemory) && has(self.spec.sharedMemory.enabled) \
                 && self.spec.sharedMemory.enabled",
        lets: &ENSEMBLE_LETS,
        paths: &ENSEMBLE_PATHS,
        unsaid: &[
            ("endpoint", ADDRESS),
            (
                "sharing",
                "who sees an entry follows from rules, relationships and defaults together, for each config",
            ),
        ],
    },
    CelView {
        name: "pack",
        kinds: &[&SKILL_PACK],
        role: Role::Memory,
        viewed: "has(self.metadata.name) && self.metadata.name == 'memory'",
        lets: &PACK_LETS,
        paths: &PACK_PATHS,
        unsaid: &[("containers", "names of images have a registry and a tag that may be left out")],
    },
    CelView {
        name: "run",
        kinds: &[&AGENT_RUN],
        role: Role::Referrer,
        viewed: "true",
        lets: &[],
        paths: &[],
        unsaid: &[("references", OTHER_OBJECTS)],
    },
];

const AGENT_LETS: [CelVariable; 3] = [
    CelVariable::new(
        "agent_skills",
        "has(self.spec) && has(self.spec.skills) ? $indices.filter(i, i < size(self.spec.skills) \
         && has(self.spec.skills[i].skillPackRef) && self.spec.skills[i].skillPackRef == 'memory') : []",
    ),
    CelVariable::new(
        "agent_skill",
        "size($agent_skills) > 0 ? ['spec.skills[' + string($agent_skills[0]) + '].skillPackRef '] : []",
    ),
    CelVariable::new(
        "agent_legacy",
        "has(self.spec) && has(self.spec.memory) \
         && (!has(self.spec.memory.enabled) || self.spec.memory.enabled)",
    ),
];

const AGENT_PATHS: [CelPath; 2] = [
    CelPath::new(
        "backend",
        "size($agent_skill) > 0 ? $agent_skill.map(place, place + 'sqlite') \
         : $agent_legacy ? ['spec.memory.enabled configmap'] : []",
    ),
    CelPath::new(
        "durable",
        "size($agent_skill) > 0 ? $agent_skill.map(place, place + 'true') \
         : $agent_legacy ? ['spec.memory.enabled true'] : []",
    ),
];

const ENSEMBLE_LETS: [CelVariable; 5] = [
    CelVariable::new(
        "ensemble_size",
        "has(self.spec) && has(self.spec.sharedMemory) && has(self.spec.sharedMemory.storageSize) \
         && self.spec.sharedMemory.storageSize != '' ? self.spec.sharedMemory.storageSize : '1Gi'",
    ),
    CelVariable::new(
        "ensemble_names",
        "!has(self.spec) ? [] : has(self.spec.agentConfigs) \
         ? self.spec.agentConfigs.map(config, has(config.name) ? config.name : '') \
         : has(self.spec.personas) ? self.spec.personas.map(config, has(config.name) ? config.name : '') : []",
    ),
    CelVariable::new(
        "ensemble_excluded",
        "has(self.spec) && has(self.spec.excludePersonas) ? self.spec.excludePersonas : []",
    ),
    // The config of each rule; the current field overrides the old one.
    CelVariable::new(
        "ensemble_ruled",
        "has(self.spec) && has(self.spec.sharedMemory) && has(self.spec.sharedMemory.accessRules) \
         ? self.spec.sharedMemory.accessRules.map(rule, \
         has(rule.agentConfig) && rule.agentConfig != '' ? rule.agentConfig \
         : has(rule.persona) ? rule.persona : '') : []",
    ),
    // Of the rules for a config the first counts.
    CelVariable::new(
        "ensemble_writers",
        "$indices.filter(i, i < size($ensemble_names) && $ensemble_names[i] != '' \
         && !($ensemble_names[i] in $ensemble_excluded) && $ensemble_names.indexOf($ensemble_names[i]) == i \
         && !($ensemble_ruled.indexOf($ensemble_names[i]) >= 0 \
         && has(self.spec.sharedMemory.accessRules[$ensemble_ruled.indexOf($ensemble_names[i])].access) \
         && self.spec.sharedMemory.accessRules[$ensemble_ruled.indexOf($ensemble_names[i])].access \
         == 'read-only'))",
    ),
];

const ENSEMBLE_PATHS: [CelPath; 4] = [
    CelPath::new("backend", "['spec.sharedMemory.enabled sqlite']"),
    CelPath::new("durable", "['spec.sharedMemory.enabled true']"),
    CelPath::new(
        "storageBytes",
        "isQuantity($ensemble_size) ? ['spec.sharedMemory.storageSize ' + $ensemble_size] : []",
    ),
    CelPath::new("sharing.writers", "['spec.sharedMemory.accessRules ' + string(size($ensemble_writers))]"),
];

const PACK_LETS: [CelVariable; 1] = [CelVariable::new(
    "pack_sidecar",
    "has(self.spec) && has(self.spec.sidecar) && has(self.spec.sidecar.image) && self.spec.sidecar.image != ''",
)];

const PACK_PATHS: [CelPath; 4] = [
    CelPath::new("backend", "['spec.sidecar sqlite']"),
    CelPath::new("durable", "['spec.sidecar true']"),
    CelPath::new(
        "secrets",
        "$pack_sidecar && has(self.spec.sidecar.secretRef) && self.spec.sidecar.secretRef != '' \
         ? ['spec.sidecar.secretRef ' + self.spec.sidecar.secretRef] : []",
    ),
    CelPath::new("secrets.place", "$pack_sidecar ? ['spec.sidecar.secretRef '] : []"),
];
