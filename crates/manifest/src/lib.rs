//! Manifests: YAML and JSON texts go in, Kubernetes objects with a place for each JSON pointer come out, and edits are
//! made in the same text.
//!
//! ```text
//! Source ──document::parse──▶ Document { value, place }
//!    └──rewrite, fix (with edits)──▶ new text
//! ```
//!
//! An object has two forms here: the text (a [`source`]), and a [`document`], which is a value with a place for each
//! pointer. Values are those that kubectl would send (YAML 1.1 scalars as sigs.k8s.io/yaml reads them). This module
//! reads no files, and of an object it knows only that it has an `apiVersion` and a `kind`.
//!
//! Each module uses only modules before it:
//!
//! ```text
//! source ─ error ─ outline ─ scalar ─ value                 what a text is made of, and what it means
//! json ─ yaml::explain ─ yaml ─ place ─ document            parsers, places of pointers, objects
//! comments: yaml                                            comments to memgate
//! mask: unread                                              the text without its credentials
//! fix                                                       a word or an element of the text changed
//! rewrite: origins ─ emit ─ edited ─ splice ─ flow ─ block  edits of objects made in the text
//! ```

pub mod comments;
pub mod document;
pub mod error;
pub mod fix;
mod json;
pub mod mask;
mod outline;
pub mod place;
pub mod rewrite;
mod scalar;
pub mod source;
mod value;
mod yaml;
