//! ArkMemory, ArkAgent and ArkSettings of arkonis.dev, their older names and their successor.
//!
//! An ArkMemory says where an agent's memory is, and an ArkAgent of the same namespace refers to it. The
//! container `agent` of the agent's pods gets environment variables. This family does not add sidecars,
//! volumes or memory servers.

mod api;
pub mod codes;
mod default;
mod edges;
mod inject;
mod prelude;
mod validate;
mod view;

use super::packed::packed;
use memgate_model::family::{Definitions, Faces, Family, Kinds, Pods, SchemaStandIn, Validation, Views};

/// The row of the platform.
pub static FAMILY: Family = Family {
    name: "arkonis",
    kinds: Kinds {
        validated: &api::VALIDATED,
        validated_if_annotated: &[],
        misnamed: &api::MISNAMED,
        defaulted: &api::MEMORIES,
        memories: &api::MEMORIES,
        memories_if: None,
        watched: &api::VALIDATED,
        in_files: &[],
        fetched: &[],
        others: include_str!("arkonis/other_kinds.txt"),
    },
    pods: Pods {
        selectors: &api::POD_SELECTORS,
        honour_required: true,
        inject_label_unknown: Some(&codes::INJECT_LABEL_UNKNOWN),
        known_otherwise: None,
        declared_namespace: None,
        labels_for_agent: Some(inject::labels_for_agent),
        adds_containers: false,
    },
    validation: Validation {
        follows: &[&codes::MEMORY_INVALID, &codes::POD_MEMORY_INVALID],
        reads: include_str!("arkonis/reads.txt"),
        ..Validation::STRICT
    },
    meanings: &[],
    edges: &edges::EDGES,
    by_memory: &edges::BY_MEMORY,
    codes: &codes::ALL,
    definitions: Definitions {
        crds: &[
            || packed!("arkonis.yaml"),
            || packed!("arkonis-older.yaml"),
            || packed!("arkonis-successor.yaml"),
        ],
        spellings: include_str!("arkonis/spellings.yaml"),
        references: include_str!("arkonis/references.yaml"),
        stand_in: SchemaStandIn {
            wrong_type: &codes::FIELD_TYPE,
            repeated: &[&codes::BACKEND_UNKNOWN, &codes::PROVIDER_UNKNOWN, &codes::MEMORY_BACKEND_UNKNOWN],
            other_release: validate::other_release,
            ..SchemaStandIn::new(&codes::SCHEMA, &codes::UNKNOWN_FIELD, |kind| {
                if kind.group == api::KUBESWARM.memory.group {
                    "the CRD of the kubeswarm chart 0.4.0"
                } else {
                    "the CRD of arkonis 0.5.7"
                }
            })
        },
        aggregated_server: None,
        wait_probes: &[
            (&api::ARKONIS.memory, r#"{"backend":"redis"}"#),
            (&api::ARKONIS_OLD.memory, r#"{"backend":"redis"}"#),
            (&api::KUBESWARM.memory, r#"{"backend":"redis"}"#),
            (&api::AGENTOPS.memory, r#"{"backend":"redis"}"#),
        ],
    },
    views: Views {
        kinds: &view::VIEWED,
        tables: &view::TABLES,
        transient: &[],
        of_object: view::view,
        of_pod: view::view_pod,
        own_namespace_path: None,
        own_namespace: |_, namespace| namespace,
        policy_fields: &default::POLICY_FIELDS,
    },
    faces: Faces {
        validate: validate::validate,
        keep: |_, findings| findings,
        default: default::default,
        inject: inject::inject,
        involved_object: inject::involved_object,
    },
};
