//! That the README shows what memgate prints.
//!
//! A fenced `console` block whose first line starts with `$` is a command and its standard output;
//! a line `…` stands for any number of lines.

#![allow(clippy::expect_used, reason = "a test stops where something is wrong")]

#[path = "support/shown.rs"]
mod shown;

use std::process::Command;

use shown::fits;

const README: &str = include_str!("../README.md");

#[test]
fn shows_what_memgate_prints() {
    let blocks = README.split("```console\n$ ").skip(1);
    let blocks: Vec<_> = blocks.map(|block| block.split("\n```").next().expect("an end")).collect();
    assert!(!blocks.is_empty(), "no example");
    for block in blocks {
        let (command, shown) = block.split_once('\n').expect("output");
        let printed = run(command);
        assert!(
            fits(&shown.lines().collect::<Vec<_>>(), &printed.lines().collect::<Vec<_>>()),
            "{command} prints\n{printed}"
        );
    }
}

#[test]
fn links_lead_somewhere() {
    for link in README.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(link);
        assert!(link.starts_with("https://") || path.exists(), "{link} leads nowhere");
    }
}

fn run(command: &str) -> String {
    let arguments =
        command.strip_prefix("cargo run --release -- ").or_else(|| command.strip_prefix("memgate "));
    let arguments = arguments.expect("a command of memgate").split_whitespace();
    let output = Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_clear()
        .output()
        .expect("memgate starts");
    String::from_utf8(output.stdout).expect("text")
}
