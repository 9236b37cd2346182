//! The digest of a JSON object, by which objects are compared without keeping them.
//!
//! Two different objects may share a digest; they then count as equal, which harms only the user that made them.

use std::hash::{BuildHasherDefault, DefaultHasher};

use crate::content_hash::ContentHash;

/// The digest of a JSON text. The order of fields does not matter, nor does a field at the top that is `null`; the
/// last of equal keys counts. `None` for a text that is not JSON or nests too deep.
#[must_use]
pub fn of(text: &str) -> Option<u64> {
    ContentHash::<BuildHasherDefault<DefaultHasher>>::default().without_null_fields(text)
}
