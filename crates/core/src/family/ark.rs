//! Memory and Query of ark.mckinsey.com.
//!
//! A Memory points to an HTTP service and a Query claims one. A pod opts in with an annotation and gets
//! environment variables. The faces share [`value`] (which of several values the platform uses),
//! [`address`] (URLs) and [`service`] (ports).

pub mod address;
pub mod api;
pub mod cel_rules;
pub mod codes;
pub mod default;
pub mod inject;
pub mod service;
mod url_syntax;
pub mod validate;
pub mod value;
pub mod view;
pub mod view_in_cel;

use crate::model::family::{Family, SchemaStandIn};

/// The row of the platform.
pub static FAMILY: Family = Family {
    name: "ark",

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
    ratchets_by_itself: true,

    codes: &codes::ALL,
    inject_label_unknown: &codes::INJECT_LABEL_UNKNOWN,
    cel_tables: &cel_rules::TABLES,
    not_in_cel: &cel_rules::NOT_IN_CEL,
    cel_defaults: &cel_rules::CEL_DEFAULTS,
    about_cel_defaults: cel_rules::ABOUT_DEFAULTS,

    crds: &[include_str!("../../../../deploy/crds/ark.yaml")],
    hints: include_str!("ark/hints.yaml"),
    stand_in: SchemaStandIn {
        code: &codes::SCHEMA,
        unknown_field: Some(&codes::UNKNOWN_FIELD),
        unreleased: &[],
        with_status: &[&api::MEMORY],
        message: validate::schema_message,
        tolerates: validate::tolerates,
    },
    aggregated_server: Some(api::AGGREGATED_SERVER),
    wait_probes: &[(&api::MEMORY, r#"{"address":{}}"#)],

    viewed: &view::VIEWED,
    transient: &[&api::QUERY],
    view: view::view,
    view_pod: view::view_pod,
    cel_views: &view_in_cel::VIEWS,
    own_namespace_path: None,
    policy_fields: &default::POLICY_FIELDS,

    validate: validate::validate,
    default: default::default,
    inject: inject::inject,
    involved_object: inject::involved_object,
    knows_other_pods: None,
    namespace_of_pod: None,
    stand_in_pods: None,
};
