//! Long-term memory of the agents of kagent.
//!
//! kagent has no memory resource. It keeps memories as rows with vectors in its own database. The section `memory` of an
//! Agent (0.x) or a Harness (1.x) switches this on, and names a ModelConfig that computes the vectors: the embedder.
//!
//! ```text
//! 0.x  Agent, SandboxAgent ──spec.declarative.memory.modelConfig──▶ ModelConfig     (kagent.dev)
//! 1.x  Agent ──harnessRef──▶ Harness ──spec.kagent.memory.modelConfigRef──▶ ModelConfig     (api.kagent.dev)
//! ```
//!
//! memgate only checks these objects. Pods of 0.x are complete when their Agent is, and agents of 1.x have no pods.

mod api;
mod block;
pub mod codes;
mod default;
mod edges;
mod embedder;
mod prelude;
mod validate;
mod view;

use crate::packed::packed;
use memgate_model::family::{Definitions, Faces, Family, Kinds, Pods, SchemaStandIn, Validation, Views};
use memgate_model::kind::CONFIG_MAP;

/// The row of the platform.
pub static FAMILY: Family = Family {
    name: "kagent",
    kinds: Kinds {
        validated: &api::VALIDATED,
        validated_if_annotated: &[],
        misnamed: &api::MISNAMED,
        defaulted: &[],
        memories: &api::MODEL_CONFIGS,
        memories_if: Some((&api::AGENTS, api::HAS_MEMORY)),
        watched: &api::VALIDATED,
        in_files: &[(&CONFIG_MAP, None), (&api::MOVED_HARNESS, None)],
        fetched: &[],
        others: include_str!("kagent/other_kinds.txt"),
    },
    pods: Pods { known_otherwise: Some(api::is_kagent_pod), ..Pods::NONE },
    validation: Validation {
        fails_open: true,
        changes_only: true,
        reads: include_str!("kagent/reads.txt"),
        chart_settings: &[validate::CHART_SETTING],
        ..Validation::STRICT
    },
    meanings: &[],
    edges: &edges::EDGES,
    by_memory: &edges::BY_MEMORY,
    codes: &codes::ALL,
    definitions: Definitions {
        crds: &[|| packed!("kagent.yaml"), || packed!("kagent-older.yaml")],
        spellings: include_str!("kagent/spellings.yaml"),
        references: include_str!("kagent/references.yaml"),
        stand_in: SchemaStandIn {
            wrong_type: &codes::FIELD_TYPE,
            moved: api::moved,
            ..SchemaStandIn::new(&codes::SCHEMA, &codes::UNKNOWN_FIELD, |kind| {
                if kind.group == api::NEWER_GROUP {
                    "the CRD of kagent 1.0.0"
                } else {
                    "the CRD of kagent 0.10"
                }
            })
        },
        aggregated_server: None,
        wait_probes: &api::WAIT_PROBES,
    },
    views: Views {
        kinds: &view::VIEWED,
        tables: &view::TABLES,
        transient: &[],
        of_object: view::view,
        of_pod: |_, _, _| None,
        own_namespace_path: None,
        own_namespace: |_, namespace| namespace,
        policy_fields: &default::POLICY_FIELDS,
    },
    faces: Faces {
        validate: validate::validate,
        keep: |_, findings| findings,
        default: |_, _| Vec::new(),
        inject: |_, _, _| None,
        involved_object: |_, _, _| None,
    },
};
