//! The settings of docs/editors.md for editors without a language client: vim runs its own, the task of VS Code is read as
//! VS Code does.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::ci::blocks;
use crate::run::{BAD, Scratch};

/// Writes what the list of errors holds.
const WRITE: &str = "let lines = map(filter(getqflist(), 'v:val.valid'), \
    'bufname(v:val.bufnr).\":\".v:val.lnum.\":\".v:val.col.\":\".v:val.type.\":\".v:val.text')\n\
    call writefile(lines, 'found')\nqall!\n";

/// The block of the section in a language.
fn block(language: &str) -> String {
    let page = include_str!("../../docs/editors.md");
    let (_, section) = page.split_once("\n## Editors without a language client\n").expect("the section");
    blocks(section).into_iter().find(|(name, _)| name == language).expect("a block").1
}

/// Runs a script, and returns the list of errors.
fn vim(scratch: &Scratch, script: &str) -> String {
    fs::write(scratch.path().join("script.vim"), format!("{script}{WRITE}")).expect("written");
    let programs = Path::new(env!("CARGO_BIN_EXE_memgate")).parent().expect("a directory").display();
    let path = std::env::var("PATH").expect("is set");
    let status = Command::new("vim")
        .args(["-u", "NONE", "-N", "-es", "-S", "script.vim"])
        .env("HOME", scratch.path())
        .env("PATH", format!("{programs}:{path}"))
        .stdin(Stdio::null())
        .current_dir(scratch.path())
        .status();
    status.expect("vim runs");
    scratch.read("found")
}

#[test]
#[ignore = "needs vim"]
fn vim_finds_each_place() {
    let block = block("vim");
    let scratch = Scratch::with(&[("bad.yaml", BAD), ("tab.yaml", "a:\n\tb: 1\n")]);
    let output = scratch.run(&["check", "bad.yaml", "tab.yaml", "-o", "concise"]);
    // As :make has it: both streams in one file.
    fs::write(scratch.path().join("errors"), [output.stdout, output.stderr].concat()).expect("written");
    let settings = block.lines().filter(|line| line.contains("errorformat"));
    let settings = settings.collect::<Vec<_>>().join("\n");
    let script = format!("{settings}\ncgetfile errors\n");
    let found = vim(&scratch, &script);
    let found: Vec<&str> = found.lines().collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("tab.yaml:2:1:e:[syntax] "), "{found:?}");
    assert!(found[1].starts_with("bad.yaml:5:12:d:[arkonis/backend-unknown] "), "{found:?}");
    assert!(found[2].starts_with("bad.yaml:18:3:w:[arkonis/unknown-field] "), "{found:?}");
}

/// The command of the task in a shell, and its lines by the pattern.
#[test]
fn the_task_of_vs_code_finds_each_place() {
    let tasks: serde_json::Value = serde_json::from_str(&block("json")).expect("JSON");
    let task = &tasks["tasks"][0];
    let scratch = Scratch::with(&[("bad.yaml", BAD)]);
    let command = task["command"].as_str().expect("a command");
    let command = command.replacen("memgate", concat!("'", env!("CARGO_BIN_EXE_memgate"), "'"), 1);
    let output =
        Command::new("sh").args(["-c", &command]).current_dir(scratch.path()).output().expect("a shell");
    let pattern = &task["problemMatcher"]["pattern"];
    let regexp = regex::Regex::new(pattern["regexp"].as_str().expect("a pattern")).expect("a pattern");
    let group = |name: &str| usize::try_from(pattern[name].as_u64().expect("a number")).expect("small");
    let printed = String::from_utf8_lossy(&output.stdout);
    let found: Vec<String> = printed
        .lines()
        .filter_map(|line| regexp.captures(line))
        .map(|found| {
            ["file", "line", "column", "severity"].map(|name| found[group(name)].to_owned()).join(":")
        })
        .collect();
    assert_eq!(found, ["./bad.yaml:5:12:deny", "./bad.yaml:18:3:warn"], "{printed}");
}
