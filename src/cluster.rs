//! A live cluster, as commands ask it: who answers a webhook call, what is installed, and what the
//! apiserver would say to a pod.
//!
//! ```text
//! client ─▶ request ─▶ probe, probe_outcome ─▶ wait           whether memgate answers
//!        └▶ reader ──▶ installation, permissions, agents ─▶ cluster_state
//!                      replay ─▶ pod_dry_run                  whether pods with memory are admitted
//!                      listed_state ─▶ explained_pod          what decisions read, for a file and for one pod
//! rotation                                                    asks for a new CA
//! ```
//!
//! Requests are reads and dry runs; what `rotation` asks for is the one thing that is stored, an annotation. No Secret is
//! read, but for the names and keys that the user asks `listed_state` for. The time of each request is bounded, and, but
//! for what is written into a file, their number. What was read is judged in [`doctor`](crate::doctor).

pub mod agents;
pub mod certificates;
pub mod client;
pub mod cluster_state;
pub mod explained_pod;
pub mod installation;
pub mod listed_state;
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
