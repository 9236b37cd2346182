//! A platform of one kind, as small as one can be: the Notebook of tiny.dev. A pod that bears the label
//! `tiny.dev/notebook` gets the URL of the Notebook that the label names.

pub(crate) mod api;
pub(crate) mod codes;
pub(crate) mod default;
pub(crate) mod edges;
pub(crate) mod inject;
pub(crate) mod validate;
pub(crate) mod view;

use memgate_model::family::{Definitions, Faces, Family, Kinds, Pods, SchemaStandIn, Validation, Views};

/// The row of the platform.
pub(crate) static FAMILY: Family = Family {
    name: "tiny",
    kinds: Kinds {
        validated: &[&api::NOTEBOOK],
        validated_if_annotated: &[],
        misnamed: &[],
        defaulted: &[&api::NOTEBOOK],
        memories: &[&api::NOTEBOOK],
        memories_if: None,
        watched: &[&api::NOTEBOOK],
        in_files: &[],
        fetched: &[],
        others: "",
    },
    pods: Pods {
        selectors: &api::POD_SELECTORS,
        honour_required: true,
        inject_label_unknown: Some(&codes::INJECT_LABEL_UNKNOWN),
        known_otherwise: None,
        declared_namespace: None,
        labels_for_agent: None,
        adds_containers: false,
    },
    validation: Validation::STRICT,
    meanings: &[],
    edges: &edges::EDGES,
    by_memory: &edges::BY_MEMORY,
    codes: &codes::ALL,
    definitions: Definitions {
        crds: &[|| include_str!("tiny/notebook.yaml").into()],
        spellings: "",
        references: "",
        stand_in: SchemaStandIn::new(&codes::SCHEMA, &codes::UNKNOWN_FIELD, |_| "the CRD of the platform"),
        aggregated_server: None,
        wait_probes: &[(&api::NOTEBOOK, "{}")],
    },
    views: Views {
        kinds: &view::VIEWED,
        tables: &view::TABLES,
        transient: &[],
        of_object: view::of_object,
        of_pod: view::of_pod,
        own_namespace_path: None,
        own_namespace: |_, namespace| namespace,
        policy_fields: &view::POLICY_FIELDS,
    },
    faces: Faces {
        validate: validate::validate,
        keep: |_, findings| findings,
        default: default::default,
        inject: inject::inject,
        involved_object: inject::involved_object,
    },
};
