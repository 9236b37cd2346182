//! What a pod lacks to have its memory.

use crate::family::pod::Injection;
use crate::model::pod::Pod;
use crate::model::snapshot::Questions;

/// What the pod lacks; `None` when it is no agent pod of this family.
#[must_use]
pub fn inject(_pod: &Pod<'_>, _namespace: &str, _questions: &mut Questions<'_>) -> Option<Injection> {
    None
}
