//! Memory, Agent and ModelEndpoint of orloj.dev.
//!
//! A Memory says where an agent's memory is, and a ModelEndpoint serves its embeddings. An Agent refers to
//! the Memory and lists the operations that it may use. The container `agent` of the agent's Job gets
//! environment variables. Orloj has its own namespaces, which an annotation can set, and every reference is
//! resolved in them (`namespace`).

mod api;
mod claim;
pub mod codes;
mod default;
mod edges;
mod endpoint;
mod inject;
mod namespace;
mod prelude;
mod validate;
mod view;

use crate::message;
use crate::packed::packed;
use memgate_model::family::{Definitions, Faces, Family, Kinds, Pods, SchemaStandIn, Validation, Views};

/// The row of the platform.
pub static FAMILY: Family = Family {
    name: "orloj",
    kinds: Kinds {
        validated: &[&api::MEMORY, &api::VALIDATED_AGENT, &api::MODEL_ENDPOINT],
        validated_if_annotated: &[],
        misnamed: &[],
        defaulted: &[],
        // A Memory depends on its ModelEndpoint.
        memories: &[&api::MEMORY, &api::MODEL_ENDPOINT],
        memories_if: None,
        watched: &[&api::MEMORY, &api::AGENT, &api::MODEL_ENDPOINT],
        in_files: &[(&api::OWN_SECRET, None)],
        fetched: &[],
        others: include_str!("orloj/other_kinds.txt"),
    },
    pods: Pods {
        selectors: &api::POD_SELECTORS,
        honour_required: true,
        inject_label_unknown: Some(&codes::INJECT_LABEL_UNKNOWN),
        labels_for_agent: Some(inject::labels_for_agent),
        ..Pods::NONE
    },
    validation: Validation { reads: include_str!("orloj/reads.txt"), ..Validation::STRICT },
    meanings: &api::MEANINGS,
    edges: &edges::EDGES,
    by_memory: &edges::BY_MEMORY,
    codes: &codes::ALL,
    definitions: Definitions {
        crds: &[|| packed!("orloj.yaml")],
        spellings: include_str!("orloj/spellings.yaml"),
        references: include_str!("orloj/references.yaml"),
        stand_in: SchemaStandIn::new(
            &codes::SCHEMA,
            &codes::UNKNOWN_FIELD,
            |_| "the CRDs of Orloj's operator",
        ),
        aggregated_server: None,
        wait_probes: &[(&api::MEMORY, r#"{"provider":"http"}"#)],
    },
    views: Views {
        kinds: &view::VIEWED,
        tables: &view::TABLES,
        transient: &[],
        of_object: view::view,
        of_pod: view::view_pod,
        own_namespace_path: Some(view::NAMESPACE_PATH),
        own_namespace: claim::effective,
        policy_fields: &default::POLICY_FIELDS,
    },
    faces: Faces {
        validate: validate::validate,
        keep: validate::keep_changed,
        default: |_, _| Vec::new(),
        inject: inject::inject,
        involved_object: inject::involved_object,
    },
};
