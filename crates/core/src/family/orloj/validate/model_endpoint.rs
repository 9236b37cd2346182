//! Validates a ModelEndpoint.

use crate::model::finding::Finding;
use crate::model::pointer::Pointer;
use crate::model::tree::Tree;

use super::super::api::ModelEndpoint;
use super::super::codes::MODELENDPOINT_MODEL_REQUIRED;

pub(super) fn findings(object: &Tree) -> Option<Finding> {
    let missing = ModelEndpoint::read(object).default_model.is_none();
    let pointer = Pointer::new("/spec/default_model");
    missing.then(|| Finding::deny(&MODELENDPOINT_MODEL_REQUIRED, pointer, "spec.default_model is required"))
}
