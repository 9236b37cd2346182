//! Memory and Query of ark.mckinsey.com.
//!
//! A Memory points to an HTTP service and a Query claims one. A pod opts in with an annotation and gets
//! environment variables. The faces share `value` (which of several values the platform uses) and `service` (Services and
//! ports).

mod api;
pub mod codes;
mod default;
mod durable;
mod edges;
mod inject;
mod prelude;
mod service;
mod validate;
mod value;
mod view;

use crate::packed::packed;
use memgate_model::family::{Definitions, Faces, Family, Kinds, Pods, SchemaStandIn, Validation, Views};
use memgate_model::kind::{CONFIG_MAP, SERVICE};

/// The row of the platform.
pub static FAMILY: Family = Family {
    name: "ark",
    kinds: Kinds {
        validated: &[&api::MEMORY, &api::QUERY, &api::ARK_CONFIG],
        validated_if_annotated: &[],
        misnamed: &[],
        defaulted: &[&api::MEMORY, &api::QUERY],
        memories: &api::MEMORIES,
        memories_if: None,
        watched: &[&api::MEMORY, &api::STATE_QUERY, &api::ARK_CONFIG],
        in_files: &api::WORKLOADS,
        fetched: &[&SERVICE, &CONFIG_MAP],
        others: include_str!("ark/other_kinds.txt"),
    },
    pods: Pods {
        selectors: &api::POD_SELECTORS,
        honour_required: true,
        inject_label_unknown: Some(&codes::INJECT_LABEL_UNKNOWN),
        ..Pods::NONE
    },
    validation: Validation { open_kinds: &[&api::QUERY], ratchets: true, ..Validation::STRICT },
    meanings: &[],
    edges: &edges::EDGES,
    by_memory: &edges::BY_MEMORY,
    codes: &codes::ALL,
    definitions: Definitions {
        crds: &[|| packed!("ark.yaml")],
        spellings: include_str!("ark/spellings.yaml"),
        references: include_str!("ark/references.yaml"),
        stand_in: SchemaStandIn {
            repeated: &[&codes::MEMORY_PORT_TYPE],
            with_status: &[&api::MEMORY],
            tolerates: validate::tolerates,
            old_fields: &api::OLD_FIELDS,
            ..SchemaStandIn::new(&codes::SCHEMA, &codes::UNKNOWN_FIELD, |_| "the CRD of Ark 0.1.67")
        },
        aggregated_server: Some(api::AGGREGATED_SERVER),
        wait_probes: &[(&api::MEMORY, r#"{"address":{}}"#)],
    },
    views: Views {
        kinds: &view::VIEWED,
        tables: &view::TABLES,
        transient: &[&api::QUERY],
        of_object: view::view,
        of_pod: view::view_pod,
        own_namespace_path: None,
        own_namespace: |_, namespace| namespace,
        policy_fields: &default::POLICY_FIELDS,
    },
    faces: Faces {
        validate: validate::validate,
        keep: validate::ratchet,
        default: default::default,
        inject: inject::inject,
        involved_object: inject::involved_object,
    },
};
