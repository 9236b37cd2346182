//! That every way to install memgate installs the same: what `memgate manifests` prints, and what
//! `kubectl kustomize` makes of `deploy/kustomize`.
//!
//! ```text
//! objects     sets of objects, and how they are compared
//! generate    the tables among the files, printed by the renderer
//! kustomize   base, families and components against the renderer
//! ```

#![expect(clippy::expect_used, reason = "a test stops where something is wrong")]

#[path = "../support/mod.rs"]
mod support;

mod generate;
mod kustomize;
mod objects;
