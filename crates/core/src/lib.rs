//! The decisions of memgate: no clock, no I/O, no cluster.
//!
//! [`decide::decide`] takes the review of one object (a [`Request`](model::request::Request)) and the known
//! state of the cluster (a [`Snapshot`](model::snapshot::Snapshot)), and returns a
//! [`Decision`](model::decision::Decision): findings, edits, and references to objects that are not known.
//! The other modules turn bytes into its input, or its result into bytes.
//!
//! Modules, in reading order; each uses only those above it:
//!
//! - [`model`]: the types that all other modules use.
//! - [`family`]: the platforms: kinds, rules, defaults and injection of each.
//! - [`policy`]: MemoryPolicies: reading, matching, rules, exemptions, defaults.
//! - [`crd`]: the schema and metadata checks of an apiserver, for files that no apiserver has checked.
//! - [`patch`]: edits as JSON patches, and the check that they apply.
//! - [`decide`]: one request and one snapshot to one decision.
//! - [`admission`]: AdmissionReview bytes to a request, a decision to response bytes.
//! - [`manifest`]: texts of YAML or JSON to objects with places, and edits back into those texts.
//! - [`state`]: objects of manifests as the snapshot that decisions look at.
//! - [`casefile`]: cases with their expectations, and the expectations that failed.

pub mod family;

pub mod patch;

pub mod decide;

pub mod admission;

pub mod state;

pub mod casefile;
