//! Every case of `tests/cases` through the HTTP router and through `memgate review`. The library answers
//! them in `crates/core/tests/cases.rs`, a real apiserver in `tests/apiserver`.
//!
//! A trial is named `way: file: case`, so `cargo test --test cases router` asks the router only, and
//! `cargo test --test cases library` the library.

#[path = "../support/case_trials.rs"]
mod case_trials;
#[path = "../support/cases.rs"]
mod cases;

mod command;
mod reasons;
mod router;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::from_args();
    let mut trials = case_trials::trials(&[("router", router::answer), ("command", command::answer)])?;
    trials.push(Trial::test("reasons: the same in audit annotation, metric and log", || {
        reasons::agree().map_err(|error| Failed::from(format!("{error:#}")))
    }));
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}
