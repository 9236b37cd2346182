//! Manifests: texts of YAML or JSON in, Kubernetes objects with a place for each pointer out, and the same
//! text back with edits made to it.
//!
//! ```text
//! Source ──document::parse──▶ Document { value, place: locate }
//!    └──rewrite (with edits)──▶ text + the origin of each new line
//! ```
//!
//! Values are those that kubectl would send (YAML 1.1 scalars as sigs.k8s.io/yaml reads them). This module
//! knows no family and says nothing about an object beyond that it is one. It reads no files: a [`source`]
//! is a text that was read.
//!
//! Inside, each module uses only those in front of it:
//!
//! ```text
//! source ─ error ─ outline ─ scalar ─ value ─ locate        what a text is made of, and what it means
//! json ─ parts ─ yaml::explain ─ yaml ─ outlines            texts to outlines, part by part
//! comments: yaml                                            comments to memgate
//! place ─ read ─ document                                   outlines to objects and their places
//! mask: unread                                              the text without its credentials
//! rewrite: origins ─ emit ─ edited ─ splice ─ flow ─ block  edits to changes of the text
//! ```

pub mod comments;
pub mod document;
pub mod error;
pub mod fix;
mod json;
mod locate;
pub mod mask;
mod outline;
mod outlines;
mod parts;
pub mod place;
mod read;
pub mod rewrite;
mod scalar;
pub mod source;
mod value;
mod yaml;
