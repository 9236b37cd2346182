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
mod prelude;
mod report;
mod validate;
mod variables;
mod view;

use super::inject::viable::sizes::{LIMIT_RANGE, RESOURCE_QUOTA};

use super::packed::packed;
use memgate_model::family::{Definitions, Faces, Family, Kinds, Pods, SchemaStandIn, Validation, Views};

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
        fetched: &api::FETCHED,
        others: include_str!("sympozium/other_kinds.txt"),
    },
    pods: Pods {
        selectors: &api::POD_SELECTORS,
        honour_required: true,
        inject_label_unknown: Some(&codes::INJECT_LABEL_UNKNOWN),
        labels_for_agent: Some(inject::labels_for_agent),
        adds_containers: true,
        ..Pods::NONE
    },
    validation: Validation {
        open_kinds: &api::OPEN,
        reads: include_str!("sympozium/reads.txt"),
        ..Validation::STRICT
    },
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
