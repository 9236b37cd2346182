//! What one line of kagent does not read: objects of the other line, older kinds, and fields at the wrong place.

use memgate_model::family::Subject;
use memgate_model::finding::Finding;
use memgate_model::state_reader::StateReader;

/// The findings about objects and fields that no kagent, or not this one, reads.
pub(super) fn findings(_subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Finding> {
    Vec::new()
}
