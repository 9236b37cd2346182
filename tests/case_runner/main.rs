//! Every case of `tests/cases` through the HTTP router, through `memgate review` and through `memgate test`. The
//! library answers them in `crates/core/tests/cases.rs`, a real apiserver in `tests/apiserver`. The router is at admission,
//! so it has no case of another point; `review` refuses a state with a broken policy, so it has none of those.
//!
//! A trial is named `way: file: case`, so `cargo test --test cases router` asks the router only, and
//! `cargo test --test cases library` the library.

#[path = "../support/case_trials.rs"]
mod case_trials;
#[path = "../support/cases.rs"]
mod cases;

mod clock;
mod command;
mod reasons;
mod router;
mod runner;

use std::process::ExitCode;

use case_trials::Way;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::from_args();
    let mut trials = case_trials::trials(&[
        Way { name: "router", answer: router::answer, takes: router::takes },
        Way { name: "command", answer: command::answer, takes: command::takes },
    ])?;
    trials.push(Trial::test("test: every case passes in memgate test", || {
        runner::passes().map_err(|error| Failed::from(format!("{error:#}")))
    }));
    trials.push(Trial::test("reasons: the same in audit annotation, metric and log", || {
        reasons::agree().map_err(|error| Failed::from(format!("{error:#}")))
    }));
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}
