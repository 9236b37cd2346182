//! Reads a live cluster for commands: whether memgate answers webhook calls, the installed objects, and whether the
//! apiserver would admit a pod.
//!
//! ```text
//! client ─▶ request ─▶ probe, probe_outcome ─▶ wait           whether memgate answers
//!        └▶ reader ──▶ installation, permissions, agents ─▶ cluster_state
//!                      replay ─▶ pod_dry_run                  whether pods with memory are admitted
//!                      listed_state ─▶ explained_pod          the state for a file and for one pod
//! installation, agents, replay, logs, Events, metrics ─▶ status   one page for an operator
//! rotation                                                    requests a new CA
//! pause                                                       starts, lists and ends pauses
//! ```
//!
//! All requests are reads and dry runs, except that `rotation` writes one annotation and `pause` bindings. No Secret is read, unless the user
//! asks `listed_state` for names and keys. The time of each request is bounded, and, except for `listed_state`, their
//! number. [`doctor`] judges the result.

pub mod agents;
pub mod certificates;
pub mod client;
pub mod cluster_state;
pub mod doctor;
pub mod explained_pod;
pub mod installation;
pub mod listed_state;
pub mod pause;
pub mod permissions;
pub mod pod_dry_run;
pub mod probe;
pub mod probe_outcome;
pub mod reader;
pub mod replay;
pub mod request;
pub mod rotation;
pub mod status;
pub mod wait;
pub mod webhook_entry;
