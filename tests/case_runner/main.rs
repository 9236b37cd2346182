//! Every case of `tests/cases` through the HTTP router, `memgate review` and `memgate test`, and those of the library of
//! policies through the first two. Two other programs ask the same cases: `decisions` of memgate-core asks the library,
//! and `apiserver` asks a real kube-apiserver.
//!
//! The router decides at admission, so it is not asked the cases of other points. `memgate review` refuses a state with
//! an invalid policy, so it is not asked the cases that have one.
//!
//! A trial is named `way: file: case`: `cargo test --test cases router` runs the router alone.

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
