//! The page of `-o html` in a real browser: Debian's Chromium, without a screen and without a network.
//!
//! ```text
//! scenarios/*.mjs, each exported constant ──▶ one trial: node run.mjs FILE NAME
//! files ──memgate … -o html──▶ a page ──page.mjs: playwright-core, axe-core (tools/browser)──▶ Chromium
//! ```
//!
//! A scenario asserts what the page shows and does. It prints how long the page takes, and asserts no times.

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
    scenarios::run("browser", "node, npm and Chromium");
}
