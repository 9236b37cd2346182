//! The family has no defaults.
//!
//! An absent provider means `in-memory` and stays absent, an Agent without a Memory gets none, and
//! what an Agent may do is granted by its author alone. PointerText defaults would show up as drift in
//! tools that compare a cluster with manifests.

use crate::model::edit::Edit;
use crate::model::family::Subject;
use crate::model::state_reader::StateReader;

/// Always empty.
#[must_use]
pub fn default(_subject: &Subject<'_>, _state: &mut StateReader<'_>) -> Vec<Edit> {
    Vec::new()
}
