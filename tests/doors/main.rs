//! Every case of `tests/cases` through three doors: the library, the HTTP router and the command.
//! The fourth one, a real apiserver, is in `tests/apiserver`.
//!
//! A trial is named `door: file: case`, so `cargo test --test doors router` runs one door.

#![allow(clippy::expect_used, reason = "a test stops where something is wrong")]

#[path = "../support/cases.rs"]
mod cases;

mod command;
mod library;
mod router;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use memgate::casefile::Case;
use memgate::casefile::compare::{CaseOutcome, failures};

/// What answers a case.
type Door = fn(&Case) -> anyhow::Result<CaseOutcome>;

const DOORS: [(&str, Door); 3] =
    [("library", library::answer), ("router", router::answer), ("command", command::answer)];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = cases::cases().expect("the case files");
    let cases: Vec<_> = cases.into_iter().map(|(file, case)| (file, Arc::new(case))).collect();
    let trials = DOORS.iter().flat_map(|(name, door)| cases.iter().map(|case| trial(name, *door, case)));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn trial(name: &str, door: Door, (file, case): &(String, Arc<Case>)) -> Trial {
    let name = format!("{name}: {file}: {}", case.name);
    let case = Arc::clone(case);
    Trial::test(name, move || {
        let outcome = door(&case).map_err(|error| Failed::from(format!("{error:#}")))?;
        let failures = failures(&case.expect, &outcome);
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
    })
}
