//! Reads a live cluster for commands: whether memgate answers webhook calls, the installed objects, and which agent pods lack
//! their memory.
//!
//! ```text
//! client ─▶ request ─▶ probe, answer ─▶ wait           whether memgate answers
//!        └▶ reader ──▶ installation ─▶ cluster_state
//!                      listed_state, agent_pods        the state for decisions about stored objects
//! ```
//!
//! All requests but those of [`audit`] are reads, dry runs and questions to the authorizer. No Secret is read. The time of each
//! request is bounded. [`doctor`] judges the result.

pub mod agent_pods;
pub mod answer;
pub mod audit;
pub mod check;
pub mod client;
pub mod cluster_state;
pub mod doctor;
pub mod installation;
pub mod listed_state;
pub mod probe;
pub mod reader;
pub mod request;
pub mod wait;
