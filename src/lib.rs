//! memgate gives AI agents on Kubernetes their memory at admission, and says why when it cannot.
//!
//! Modules, in reading order; each uses only those above it:
//!
//! - [`model`]: the words everything else speaks.
//! - [`family`]: what memgate knows of each platform: its kinds, rules, defaults and injection.
//! - [`decide`]: one request and one snapshot to one decision.
//! - [`patch`]: edits as JSON patches, and the check that they apply.
//! - [`admission`]: AdmissionReview bytes to a request, a decision to response bytes.
//! - [`manifest`]: files of YAML or JSON to objects with places, and edits back into their text.
//! - [`offline`]: the state of decisions outside a cluster.
//! - [`casefile`]: cases with their expectations, and what of them failed.
//! - [`report`]: findings and changes, written for people and programs.
//! - [`deploy`]: the Kubernetes objects that install memgate.
//! - [`server`]: the webhook: HTTP, TLS, the state of the cluster, and a good end.
//! - [`cli`]: the command line.

pub mod model;

pub mod family;

pub mod decide;

pub mod patch;

pub mod admission;

pub mod manifest;

pub mod offline;

pub mod casefile;

pub mod report;

pub mod deploy;

pub mod server;

pub mod cli;
