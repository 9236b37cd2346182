//! The decisions of memgate: no clock, no I/O, no cluster.
//!
//! [`decide::decide`] takes the review of one object (a [`Request`](memgate_model::request::Request)) and the known
//! state of the cluster (a [`Snapshot`](memgate_model::snapshot::Snapshot)), and returns a
//! [`Decision`](memgate_model::decision::Decision): findings, edits, and references to objects that are not known.
//! The other modules turn bytes into its input, or its result into bytes.
//!
//! Modules, in reading order; each uses only those above it:
//!
//! - [`patch`]: edits as JSON patches, and the check that they apply.
//! - [`decide`]: one request and one snapshot to one decision.
//! - [`admission`]: AdmissionReview bytes to a request, a decision to response bytes.
//! - [`state`]: objects of manifests as the snapshot that decisions look at.
//!
//! The crates below this one: [`memgate_model`] has the types, [`memgate_platforms`] has the rules of each platform, [`memgate_policy`]
//! judges by the rules of an organisation, [`memgate_schema`] checks what an apiserver checks before it calls a webhook, and
//! [`memgate_manifest`] reads texts.

pub mod patch;

pub mod decide;

pub mod admission;

pub mod state;
