//! A part of the cases of `tests/cases` ([`Share`]) through the HTTP router, `memgate review` and `memgate test`, and of
//! those of the library of policies through the first two. Two other programs ask the same cases: `decisions` of
//! memgate-core asks the library all of them, and `apiserver` a real kube-apiserver.
//!
//! The router decides at admission, so it is not asked the cases of other points. `memgate review` refuses a state with
//! an invalid policy, so it is not asked the cases that have one.
//!
//! A trial is named `way: file: case`: `cargo test --test cases router` runs the router alone.

#[path = "../support/case_trials.rs"]
mod case_trials;
#[path = "../support/cases.rs"]
mod cases;
#[path = "../support/share.rs"]
mod share;

mod clock;
mod command;
mod reasons;
mod router;
mod runner;

use std::process::ExitCode;

use case_trials::Way;
use libtest_mimic::{Arguments, Failed, Trial};
use memgate_workbench::files::casefile::Case;
use share::Share;

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::from_args();
    let tenth = Share::Tenth.or_all();
    let share = |cases| tenth.of(cases, |(file, case): &(String, Case)| (file, case));
    let own = cases::cases()?;
    let all = [own.clone(), cases::library_cases()?].concat();
    let ways = [
        Way { name: "router", answer: router::answer, takes: router::takes, share: tenth },
        Way { name: "command", answer: command::answer, takes: command::takes, share: tenth },
    ];
    let mut trials = case_trials::trials_of(&ways, all.clone());
    let (own, all) = (share(own), share(all));
    trials.push(Trial::test("test: every case passes in memgate test", move || {
        runner::passes(&own).map_err(|error| Failed::from(format!("{error:#}")))
    }));
    trials.push(Trial::test("reasons: the same in audit annotation, metric and log", move || {
        reasons::agree(&all).map_err(|error| Failed::from(format!("{error:#}")))
    }));
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}
