//! Manifests: files of YAML or JSON in, Kubernetes objects with a place for each pointer out, and
//! the same text back with edits made to it.
//!
//! ```text
//! inputs ──collect──▶ Source ──parse──▶ Document { value, locate }
//!                       └────────rewrite (with edits)────────▶ text + the origin of each new line
//! ```
//!
//! Values are those that kubectl would send (YAML 1.1 scalars as sigs.k8s.io/yaml reads them). This
//! module judges nothing and knows no family: what is a Kubernetes object is all it asks.

pub mod document;
pub mod error;
mod json;
mod locate;
mod outline;
pub mod rewrite;
mod scalar;
pub mod source;
mod value;
mod yaml;
