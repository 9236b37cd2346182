//! What runs in a cluster: the webhook.
//!
//! - [`crypto`]: the cryptography of TLS.
//! - [`library_error`]: the errors of other libraries in words.
//! - [`server`]: the webhook: HTTP, TLS, the state of the cluster, and a graceful shutdown.
//!
//! None of them makes decisions: [`memgate_core::decide`] does.

pub mod crypto;

pub mod library_error;

pub mod server;
