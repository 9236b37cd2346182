//! The kind of the platform and what is read of it.

use memgate_model::kind::Kind;
use memgate_model::schema::{Field, METADATA, Schema};
use memgate_model::selector::PodSelector;

/// The label of a pod that names its Notebook.
pub(crate) const LABEL: &str = "tiny.dev/notebook";

/// What an unset `spec.pages` means.
pub(crate) const PAGES_DEFAULT: i64 = 100;

pub(crate) static NOTEBOOK: Kind = Kind {
    group: "tiny.dev",
    version: "v1",
    kind: "Notebook",
    older: None,
    plural: "notebooks",
    namespaced: true,
    counts: None,
    schema: Schema::Open(&[
        Field::new("apiVersion", Schema::Any),
        Field::new("kind", Schema::Any),
        Field::new("metadata", METADATA),
        Field::new(
            "spec",
            Schema::Open(&[
                Field::new("url", Schema::Text),
                Field::new("pages", Schema::Integer),
                Field::new("keepSeconds", Schema::Integer),
                Field::new("continues", Schema::Text),
            ]),
        ),
    ]),
};

pub(crate) static POD_SELECTORS: [PodSelector; 1] = [PodSelector::labelled("tiny", &[(LABEL, &[])])];
