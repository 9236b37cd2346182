//! The webhook as its callers see it: over real sockets on loopback, with short timers.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may panic"
)]

mod callers;
mod certificates;
mod client;
mod deciding;
mod drain;
mod large;
mod limits;
mod metrics;
mod objects;

mod running;
mod stall;
mod timers;
mod traces;
mod wire;
