//! Bad input and bad callers against the real program, on loopback only. The tests hold the answers, and bounds on memory,
//! file descriptors and log lines.
//!
//! ```text
//! requests    not what an apiserver sends; bodies that are too long, or lie about it (S1, S2)
//! memory      64 callers with 8 MiB each (S3)
//! unread      500 callers that never read their answers (S20)
//! slow        slow bodies and heads, silence, ten thousand connections (S4)
//! handshakes  old versions, other protocols, names and certificates (S5)
//! json        depth, width, numbers, text (S6)
//! reviews     envelopes, names, full pods, unusual pods (S7 to S10)
//! tenants     addresses, forged marks, secrets, what an answer gives away (S11 to S14)
//! claims      reviews that lie about their namespace (S14)
//! literals    literal values in pods (S14)
//! exhaustion  without descriptors, disk or names; logs (R16)
//! ```
//!
//! The numbers are rows in stress/ATTACKS.md, those with an R of stress/FAULTS.md. `tests/server` has tests of the same kind with a server in the test.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may panic"
)]

#[path = "../../../tests/server/client.rs"]
mod client;
#[path = "../../../tests/support/mod.rs"]
mod support;
use support::https;

mod claims;
mod exhaustion;
mod handshakes;
mod json;
mod literals;
mod memory;
mod requests;
mod reviews;
mod running;
mod slow;
mod tenants;
mod unread;
