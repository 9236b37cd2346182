//! memgate gives AI agents on Kubernetes their memory at admission, and reports why it cannot.
//!
//! This crate is the command line: arguments, standard output and standard error, exit codes. ARCHITECTURE.md says what
//! the other crates have and in which order they may use each other. The centre is
//! [`decide`](memgate_core::decide::decide): a [`Request`](memgate_model::request::Request) and a
//! [`Snapshot`](memgate_model::snapshot::Snapshot) of the cluster go in, a
//! [`Decision`](memgate_model::decision::Decision) comes out, without a clock and without I/O.

pub mod cli;
