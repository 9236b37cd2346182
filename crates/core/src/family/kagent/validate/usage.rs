//! What a change or a DELETE means for those that use an object.

use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;

/// Warns about a change of an embedder.
pub(super) fn changed(_subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Finding> {
    Vec::new()
}

/// Warns about a DELETE, and never refuses it.
pub(super) fn deleted(_subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Finding> {
    Vec::new()
}
