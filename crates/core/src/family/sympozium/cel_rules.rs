//! The rules that the apiserver can check by itself.

use memgate_model::cel::{CelRule, CelTable, CelVariable, NotInCel};
use memgate_model::finding::Code;

use super::api::{AGENT, AGENT_OLD, AGENT_RUN, ENSEMBLE, ENSEMBLE_OLD, SKILL_PACK};
use super::codes::{
    ACCESS_CONFIG_REQUIRED, ACCESS_UNSUPPORTED, AGENT_NAME_TOO_LONG, CONFIG_NAME_DUPLICATE,
    CONFIG_NAME_REQUIRED, DECAY_UNSUPPORTED, EVIDENCE_KIND_UNSUPPORTED, NAME_TOO_LONG,
    PERMEABILITY_CONFIG_REQUIRED, RESERVED_VOLUME, SCHEMA, STORAGE_SIZE_INVALID, TOKEN_ACTION_UNSUPPORTED,
    TOOL_NAME_BUILTIN, TRUST_GROUP_NAME_REQUIRED, TTL_INVALID, TYPE_INVALID, VISIBILITY_UNSUPPORTED,
};

/// The tables of the family.
pub static TABLES: [CelTable; 5] = [
    CelTable {
        name: "sympozium-ensembles",
        kinds: &[&ENSEMBLE],
        lets: &[
            CelVariable::new(
                "configs",
                "has(self.spec) && has(self.spec.agentConfigs) && size(self.spec.agentConfigs) <= 128 \
                 ? self.spec.agentConfigs.map(config, has(config.name) && size(config.name) <= 256, config.name) \
                 : []",
            ),
            EXCLUDED,
            SHARED,
            TTL,
        ],
        rules: &ENSEMBLE_RULES,
    },
    CelTable {
        name: "sympozium-personapacks",
        kinds: &[&ENSEMBLE_OLD],
        lets: &[
            CelVariable::new(
                "configs",
                "has(self.spec) && has(self.spec.personas) && size(self.spec.personas) <= 128 \
                 ? self.spec.personas.map(config, has(config.name) && size(config.name) <= 256, config.name) \
                 : []",
            ),
            EXCLUDED,
            SHARED,
            TTL,
        ],
        rules: &ENSEMBLE_RULES,
    },
    CelTable {
        name: "sympozium-agents",
        kinds: &[&AGENT, &AGENT_OLD],
        lets: &[],
        rules: &[CelRule {
            code: &NAME_TOO_LONG,
            faults: "request.operation == 'CREATE' && size(self.metadata.name) > 56 && has(self.spec) \
                     && has(self.spec.skills) && size(self.spec.skills) <= 128 && self.spec.skills.exists(\
                     skill, has(skill.skillPackRef) && skill.skillPackRef == 'memory') ? [''] : []",
            message: "metadata.name: Too long: may not be more than 56 characters, \
                      or its Service \"…-memory\" has over 63",
        }],
    },
    CelTable {
        name: "sympozium-agentruns",
        kinds: &[&AGENT_RUN],
        lets: &[],
        rules: &[CelRule {
            code: &RESERVED_VOLUME,
            faults: "has(self.spec) && has(self.spec.volumes) && size(self.spec.volumes) <= 128 \
                     ? self.spec.volumes.filter(volume, has(volume.name) && volume.name in \
                     ['workspace', 'ipc', 'skills', 'tmp', 'memory', 'mcp-config', 'sidecar-tools', \
                     'harness-home', 'sympozium-run-api-access']).map(volume, volume.name) : []",
            message: "AgentRun.spec.volumes: name is reserved by Sympozium (including workspace, ipc, \
                      skills, tmp, memory, mcp-config, and sympozium-run-api-access)",
        }],
    },
    CelTable {
        name: "sympozium-skillpacks",
        kinds: &[&SKILL_PACK],
        lets: &[],
        rules: &[CelRule {
            code: &TOOL_NAME_BUILTIN,
            faults: "has(self.spec) && has(self.spec.sidecar) && has(self.spec.sidecar.tools) \
                     && size(self.spec.sidecar.tools) <= 128 \
                     ? self.spec.sidecar.tools.filter(tool, has(tool.name) && tool.name in \
                     ['memory_search', 'memory_store', 'memory_list', 'memory_update', 'memory_forget', \
                     'workflow_memory_search', 'workflow_memory_store', 'workflow_memory_list', \
                     'workflow_memory_update', 'workflow_memory_forget', 'execute_command', 'read_file', \
                     'write_file', 'edit_file', 'list_directory', 'send_channel_message', 'fetch_url', \
                     'schedule_task', 'delegate_to_persona', 'spawn_subagents']).map(tool, tool.name) : []",
            message: "SkillPack sidecar tool: name collides with a built-in Sympozium tool",
        }],
    },
];

