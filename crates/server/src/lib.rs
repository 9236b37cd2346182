//! What runs in a cluster: the webhook. It makes no decisions: [`memgate_core::decide`] does.

pub mod server;
