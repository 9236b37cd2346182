//! JSON patches (RFC 6902): edits as the bytes that the apiserver applies, and the check that they
//! apply.
//!
//! Nothing in here knows families or findings. A patch is written edit by edit; none is ever computed as
//! the difference of two objects, which could touch what no rule is about.

pub mod apply;

use std::io;

use serde::Serialize;
use serde::ser::SerializeSeq;

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
    #[must_use]
    pub fn is_longer_than(&self, most: usize) -> bool {
        let about: usize = self.0.iter().map(Edit::bytes).sum();
        if about.saturating_mul(MAX_ESCAPE_BYTES) <= most {
            return false;
        }
        let mut bytes = Bytes { left: most };
        serde_json::to_writer(&mut bytes, self).is_err()
    }
}

/// How many bytes one that is escaped takes at most, as in `\u001f`.
const MAX_ESCAPE_BYTES: usize = 6;

/// Counts what is written, up to a limit.
struct Bytes {
    left: usize,
}

impl io::Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

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
