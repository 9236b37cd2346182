//! `memgate lsp`, driven over standard input and output by the client library of Visual Studio Code.
//!
//! ```text
//! scenarios/*.mjs, each exported constant ──▶ one trial: node run.mjs FILE NAME
//! client.mjs ──vscode-languageserver-protocol (tools/lsp)──▶ memgate lsp
//! ```
//!
//! A scenario asserts what the editor shows. It does not assert times.

#![expect(clippy::expect_used, clippy::panic, reason = "a test stops where something is wrong")]

#[path = "../support/cache.rs"]
mod cache;
#[path = "../support/needs.rs"]
mod needs;
#[path = "../support/npm.rs"]
mod npm;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lsp/scenarios");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let trials = files.iter().flat_map(|file| trials(file)).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// The scenarios of a file.
fn trials(file: &Path) -> Vec<Trial> {
    let text = fs::read_to_string(file).expect("a file");
    let names = text.lines().filter_map(|line| line.strip_prefix("export const ")?.split_once(" ="));
    let module = file.file_stem().expect("a name").display();
    let trial = |(name, _): (&str, &str)| {
        let (file, name) = (file.to_owned(), name.to_owned());
        let title = format!("{module}::{name}");
        needs::needs("node and npm", Trial::test(title, move || run(&file, &name)))
    };
    names.map(trial).collect()
}

fn run(file: &Path, name: &str) -> Result<(), Failed> {
    let output = Command::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lsp/run.mjs"))
        .arg(file)
        .arg(name)
        .env("MEMGATE", env!("CARGO_BIN_EXE_memgate"))
        .env("NODE_MODULES", npm::installed("lsp"))
        .output()
        .unwrap_or_else(|error| panic!("node: {error}"));
    if output.status.success() {
        return Ok(());
    }
    Err(Failed::from(String::from_utf8_lossy(&output.stderr)))
}
