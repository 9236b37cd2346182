//! Reads a live cluster for commands: whether memgate answers webhook calls, the installed objects, and which agent pods lack
//! their memory.
//!
//! ```text
//! client ─▶ request ─▶ probe, probe_outcome ─▶ wait           whether memgate answers
//!        └▶ reader ──▶ installation, agents ─▶ cluster_state
//!                      replay                                 pods as they would be today
//!                      pauses                                 where memgate is paused
//!                      listed_state                           the state for decisions about stored objects
//! ```
//!
//! All requests are reads, dry runs and questions to the authorizer. No Secret is read. The time of each request is bounded,
//! and, except for `listed_state`, their number. [`doctor`] judges the result.

pub mod agents;
pub mod audit;
pub mod check;
pub mod client;
pub mod cluster_state;
pub mod doctor;
pub mod installation;
pub mod listed_state;
pub mod pauses;
pub mod probe;
pub mod probe_outcome;
pub mod reader;
pub mod replay;
pub mod request;
pub mod wait;
