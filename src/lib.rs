//! memgate gives AI agents on Kubernetes their memory at admission, and says why when it cannot.
//!
//! Modules, in reading order; each uses only those above it:
//!
//! - [`model`]: the words everything else speaks.
//! - [`family`]: what memgate knows of each platform: its kinds, rules, defaults and injection.
//! - [`decide`]: one request and one snapshot to one decision.
//! - [`patch`]: edits as JSON patches, and the check that they apply.
//! - [`admission`]: AdmissionReview bytes to a request, a decision to response bytes.
//! - [`server`]: the webhook: HTTP, TLS, the state of the cluster, and a good end.

pub mod model;

pub mod family;

pub mod decide;

pub mod patch;

pub mod admission;

pub mod server;
