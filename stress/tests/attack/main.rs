//! Bad input and bad callers against the real program, on loopback only. What is answered is one
//! half; the other is what it costs: memory, file descriptors and log lines have asserted bounds.
//!
//! ```text
//! requests    not what an apiserver sends; bodies that are too long, or lie about it (S1, S2)
//! memory      64 callers with 8 MiB each (S3)
//! unread      500 callers who never read their answers (S20)
//! slow        slow bodies and heads, silence, ten thousand connections (S4)
//! handshakes  old versions, other protocols, names and certificates (S5)
//! json        depth, width, numbers, text (S6)
//! reviews     envelopes, names, full pods, unusual pods (S7 to S10)
//! tenants     addresses, forged marks, secrets, what an answer gives away (S11 to S14)
//! claims      reviews that lie about their namespace (S14)
//! literals    what pods are given as it stands (S14)
//! exhaustion  no descriptors, no room on the disk, no names; logs (R16)
//! ```
//!
//! The numbers are rows of docs/reliability.md. More of the same where a server within the test will do:
//! `tests/server` (wire, objects, timers, limits, deciding).

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may panic"
)]

#[path = "../../../tests/support/cases.rs"]
mod cases;
#[path = "../../../tests/server/client.rs"]
mod client;

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
