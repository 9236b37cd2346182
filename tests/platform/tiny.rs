//! A platform of one kind, as small as one can be: the Notebook of tiny.dev. A pod that bears the label
//! `tiny.dev/notebook` gets the URL of the Notebook that the label names.

pub(crate) mod api;
pub(crate) mod cel_rules;
pub(crate) mod codes;
pub(crate) mod default;
pub(crate) mod inject;
pub(crate) mod validate;

use memgate::model::family::{Family, SchemaStandIn};
use memgate::model::violation::SchemaViolation;

/// The row of the platform.
pub(crate) static FAMILY: Family = Family {
    name: "tiny",

    validated: &[&api::NOTEBOOK],
    validated_if_annotated: &[],
    misnamed: &[],
    defaulted: &[&api::NOTEBOOK],
    memories: &[&api::NOTEBOOK],
    watched: &[&api::NOTEBOOK],
    fetched: &[],

    pod_selectors: &api::POD_SELECTORS,
    honours_required: true,
    fails_open: false,
    validates_changes_only: false,
    ratchets_by_itself: false,

    codes: &codes::ALL,
    inject_label_unknown: &codes::INJECT_LABEL_UNKNOWN,
    cel_tables: &cel_rules::TABLES,
    not_in_cel: &[],
    cel_defaults: &[],
    about_cel_defaults: "the default of `spec.pages` is in the schema of the definition",

    crds: &[include_str!("tiny/notebook.yaml")],
    hints: "",
    stand_in: SchemaStandIn {
        code: &codes::SCHEMA,
        unknown_field: None,
        unreleased: &[],
        with_status: &[],
        message: SchemaViolation::message,
        tolerates: |_, _, _| false,
    },
    aggregated_server: None,
    wait_probes: &[(&api::NOTEBOOK, "{}")],

    viewed: &[],
    transient: &[],
    view: |_, _| None,
    view_pod: |_, _, _| None,
    cel_views: &[],

    validate: validate::validate,
    default: default::default,
    inject: inject::inject,
    involved_object: inject::involved_object,
    knows_other_pods: None,
    namespace_of_pod: None,
    stand_in_pods: None,
};
