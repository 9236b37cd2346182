//! Checks that no output shows a credential of an input: a marker replaces each credential of each family, in block, flow
//! and JSON style, and no output may contain it.
//!
//! A field that may hold a credential is one row of `fields.yaml`, an output one row of `outputs`. Two outputs may contain
//! it: the user's own lines in the output of `mutate`, and in a patch the values that a platform's own operator copies
//! into pods unchanged (`Field::copied`).
//!
//! All styles of all fields start some 13,000 processes. So by default block style is tried, of one field in twelve, and
//! one pasted key in twelve; `MEMGATE_TESTS=all` tries everything.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

#[path = "../support/needs.rs"]
mod needs;
#[path = "../support/review.rs"]
mod review;

mod damage;
mod editor;
mod fields;
mod known_keys;
mod links;
mod names;
mod others;
mod outputs;
mod pasted;
mod policy;
mod proxy;
mod slips;
mod styles;
mod webhook;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use fields::Field;
use styles::STYLES;

/// By default, one field and one pasted key in so many are tried.
const ONE_IN: usize = 12;

/// The text of each credential. Tests search for the first part alone, and for the second part in base64.
const MARKER: &str = "Zq7hunter2Zq7";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (number, field) in fields::all().into_iter().chain(known_keys::fields()).enumerate() {
        let known = match field.first_form {
            Some(first) => format!("{} from form {first}", field.name),
            None => field.name.clone(),
        };
        // Its trials run until the program ends.
        let field: &Field = Box::leak(Box::new(field));
        for style in STYLES {
            let name = format!("{}: {known}", style.name);
            let trial = Trial::test(name, move || outputs::check(field, style));
            match (style.name == "block", field.first_form) {
                (true, None | Some(0)) if number % ONE_IN == 0 => trials.push(trial),
                (true, Some(0)) | (_, None) => trials.push(needs::needs("minutes", trial)),
                // Each text has all the forms already.
                (_, Some(_)) => {}
            }
        }
        // A broken key of a known form is not one.
        if field.first_form.is_none() {
            trials.push(Trial::test(format!("damaged: {known}"), move || damage::check(field)));
        }
        trials.push(Trial::test(format!("webhook: {known}"), move || webhook::check(field)));
    }
    for (number, (of, key)) in pasted::keys().enumerate() {
        let trial = Trial::test(format!("pasted: {of}"), move || pasted::check(key));
        trials.push(if number % ONE_IN == 0 { trial } else { needs::needs("minutes", trial) });
    }
    trials.push(Trial::test("files that are not manifests", others::no_manifests));
    trials.push(Trial::test("links out of the repository", links::check));
    trials.push(Trial::test("names", names::check));
    trials.push(Trial::test("slips are shown", slips::shown));
    trials.push(Trial::test("what is no slip is hidden", slips::hidden));
    trials.push(Trial::test("words at the wrong depth", slips::wrong_depth));
    trials.push(Trial::test("proxies", proxy::proxies));
    trials.push(Trial::test("kubeconfigs", proxy::kubeconfigs));
    trials.push(Trial::test("exec plugins", proxy::plugins));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Fails when the marker stands in an output, in clear text or in base64.
fn expect_no_marker(what: &str, output: &str) -> Result<(), Failed> {
    let lines = output.lines().filter(|line| styles::holds_marker(line));
    let lines: Vec<&str> = lines.collect();
    if lines.is_empty() { Ok(()) } else { Err(format!("{what} gives it away:\n{}", lines.join("\n")).into()) }
}
