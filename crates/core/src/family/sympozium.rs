//! Persistent and shared memory of sympozium.ai.
//!
//! An Agent has private memory through the skill `memory`, and an Ensemble shares memory among its Agents.
//! Pods of an AgentRun get variables, and init containers, sidecars and volumes where their memory needs
//! them.

pub mod api;
pub mod cel_rules;
pub mod codes;
pub mod default;
pub mod inject;
mod lookup;
mod mode;
pub mod validate;
pub mod variables;
pub mod view;
pub mod view_in_cel;

use crate::model::family::{Family, SchemaStandIn};
use crate::model::violation::SchemaViolation;

/// The row of the platform.
pub static FAMILY: Family = Family {
    name: "sympozium",

    validated: &api::VALIDATED,
    validated_if_annotated: &[],
    misnamed: &[],
    defaulted: &api::DEFAULTED,
    memories: &api::MEMORIES,
    watched: &api::WATCHED,
    fetched: &api::FETCHED,

    pod_selectors: &api::POD_SELECTORS,
    honours_required: true,
    fails_open: false,
    validates_changes_only: false,
    ratchets_by_itself: false,

    codes: &codes::ALL,
    inject_label_unknown: &codes::INJECT_LABEL_UNKNOWN,
    cel_tables: &cel_rules::TABLES,
    not_in_cel: &cel_rules::NOT_IN_CEL,
    cel_defaults: &[],
    about_cel_defaults: cel_rules::ABOUT_DEFAULTS,

    crds: &[
        include_str!("../../../../deploy/crds/sympozium.yaml"),
        include_str!("../../../../deploy/crds/sympozium-older.yaml"),
    ],
    hints: include_str!("sympozium/hints.yaml"),
    stand_in: SchemaStandIn {
        code: &codes::SCHEMA,
        unknown_field: Some(&codes::UNKNOWN_FIELD),
        unreleased: &[],
        with_status: &[],
        message: SchemaViolation::message,
        tolerates: validate::tolerates,
    },
    aggregated_server: None,
    wait_probes: &[(
        &api::ENSEMBLE,
        r#"{"agentConfigs":[{"name":"one","systemPrompt":"None."}],"sharedMemory":{"enabled":true,"storageSize":"none"}}"#,
    )],

    viewed: &view::VIEWED,
    transient: &[&api::AGENT_RUN],
    view: view::view,
    view_pod: view::view_pod,
    cel_views: &view_in_cel::VIEWS,

    validate: validate::validate,
    default: default::default,
    inject: inject::inject,
    involved_object: inject::involved_object,
    knows_other_pods: None,
    namespace_of_pod: None,
    stand_in_pods: Some(inject::stand_in_pods),
};