const EXCLUDED: CelVariable = CelVariable::new(
    "excluded",
    "has(self.spec) && has(self.spec.excludePersonas) && size(self.spec.excludePersonas) <= 128 \
     ? self.spec.excludePersonas.filter(name, size(name) <= 256) : []",
);

const SHARED: CelVariable = CelVariable::new(
    "shared",
    "has(self.spec) && has(self.spec.sharedMemory) && has(self.spec.sharedMemory.enabled) \
     && self.spec.sharedMemory.enabled",
);

const TTL: CelVariable = CelVariable::new(
    "ttl",
    "has(self.spec) && has(self.spec.sharedMemory) && has(self.spec.sharedMemory.membrane) \
     && has(self.spec.sharedMemory.membrane.timeDecay) \
     && has(self.spec.sharedMemory.membrane.timeDecay.ttl) \
     ? self.spec.sharedMemory.membrane.timeDecay.ttl : ''",
);

const ENSEMBLE_RULES: [CelRule; 5] = [
    CelRule {
        code: &CONFIG_NAME_REQUIRED,
        faults: "$configs.filter(name, name == '')",
        message: "spec: a config has no name: Required value",
    },
    CelRule {
        code: &NAME_TOO_LONG,
        faults: "request.operation == 'CREATE' && $shared && size(self.metadata.name) > 49 ? [''] : []",
        message: "metadata.name: Too long: may not be more than 49 characters, \
                  or its Service \"…-shared-memory\" has over 63",
    },
    // A config that the stored Ensemble has already has its Agent, whatever its name.
    CelRule {
        code: &AGENT_NAME_TOO_LONG,
        faults: "$configs.filter(name, name != '' && size(self.metadata.name) + 1 + size(bytes(name)) > 56 \
                 && !(name in $excluded) && !(oldObject != null && name in variables.configs_before))",
        message: "spec: the name of the Ensemble and that of a config are Too long: \
                  together they may not be more than 55 characters",
    },
    CelRule {
        code: &STORAGE_SIZE_INVALID,
        faults: "$shared && has(self.spec.sharedMemory.storageSize) \
                 && self.spec.sharedMemory.storageSize != '' \
                 && size(self.spec.sharedMemory.storageSize) <= 256 \
                 && !(isQuantity(self.spec.sharedMemory.storageSize) \
                 && quantity(self.spec.sharedMemory.storageSize).isGreaterThan(quantity('0'))) \
                 ? [self.spec.sharedMemory.storageSize] : []",
        message: "spec.sharedMemory.storageSize: Invalid value: \
                  must be a quantity greater than 0, e.g. \"1Gi\"",
    },
    // Short ones with short numbers only are taken for their value: Go's reader fails of greater ones.
    CelRule {
        code: &TTL_INVALID,
        faults: "$ttl != '' && size($ttl) <= 4096 \
                 && (!$ttl.matches('^[+-]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$') \
                 || size($ttl) <= 20 && !$ttl.matches('[0-9]{7}') && duration($ttl) <= duration('0s')) \
                 ? [$ttl] : []",
        message: "spec.sharedMemory.membrane.timeDecay.ttl: Invalid value: \
                  must be a Go duration greater than 0, e.g. \"168h\"",
    },
];

/// The codes that deny and are not checked in CEL.
pub static NOT_IN_CEL: [(&Code, NotInCel); 11] = [
    (&SCHEMA, NotInCel::Schema),
    (&TYPE_INVALID, NotInCel::Schema),
    (&VISIBILITY_UNSUPPORTED, NotInCel::Schema),
    (&ACCESS_UNSUPPORTED, NotInCel::Schema),
    (&ACCESS_CONFIG_REQUIRED, NotInCel::Schema),
    (&PERMEABILITY_CONFIG_REQUIRED, NotInCel::Schema),
    (&TRUST_GROUP_NAME_REQUIRED, NotInCel::Schema),
    (&TOKEN_ACTION_UNSUPPORTED, NotInCel::Schema),
    (&DECAY_UNSUPPORTED, NotInCel::Schema),
    (&EVIDENCE_KIND_UNSUPPORTED, NotInCel::Schema),
    (
        &CONFIG_NAME_DUPLICATE,
        NotInCel::NotExpressible(
            "two configs of one name are refused only where they differ in any field, \
                         and CEL would compare each with all others",
        ),
    ),
];

/// Which of the family's defaults the apiserver can write.
pub const ABOUT_DEFAULTS: &str = "the skills and the Ensemble of an AgentRun are its Agent's, and a policy sees \
    no object that another one names";
