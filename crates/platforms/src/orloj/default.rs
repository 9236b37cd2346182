//! The fields that policies may fill. memgate itself writes no defaults for the platform.
//!
//! An absent provider means `in-memory` and stays absent. An Agent without a Memory gets none, and only the author of
//! an Agent grants its operations. Written defaults would be reported as drift by tools that compare a cluster with
//! manifests.

use super::prelude::*;
use memgate_model::family::PolicyField;
use memgate_model::policy_field::FieldForm;

/// The fields that policies may fill. An in-memory Memory does not use a Secret.
pub(crate) static POLICY_FIELDS: [PolicyField; 2] = [
    PolicyField {
        kind: &MEMORY,
        pointer: "/spec/embedding_model",
        form: FieldForm::Text,
        fits: |_, _, _| true,
    },
    PolicyField {
        kind: &MEMORY,
        pointer: "/spec/auth",
        form: FieldForm::Reference("secretRef"),
        fits: |_, subject, _| {
            let provider = Memory::read(subject.object).provider;
            provider.is_some_and(|provider| provider != Provider::InMemory)
        },
    },
];
