//! What runs in a cluster: the webhook, and the objects that install it.
//!
//! - [`review_path`]: the paths to which an apiserver sends reviews.
//! - [`deploy`]: the Kubernetes objects that install memgate.
//! - [`server`]: the webhook: HTTP, TLS, the state of the cluster, and a good end.

pub mod deploy;

pub mod review_path;

pub mod server;
