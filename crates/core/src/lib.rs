//! The decisions of memgate: no clock, no I/O, no cluster.
//!
//! An apiserver asks about one object (a [`Request`](model::request::Request)) in a state that is known so
//! far (a [`Snapshot`](model::snapshot::Snapshot)); [`decide::decide`] answers with a
//! [`Decision`](model::decision::Decision): findings, edits, and what could not be known. Everything else
//! in this crate brings bytes to that function or carries its answer away.
//!
//! Modules, in reading order; each uses only those above it:
//!
//! - [`model`]: the words everything else speaks.
//! - [`family`]: what memgate knows of each platform: its kinds, rules, defaults and injection.
//! - [`crd`]: what an apiserver refuses before it asks anybody, for objects that none has seen.
//! - [`patch`]: edits as JSON patches, and the check that they apply.
//! - [`decide`]: one request and one snapshot to one decision.
//! - [`admission`]: AdmissionReview bytes to a request, a decision to response bytes.
//! - [`manifest`]: texts of YAML or JSON to objects with places, and edits back into those texts.
//! - [`state`]: objects of manifests as the snapshot that decisions look at.
//! - [`casefile`]: cases with their expectations, and what of them failed.

pub mod model;

pub mod family;

pub mod crd;

pub mod patch;
pub mod policy;

pub mod decide;

pub mod admission;

pub mod manifest;

pub mod state;

pub mod casefile;
