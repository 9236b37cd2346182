//! JSON patches (RFC 6902): edits as the bytes that the apiserver applies, and the check that they
//! apply.
//!
//! Nothing in here knows families or findings. A patch is written edit by edit; none is ever computed as
//! the difference of two objects, which could touch what no rule is about.

pub mod apply;
pub mod verify;

use serde::Serialize;
use serde::ser::SerializeSeq;

use crate::model::edit::{Edit, Value};
use crate::model::pointer::Pointer;

/// A patch that does not fit the object: always a bug in memgate, never a user's mistake.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PatchError {
    /// The object could not be read again.
    #[error("the object could not be read to check the patch")]
    Unreadable,
    /// What an edit points at is not there.
    #[error("the patch does not apply at {0}")]
    At(Pointer),
}

/// Edits that serialize to an RFC 6902 document.
#[derive(Debug, Clone, Copy)]
pub struct Patch<'e>(pub &'e [Edit]);

#[derive(Serialize)]
struct PatchOperation<'e> {
    op: &'static str,
    path: &'e str,
    #[serde(skip_serializing_if = "is_absent")]
    value: &'e Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
const fn is_absent(value: &&Value) -> bool {
    matches!(value, Value::Nothing)
}

impl Serialize for Patch<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut operations = serializer.serialize_seq(Some(self.0.len()))?;
        for edit in self.0 {
            let operation =
                PatchOperation { op: edit.op.name(), path: edit.pointer.as_str(), value: &edit.value };
            operations.serialize_element(&operation)?;
        }
        operations.end()
    }
}
