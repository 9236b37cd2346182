//! Tests that need more than Rust, a C compiler, git and the usual programs of a shell.
//!
//! `cargo test` lists each of them as ignored, with what it needs. `MEMGATE_TESTS=all` runs them too, and a missing
//! program is then a failure. In a program with the standard harness such a test has `#[ignore = "needs Helm"]`; in a
//! program with libtest-mimic its trial goes through [`needs`].
#![allow(dead_code, reason = "each test program uses the part of it that it needs")]

use libtest_mimic::Trial;

/// Marks a trial with the program that it needs.
pub(crate) fn needs(program: &str, trial: Trial) -> Trial {
    let ignored = trial.has_ignored_flag() || !all_are_asked_for();
    trial.with_kind(format!("needs {program}")).with_ignored_flag(ignored)
}

/// The harness reads `#[ignore]` when it is compiled, so this test runs the ignored ones in another process.
#[test]
fn ignored_tests_pass_when_all_are_asked_for() {
    if !all_are_asked_for() {
        return;
    }
    let program = std::env::current_exe().expect("this program has a path");
    let status = std::process::Command::new(program).arg("--ignored").status().expect("this program starts");
    assert!(status.success(), "a test that `cargo test` ignores has failed; its output is above");
}

fn all_are_asked_for() -> bool {
    std::env::var_os("MEMGATE_TESTS").is_some_and(|value| value == "all")
}
