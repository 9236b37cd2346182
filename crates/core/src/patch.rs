//! JSON patches (RFC 6902): edits as the bytes that the apiserver applies, and the check that they
//! apply.
//!
//! Nothing in here knows families or findings. A patch is written edit by edit; none is ever computed as
//! the difference of two objects, which could touch what no rule is about.

pub mod apply;

use serde::{Serialize, Serializer};

use memgate_model::edit::{Edit, Value};
use memgate_primitives::pointer::Pointer;

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

impl Patch<'_> {
    /// Whether the document has more bytes than this.
    pub fn is_longer_than(&self, most: usize) -> bool {
        if self.0.iter().map(Edit::most_bytes).sum::<usize>() <= most {
            return false;
        }
        // The last edit has no comma behind it.
        self.0.iter().map(Edit::bytes).sum::<usize>() + "[]".len() > most + 1
    }
}

#[derive(Serialize)]
struct PatchOperation<'e> {
    op: &'static str,
    path: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'e Value>,
}

impl Serialize for Patch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|edit| PatchOperation {
            op: edit.op.name(),
            path: edit.pointer.as_str(),
            value: Some(&edit.value).filter(|value| **value != Value::Nothing),
        }))
    }
}
