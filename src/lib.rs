//! memgate gives AI agents on Kubernetes their memory at admission, and says why when it cannot.
//!
//! Modules, in reading order; each uses only those above it:
//!
//! - [`model`]: the words everything else speaks.
//! - [`manifest`]: files of YAML or JSON to objects with places, and edits back into their text.

pub mod manifest;
pub mod model;
