//! Durable memory of the Tasks of core.orka.ai.
//!
//! Orka has no memory resource. Memories are rows behind the controller's API, and the worker of a Task of
//! type `ai` puts some of them into its prompt. Annotations on a Task, its scheduled parent, its Agent and
//! its Namespace decide whether it does so, how many memories it takes, and whether the worker adds the
//! memory tools. memgate writes these settings as up to four plain variables into the container `worker`.
//!
//! ```text
//! pod ──ORKA_TASK_NAME──▶ Task ──label──▶ scheduled parent
//!                           └──agentRef──▶ Agent, then the Namespace of the pod
//! ```
//!
//! Memory is best effort in Orka, so pods are never refused.

mod api;
pub mod codes;
mod edges;
mod inject;
mod prelude;
mod setting;
mod validate;
mod view;

use crate::packed::packed;
use memgate_model::family::{Definitions, Faces, Family, Kinds, Pods, SchemaStandIn, Validation, Views};
use memgate_model::kind::{CONFIG_MAP, NAMESPACE};

/// The row of the platform.
pub static FAMILY: Family = Family {
    name: "orka",
    kinds: Kinds {
        validated: &[&api::AGENT, &api::TASK, &api::MEMORY_BACKEND, &NAMESPACE],
        validated_if_annotated: &[(&NAMESPACE, api::ANNOTATION_PREFIX)],
        misnamed: &[],
        defaulted: &[],
        memories: &[],
        memories_if: None,
        watched: &[&api::STATE_AGENT, &api::STATE_TASK, &api::TOOL, &NAMESPACE],
        in_files: &[(&CONFIG_MAP, None)],
        fetched: &[],
        others: include_str!("orka/other_kinds.txt"),
    },
    pods: Pods {
        selectors: &api::POD_SELECTORS,
        inject_label_unknown: Some(&codes::INJECT_LABEL_UNKNOWN),
        known_otherwise: Some(inject::is_orka_pod),
        declared_namespace: Some(inject::declared_namespace),
        ..Pods::NONE
    },
    validation: Validation {
        fails_open: true,
        changes_only: true,
        reads: include_str!("orka/reads.txt"),
        ..Validation::STRICT
    },
    meanings: &api::MEANINGS,
    edges: &edges::EDGES,
    by_memory: &edges::BY_MEMORY,
    codes: &codes::ALL,
    definitions: Definitions {
        crds: &[|| packed!("orka.yaml")],
        spellings: include_str!("orka/spellings.yaml"),
        references: include_str!("orka/references.yaml"),
        stand_in: SchemaStandIn {
            unreleased: &[&api::MEMORY_BACKEND],
            ..SchemaStandIn::new(&codes::SCHEMA, &codes::UNKNOWN_FIELD, |_| "the CRD of Orka a29444a7")
        },
        aggregated_server: None,
        wait_probes: &[(
            &api::TASK,
            r#"{"type":"ai","prompt":"None.","env":[{"name":"ORKA_MEMORY_CONTEXT_LIMIT","value":"0"}]}"#,
        )],
    },
    views: Views {
        kinds: &view::VIEWED,
        tables: &view::TABLES,
        transient: &[&api::TASK],
        of_object: view::view,
        of_pod: view::view_pod,
        own_namespace_path: None,
        own_namespace: |_, namespace| namespace,
        policy_fields: &[],
    },
    faces: Faces {
        validate: validate::validate,
        keep: |_, findings| findings,
        default: |_, _| Vec::new(),
        inject: inject::inject,
        involved_object: inject::involved_object,
    },
};
