//! What is wrong with an object of the family's kinds.

use crate::family::Subject;
use crate::model::finding::Finding;
use crate::model::snapshot::Questions;

/// Everything that is wrong with the subject, in no particular order.
#[must_use]
pub fn validate(_subject: &Subject<'_>, _questions: &mut Questions<'_>) -> Vec<Finding> {
    Vec::new()
}
