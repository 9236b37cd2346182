//! Reads a live cluster for commands: whether memgate answers webhook calls, the installed objects, and whether the
//! apiserver would admit a pod.
//!
//! ```text
//! client ─▶ request ─▶ probe, probe_outcome ─▶ wait           whether memgate answers
//!        └▶ reader ──▶ installation, permissions, agents ─▶ cluster_state
//!                      replay ─▶ pod_dry_run                  whether pods with memory are admitted
//!                      listed_state ─▶ explained_pod          the state for a file and for one pod
//! rotation                                                    requests a new CA
//! ```
//!
//! All requests are reads and dry runs, except that `rotation` writes one annotation. No Secret is read, unless the user
//! asks `listed_state` for names and keys. The time of each request is bounded, and, except for `listed_state`, their
//! number. [`doctor`](crate::doctor) judges the result.

pub(crate) mod agents;
pub(crate) mod certificates;
pub(crate) mod client;
pub(crate) mod cluster_state;
pub(crate) mod explained_pod;
pub(crate) mod installation;
pub(crate) mod listed_state;
pub(crate) mod permissions;
pub(crate) mod pod_dry_run;
pub(crate) mod probe;
pub(crate) mod probe_outcome;
pub(crate) mod reader;
pub(crate) mod replay;
pub(crate) mod request;
pub(crate) mod rotation;
pub(crate) mod wait;
pub(crate) mod webhook_entry;
