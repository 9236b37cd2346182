//! Memory, Agent and ModelEndpoint of orloj.dev.
//!
//! A Memory says where an agent's memory is, and a ModelEndpoint serves its embeddings. An Agent refers to
//! the Memory and lists the operations that it may use. The container `agent` of the agent's Job gets
//! environment variables. Orloj has its own namespaces, which an annotation can override, and every
//! reference is resolved in these (`namespace`).

pub mod api;
pub mod cel_rules;
pub mod codes;
pub mod default;
pub mod inject;
pub mod validate;
pub mod view;
pub mod view_in_cel;

mod endpoint;
mod namespace;
mod share;

use super::message;
use crate::model::family::{Family, SchemaStandIn};
use crate::model::violation::SchemaViolation;

/// The row of the platform.
pub static FAMILY: Family = Family {
    name: "orloj",

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

    crds: &[include_str!("../../../../deploy/crds/orloj.yaml")],
    hints: include_str!("orloj/hints.yaml"),
    stand_in: SchemaStandIn {
        code: &codes::SCHEMA,
        unknown_field: Some(&codes::UNKNOWN_FIELD),
        unreleased: &[],
        with_status: &[],
        message: SchemaViolation::message,
        tolerates: |_, _, _| false,
    },
    aggregated_server: None,
    wait_probes: &[(&api::MEMORY, r#"{"provider":"http"}"#)],

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
