//! Memory, Agent and ModelEndpoint of orloj.dev.
//!
//! A Memory says where an agent's memory lives, a ModelEndpoint who makes its embeddings; an Agent
//! names the Memory and the operations that it may use; the container `agent` of the agent's Job gets
//! environment variables. Orloj has namespaces of its own, which an annotation can point elsewhere;
//! every reference is one within these (`namespace`).

pub mod api;
pub mod codes;
pub mod default;
pub mod inject;
pub mod twin;
pub mod validate;

mod endpoint;
mod namespace;
mod wording;
