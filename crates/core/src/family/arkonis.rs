//! ArkMemory, ArkAgent and ArkSettings of arkonis.dev, their older names and their successor.
//!
//! An ArkMemory says where an agent's memory is, and an ArkAgent of the same namespace refers to it. The
//! container `agent` of the agent's pods gets environment variables. This family has no sidecars, volumes
//! or memory servers.

pub mod api;
pub mod cel_rules;
pub mod codes;
pub mod default;
pub mod inject;
pub mod validate;
pub mod view;
pub mod view_in_cel;

use crate::model::family::{Family, SchemaStandIn};
use crate::model::violation::SchemaViolation;

/// The row of the platform.
pub static FAMILY: Family = Family {
    name: "arkonis",

    validated: &api::VALIDATED,
    validated_if_annotated: &[],
    misnamed: &api::MISNAMED,
    defaulted: &api::MEMORIES,
    memories: &api::MEMORIES,
    watched: &api::VALIDATED,
    fetched: &[],

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
        include_str!("../../../../deploy/crds/arkonis.yaml"),
        include_str!("../../../../deploy/crds/arkonis-older.yaml"),
        include_str!("../../../../deploy/crds/arkonis-successor.yaml"),
    ],
    hints: include_str!("arkonis/hints.yaml"),
    stand_in: SchemaStandIn {
        code: &codes::SCHEMA,
        unknown_field: Some(&codes::UNKNOWN_FIELD),
        unreleased: &[],
        with_status: &[],
        message: SchemaViolation::message,
        tolerates: |_, _, _| false,
    },
    aggregated_server: None,
    wait_probes: &[
        (&api::ARKONIS.memory, r#"{"backend":"redis"}"#),
        (&api::ARKONIS_OLD.memory, r#"{"backend":"redis"}"#),
        (&api::KUBESWARM.memory, r#"{"backend":"redis"}"#),
        (&api::AGENTOPS.memory, r#"{"backend":"redis"}"#),
    ],

    viewed: &view::VIEWED,
    transient: &[],
    view: view::view,
    view_pod: view::view_pod,
    cel_views: &view_in_cel::VIEWS,

    validate: validate::validate,
    default: default::default,
    inject: inject::inject,
    involved_object: inject::involved_object,
    knows_other_pods: None,
    namespace_of_pod: None,
    stand_in_pods: None,
};
