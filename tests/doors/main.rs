//! Every case of `tests/cases` through three doors: the library, the HTTP router and the command.
//! The fourth one, a real apiserver, is in `tests/apiserver`.
//!
//! A trial is named `door: file: case`, so `cargo test --test doors router` runs one door.

#![allow(clippy::expect_used, reason = "a test stops where something is wrong")]

mod command;
mod library;
mod router;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use memgate::casefile::Case;
use memgate::casefile::judge::{Outcome, judge};
use memgate::casefile::read::read;
use memgate::manifest::collect::collect;
use memgate::manifest::document::values;

/// What answers a case.
type Door = fn(&Case) -> anyhow::Result<Outcome>;

const DOORS: [(&str, Door); 3] =
    [("library", library::answer), ("router", router::answer), ("command", command::answer)];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = cases();
    assert!(!cases.is_empty(), "there are no cases");
    let trials = DOORS.iter().flat_map(|(name, door)| cases.iter().map(|case| trial(name, *door, case)));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn trial(name: &str, door: Door, (file, case): &(String, Arc<Case>)) -> Trial {
    let name = format!("{name}: {file}: {}", case.name);
    let case = Arc::clone(case);
    Trial::test(name, move || {
        let outcome = door(&case).map_err(|error| Failed::from(format!("{error:#}")))?;
        let failures = judge(&case.expect, &outcome);
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
    })
}

/// Every case with the file that it stands in.
fn cases() -> Vec<(String, Arc<Case>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let collected = collect(&[root.display().to_string()], &mut std::io::empty());
    assert!(collected.errors.is_empty(), "{:?}", collected.errors);
    let mut cases = Vec::new();
    for source in collected.sources.into_iter().map(Arc::new) {
        let file =
            Path::new(source.name()).strip_prefix(&root).expect("below the root").display().to_string();
        let mut errors = Vec::new();
        for document in values(&source, &mut errors) {
            let read = read(document.value()).expect("a case file");
            cases.extend(read.into_iter().map(|case| (file.clone(), Arc::new(case))));
        }
        assert!(errors.is_empty(), "{errors:?}");
    }
    cases
}
