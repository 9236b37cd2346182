//! memgate gives AI agents on Kubernetes their memory at admission, and says why when it cannot.
//!
//! Modules, in reading order; each uses only those above it:
//!
//! - [`model`]: the words everything else speaks.
//! - [`manifest`]: files of YAML or JSON to objects with places, and edits back into their text.
//! - [`casefile`]: cases with their expectations, and what of them failed.
//! - [`deploy`]: the Kubernetes objects that install memgate.
//! - [`report`]: findings and changes, written for people and programs.

pub mod casefile;
pub mod deploy;
pub mod manifest;
pub mod model;
pub mod report;
