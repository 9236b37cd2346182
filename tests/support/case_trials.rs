//! A trial for each case and each way to run it, named `way: file: case`.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use memgate_workbench::files::casefile::Case;
use memgate_workbench::files::casefile::compare::{CaseOutcome, failures};

use super::share::Share;

/// Runs a case.
pub(crate) type Answer = fn(&Case) -> anyhow::Result<CaseOutcome>;

/// A way to run cases.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) answer: Answer,
    /// Whether a case can be run in this way.
    pub(crate) takes: fn(&Case) -> bool,
    /// Which part of those is run.
    pub(crate) share: Share,
}

/// These cases in each of these ways.
pub(crate) fn trials_of(ways: &[Way], cases: Vec<(String, Case)>) -> Vec<Trial> {
    let cases: Vec<_> = cases.into_iter().map(|(file, case)| (file, Arc::new(case))).collect();
    let trials = ways.iter().flat_map(|way| {
        let taken = cases.iter().filter(|(_, case)| (way.takes)(case)).collect();
        let chosen = way.share.of(taken, |(file, case)| (file, case));
        chosen.into_iter().map(|(file, case)| trial(*way, file, case))
    });
    trials.collect()
}

fn trial(way: Way, file: &str, case: &Arc<Case>) -> Trial {
    let Way { name, answer, .. } = way;
    let name = format!("{name}: {file}: {}", case.name);
    let case = Arc::clone(case);
    Trial::test(name, move || {
        let outcome = answer(&case).map_err(|error| Failed::from(format!("{error:#}")))?;
        let failures = failures(&case.expect, &outcome);
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
    })
}
