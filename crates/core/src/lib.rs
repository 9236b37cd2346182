//! The decisions of memgate: no clock, no I/O, no cluster.
//!
//! Modules, in reading order; each uses only those above it:
//!
//! - [`model`]: the words everything else speaks.
//! - [`family`]: what memgate knows of each platform: its kinds, rules, defaults and injection.
//! - [`decide`]: one request and one snapshot to one decision.
//! - [`patch`]: edits as JSON patches, and the check that they apply.
//! - [`admission`]: AdmissionReview bytes to a request, a decision to response bytes.
//! - [`manifest`]: texts of YAML or JSON to objects with places, and edits back into their text.
//! - [`state`]: objects of manifests as the snapshot that decisions look at.
//! - [`casefile`]: cases with their expectations, and what of them failed.

pub mod model;

pub mod family;

pub mod decide;

pub mod patch;

pub mod admission;

pub mod manifest;

pub mod state;

pub mod casefile;
