//! Bad input and bad callers against the real program, on loopback only. What is answered is one
//! half; the other is what it costs: memory, file descriptors and log lines have asserted bounds.
//!
//! ```text
//! s01 s02    requests    not what an apiserver sends; bodies that are too long, or lie about it
//! s03        memory      64 callers with 8 MiB each
//! s04        slow        drips, silence, ten thousand connections
//! s05        handshakes  old versions, other protocols, names and certificates
//! s06        json        depth, width, numbers, text
//! s07–s10    reviews     envelopes, names, full pods, odd pods
//! s11–s14    tenants     addresses, forged marks, secrets, what an answer gives away
//! r16        faults      no descriptors, no room on the disk, no names; logs
//! ```
//!
//! More of the same where a server within the test will do: `tests/server` (wire, objects, timers,
//! limits, deciding).

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may panic"
)]

#[path = "../server/client.rs"]
mod client;
mod faults;
mod handshakes;
mod json;
mod memory;
mod requests;
mod reviews;
mod running;
mod slow;
mod tenants;
