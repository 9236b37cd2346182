//! The defaults of the family's kinds.

use crate::family::Subject;
use crate::model::edit::Edit;
use crate::model::snapshot::Questions;

/// One edit for each default that an object lacks.
#[must_use]
pub fn default(_subject: &Subject<'_>, _questions: &mut Questions<'_>) -> Vec<Edit> {
    Vec::new()
}
