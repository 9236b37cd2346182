//! That no output gives away a credential that stands in an input: a marker in the place of each credential of
//! each family, in block, flow and JSON style, and no output in which it turns up.
//!
//! A field that may hold a credential is one row of `fields`, an output one row of `outputs`. What is
//! allowed: the lines that the user wrote in what `mutate` prints, and in a patch the values that a platform's
//! own operator copies into pods as they are (`Field::copied`). Traces are in `tests/server/traces.rs`.
//!
//! All styles of all fields start some 13,000 processes. So only block style is tried by default;
//! `MEMGATE_TESTS=all` tries the others too.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

#[path = "../support/needs.rs"]
mod needs;

mod damage;
mod fields;
mod outputs;
mod policy;
mod styles;
mod webhook;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use fields::FIELDS;
use styles::STYLES;

/// What stands in the place of each credential. The first part alone is looked for, and the second in base64.
const MARKER: &str = "Zq7hunter2Zq7";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for field in FIELDS {
        for style in STYLES {
            let name = format!("{}: {}", style.name, field.name);
            let trial = Trial::test(name, move || outputs::check(field, style));
            let is_quick = style.name == "block";
            trials.push(if is_quick { trial } else { needs::needs("minutes", trial) });
        }
        trials.push(Trial::test(format!("damaged: {}", field.name), || damage::check(field)));
        trials.push(Trial::test(format!("webhook: {}", field.name), || webhook::check(field)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Fails when the marker stands in an output, in clear text or in base64.
fn expect_no_marker(what: &str, output: &str) -> Result<(), Failed> {
    let lines = output.lines().filter(|line| styles::holds_marker(line));
    let lines: Vec<&str> = lines.collect();
    if lines.is_empty() { Ok(()) } else { Err(format!("{what} gives it away:\n{}", lines.join("\n")).into()) }
}
