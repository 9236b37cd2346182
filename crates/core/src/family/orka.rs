//! Durable memory of the Tasks of core.orka.ai.
//!
//! Orka has no memory resource. Memories are rows behind the controller's API, and the worker of a Task of
//! type `ai` puts some of them into its prompt. Annotations on a Task, its scheduled parent, its Agent and
//! its Namespace set whether and how many, and whether the worker adds the memory tools. memgate writes these
//! settings as up to four plain variables into the container `worker`.
//!
//! ```text
//! pod ──ORKA_TASK_NAME──▶ Task ──label──▶ scheduled parent
//!                           └──agentRef──▶ Agent, then the Namespace of the pod
//! ```
//!
//! Memory is best effort in Orka, so pods are never refused.

pub mod api;
pub mod cel_rules;
pub mod codes;
pub mod default;
pub mod inject;
mod memory_tools;
pub mod selector_value;
pub mod setting;
mod task_variable;
pub mod validate;
pub mod view;
pub mod view_in_cel;

use crate::model::family::{Family, SchemaStandIn};
use crate::model::violation::SchemaViolation;

/// The row of the platform.
pub static FAMILY: Family = Family {
    name: "orka",

    validated: &api::VALIDATED,
    validated_if_annotated: &api::VALIDATED_IF_ANNOTATED,
    misnamed: &[],
    defaulted: &api::DEFAULTED,
    memories: &api::MEMORIES,
    watched: &api::WATCHED,
    fetched: &api::FETCHED,

    pod_selectors: &api::POD_SELECTORS,
    honours_required: false,
    fails_open: true,
    validates_changes_only: true,
    ratchets_by_itself: false,

    codes: &codes::ALL,
    inject_label_unknown: &codes::INJECT_LABEL_UNKNOWN,
    cel_tables: &cel_rules::TABLES,
    not_in_cel: &cel_rules::NOT_IN_CEL,
    cel_defaults: &[],
    about_cel_defaults: cel_rules::ABOUT_DEFAULTS,

    crds: &[include_str!("../../../../deploy/crds/orka.yaml")],
    hints: include_str!("orka/hints.yaml"),
    stand_in: SchemaStandIn {
        code: &codes::SCHEMA,
        unknown_field: None,
        unreleased: &[&api::MEMORY_BACKEND],
        with_status: &[],
        message: SchemaViolation::message,
        tolerates: |_, _, _| false,
    },
    aggregated_server: None,
    wait_probes: &[(
        &api::TASK,
        r#"{"type":"ai","prompt":"None.","env":[{"name":"ORKA_MEMORY_CONTEXT_LIMIT","value":"0"}]}"#,
    )],

    viewed: &view::VIEWED,
    transient: &[&api::TASK],
    view: view::view,
    view_pod: view::view_pod,
    cel_views: &view_in_cel::VIEWS,

    validate: validate::validate,
    default: default::default,
    inject: inject::inject,
    involved_object: inject::involved_object,
    knows_other_pods: Some(inject::is_orka_pod),
    namespace_of_pod: Some(inject::declared_namespace),
    stand_in_pods: None,
};
