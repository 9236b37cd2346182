//! The family has no defaults.

use crate::model::edit::Edit;
use crate::model::family::Subject;
use crate::model::state_reader::StateReader;

/// Always empty.
#[must_use]
pub fn default(_subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Edit> {
    Vec::new()
}
