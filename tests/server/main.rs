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
#[path = "../support/https.rs"]
mod https;
mod large;
mod limits;
#[path = "../support/memory.rs"]
mod memory;
mod metrics;
mod objects;

mod running;
#[path = "../support/serving.rs"]
mod serving;
mod stall;
mod timers;
mod unjudged;
mod wire;
