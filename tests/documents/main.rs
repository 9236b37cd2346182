//! That what people read and copy is true: the page of each finding code, the examples, the pages about policies,
//! about the versions of the platforms and about releases, the list of attacks, and the bundled definitions.

#![allow(clippy::expect_used, reason = "a test stops where something is wrong")]

#[path = "../support/cases.rs"]
mod cases;

mod addresses;
mod attacks;
mod codes;
mod examples;
mod kustomize;
mod library;
mod messages;
mod neighbours;
mod policies;
mod policy_definitions;
mod release;
mod rules;
mod shapes;
mod upstream;
mod versions;

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// Runs memgate in the repository with this standard input.
fn memgate(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("memgate starts");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("written");
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
