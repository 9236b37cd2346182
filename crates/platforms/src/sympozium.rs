//! Persistent and shared memory of sympozium.ai.
//!
//! An Agent has private memory through the skill `memory`, and an Ensemble shares memory among its Agents.
//! The pods of an AgentRun get variables. They also get init containers, sidecars and volumes if their
//! memory needs them.

mod api;
pub mod codes;
mod default;
mod edges;
mod inject;
mod lookup;
mod validate;
mod variables;
mod view;

use super::inject::viable::sizes::{LIMIT_RANGE, RESOURCE_QUOTA};
use super::other_kinds;
use super::packed::packed;
use memgate_model::edit::Origin;
use memgate_model::family::{Definitions, Faces, Family, Kinds, Pods, SchemaStandIn, Validation, Views};
use memgate_model::finding::Code;

/// The names of the configs of an Ensemble.
const CONFIGS: &[&str] = &["spec.agentConfigs[].name", "spec.personas[].name"];

/// Whether an edit comes from an entry of an Ensemble, whose Agent is not there: the Ensemble is yet to make it.
pub fn is_of_agent_to_be_made(origin: &Origin) -> bool {
    let lists = CONFIGS.iter().filter_map(|names| names.strip_suffix("[].name"));
    origin.resource.starts_with("Ensemble ") && lists.into_iter().any(|list| origin.field.starts_with(list))
}

/// What findings read besides the field at which they stand.
const READS: &[(&Code, &[&str])] = &[
    (&codes::ACCESS_CONFIG_UNKNOWN, CONFIGS),
    (&codes::PERMEABILITY_CONFIG_UNKNOWN, CONFIGS),
    (&codes::TRUST_GROUP_MEMBER_UNKNOWN, CONFIGS),
    (&codes::RELATIONSHIP_UNKNOWN, CONFIGS),
    (&codes::RELATIONSHIP_UNKNOWN, &["spec.relationships[].type", "spec.stimulus.name"]),
    (&codes::ACCESS_UNCOVERED, CONFIGS),
    (&codes::ACCESS_UNCOVERED, RULES),
    (&codes::EXPOSE_READ_ONLY, RULES),
    (&codes::TRUSTED_WITHOUT_PEERS, CONFIGS),
    (
        &codes::TRUSTED_WITHOUT_PEERS,
        &[
            "spec.relationships[].source",
            "spec.relationships[].target",
            "spec.relationships[].type",
            "spec.sharedMemory.membrane.permeability[].agentConfig",
            "spec.sharedMemory.membrane.trustGroups[].agentConfigs[]",
        ],
    ),
    (&codes::AGENT_NAME_TOO_LONG, &["spec.excludePersonas[]"]),
    (&codes::NAME_NOT_SERVICE, &["spec.excludePersonas[]"]),
    (&codes::MEMBRANE_WITHOUT_MEMORY, &["spec.sharedMemory.enabled"]),
    (
        &codes::TOKEN_NO_EFFECT,
        &[
            "spec.sharedMemory.membrane.tokenBudget.maxTokens",
            "spec.sharedMemory.membrane.tokenBudget.maxTokensPerRun",
        ],
    ),
    (&codes::LEGACY_MEMORY, &["spec.skills[].skillPackRef"]),
    (&codes::AUTO_STORE_NO_EFFECT, &["spec.skills[].skillPackRef"]),
    (&codes::WORKSPACE_NO_EFFECT, &["spec.workspace.perSessionPVC"]),
    (&codes::SIDECAR_WRITER_TOKEN, &["metadata.name"]),
    (&codes::POD_NO_AGENT_CONTAINER, &["spec.containers[].name"]),
];

/// The rules of access to shared memory.
const RULES: &[&str] = &[
    "spec.sharedMemory.accessRules[].agentConfig",
    "spec.sharedMemory.accessRules[].persona",
    "spec.sharedMemory.accessRules[].access",
];

/// The row of the platform.
pub static FAMILY: Family = Family {
    name: "sympozium",
    kinds: Kinds {
        validated: &api::VALIDATED,
        validated_if_annotated: &[],
        misnamed: &[],
        defaulted: &api::DEFAULTED,
        memories: &api::MEMORIES,
        memories_if: None,
        watched: &api::WATCHED,
        in_files: &[(&LIMIT_RANGE, None), (&RESOURCE_QUOTA, None)],
        chart_settings: &[],
        fetched: &api::FETCHED,
        others: other_kinds::SYMPOZIUM,
    },
    pods: Pods {
        selectors: &api::POD_SELECTORS,
        honour_required: true,
        inject_label_unknown: Some(&codes::INJECT_LABEL_UNKNOWN),
        labels_for_agent: Some(inject::labels_for_agent),
        made_agents: Some(lookup::MADE_AGENTS),
        adds_containers: true,
        ..Pods::NONE
    },
    validation: Validation { open_kinds: &api::OPEN, reads: READS, ..Validation::STRICT },
    meanings: &api::MEANINGS,
    edges: &edges::EDGES,
    by_memory: &edges::BY_MEMORY,
    codes: &codes::ALL,
    definitions: Definitions {
        crds: &[
            || packed!("sympozium.yaml"),
            || packed!("sympozium-older.yaml"),
            || packed!("sympozium-sessions.yaml"),
        ],
        hints: include_str!("sympozium/hints.yaml"),
        spellings: include_str!("sympozium/spellings.yaml"),
        references: include_str!("sympozium/references.yaml"),
        stand_in: SchemaStandIn {
            wrong_type: &codes::TYPE_INVALID,
            repeated: &[
                &codes::VISIBILITY_UNSUPPORTED,
                &codes::ACCESS_UNSUPPORTED,
                &codes::TOKEN_ACTION_UNSUPPORTED,
                &codes::DECAY_UNSUPPORTED,
                &codes::EVIDENCE_KIND_UNSUPPORTED,
                &codes::SKILLS_OBJECT_FORM,
            ],
            tolerates: validate::definition::tolerates,
            old_fields: &api::OLD_FIELDS,
            words: &validate::definition::WORDS,
            ..SchemaStandIn::new(&codes::SCHEMA, &codes::UNKNOWN_FIELD, |_| "the CRD of Sympozium 0.10.46")
        },
        departed: None,
        aggregated_server: None,
        wait_probes: &[(
            &api::ENSEMBLE,
            r#"{"agentConfigs":[{"name":"one","systemPrompt":"None."}],"sharedMemory":{"enabled":true,"storageSize":"none"}}"#,
        )],
    },
    views: Views {
        kinds: &view::VIEWED,
        tables: &view::TABLES,
        transient: &[&api::AGENT_RUN],
        of_object: view::view,
        of_pod: view::view_pod,
        own_namespace_path: None,
        own_namespace: |_, namespace| namespace,
        policy_fields: &[],
    },
    faces: Faces {
        validate: validate::validate,
        keep: |_, findings| findings,
        default: default::default,
        inject: inject::inject,
        involved_object: inject::involved_object,
    },
};
