//! Validates a ModelConfig that is an embedder.

use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;

/// The findings about a ModelConfig, if an object of the state embeds with it.
pub(super) fn findings(_subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Finding> {
    Vec::new()
}
