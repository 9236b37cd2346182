//! The defaults of the family's kinds.

use crate::model::edit::Edit;
use crate::model::family::Subject;
use crate::model::state_reader::StateReader;

/// One edit for each default that an object lacks.
#[must_use]
pub fn default(_subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Edit> {
    Vec::new()
}
