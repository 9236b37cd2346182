//! `memgate lsp`, driven over standard input and output by the client library of Visual Studio Code.
//!
//! ```text
//! scenarios/*.mjs, each exported constant ──▶ one trial: node run.mjs FILE NAME
//! client.mjs ──vscode-languageserver-protocol (tools/lsp)──▶ memgate lsp
//! typing.mjs ──a recording of an hour──▶ replay.mjs ──▶ client.mjs
//! ```
//!
//! A scenario asserts what the editor shows. It does not assert times.

#![expect(clippy::expect_used, clippy::panic, reason = "a test stops where something is wrong")]
#![expect(clippy::print_stderr, reason = "numbers that decide nothing are worth reading")]

#[path = "../support/cache.rs"]
mod cache;
#[path = "../support/needs.rs"]
mod needs;
#[path = "../support/npm.rs"]
mod npm;
#[path = "../support/scenarios.rs"]
mod scenarios;

fn main() {
    scenarios::run("lsp", "node and npm");
}
