//! What runs in a cluster: the webhook, and the objects that install it.
//!
//! - [`review_path`]: the paths to which an apiserver sends reviews. The other two use it.
//! - [`deploy`]: the Kubernetes objects that install memgate.
//! - [`server`]: the webhook: HTTP, TLS, the state of the cluster, and a graceful shutdown.
//!
//! Neither makes decisions: [`memgate_core::decide`] does.

pub mod review_path;

pub mod deploy;

pub mod server;
