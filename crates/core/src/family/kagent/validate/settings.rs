//! Reads the settings of kagent that are among the files.

use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;

/// Warns if the settings switch vectors off.
pub(super) fn findings(_subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Finding> {
    Vec::new()
}
