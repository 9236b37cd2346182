//! A live cluster, as commands ask it: who answers a webhook call, what is installed, and what the
//! apiserver would say to a pod.
//!
//! ```text
//! client ─▶ request ─▶ probe, probe_outcome ─▶ wait           whether memgate answers
//!        └▶ reader ──▶ installation, permissions, agents ─▶ cluster_state
//!                      replay ─▶ pod_dry_run                  whether pods with memory are admitted
//! rotation                                                    asks for a new CA
//! ```
//!
//! Requests are reads and dry runs, and no key of a Secret is ever read; what `rotation` asks for is the one thing that
//! is stored, an annotation. Their number and their time are bounded. What was read is judged in [`doctor`](crate::doctor).

pub mod agents;
pub mod certificates;
pub mod client;
pub mod cluster_state;
pub mod installation;
pub mod permissions;
pub mod pod_dry_run;
pub mod probe;
pub mod probe_outcome;
pub mod reader;
pub mod replay;
pub mod request;
pub mod rotation;
pub mod wait;
pub mod webhook_entry;
