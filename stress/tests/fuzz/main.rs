//! Damaged input for everything that reads what others wrote: nothing may panic, lose a field, or
//! make a patch that does not apply.
//!
//! ```text
//! seeds (tests/cases, …) ──damage──▶ bytes ──▶ target ──▶ fine, or what is wrong
//!                                        └── what went wrong is kept in stress/tests/fuzz/corpus/<target>/
//! go       the same bytes read, and the same patches applied, by the libraries of an apiserver
//! ```
//!
//! `cargo test -p memgate-stress --test fuzz` replays everything that was kept and then damages each target's seeds a
//! bounded number of times; `MEMGATE_FUZZ_SECONDS=3600 cargo test -p memgate-stress --test fuzz -- fuzz::pod` goes on for
//! an hour. A trial that fails says which file it has kept; commit it with the mended code.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test stops where something is wrong, and says so"
)]

#[path = "../../../tests/support/mod.rs"]
mod support;

#[path = "../../../tests/support/spelling.rs"]
mod spelling;

mod corpus;
mod damage;
mod go;
mod invariants;
mod pointers;
mod readers;
mod targets;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use targets::TARGETS;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for target in &TARGETS {
        trials.push(Trial::test(format!("corpus::{}", target.name), || corpus::replay(target)));
        trials.push(Trial::test(format!("fuzz::{}", target.name), || corpus::fuzz(target)));
    }
    trials.extend(go::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
