//! `--stdin-filename`: what an editor gets about the one file that it shows.

use std::fs;
use std::process::Output;

use crate::run::Scratch;
use crate::sets::{AGENT, findings, memory};

/// Runs a command with a text on standard input.
fn run(scratch: &Scratch, directory: &str, words: &[&str], text: &str) -> Output {
    let input = scratch.path().join("edited");
    fs::write(&input, text).expect("written");
    let mut command = scratch.command(words);
    command.current_dir(scratch.path().join(directory)).stdin(fs::File::open(input).expect("a file"));
    command.output().expect("runs")
}

/// What an editor gets about a file whose text is on standard input: exit code and findings.
fn edit(scratch: &Scratch, directory: &str, file: &str, text: &str) -> (Option<i32>, Vec<String>) {
    let output = run(scratch, directory, &["check", "-o", "json", "--stdin-filename", file], text);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code(), findings(&report))
}

#[test]
fn a_file_of_an_editor_is_judged_in_its_sets() {
    let scratch = Scratch::with(&[
        (".memgate.yaml", "sets: {dev: [envs/dev, base], prod: [envs/prod, base]}\n"),
        ("envs/dev/memory.yaml", &memory("backend: in-context")),
        ("envs/prod/memory.yaml", &memory("backend: in-context")),
        ("base/agent.yaml", AGENT),
    ]);
    fs::create_dir(scratch.path().join(".git")).expect("made");
    let wrong = memory("backend: reddis");
    let denied =
        |file: &str, sets: &str| (Some(1), vec![format!("deny arkonis/backend-unknown {file} {sets}")]);
    let dev = "envs/dev/memory.yaml";
    assert_eq!(edit(&scratch, "", dev, &wrong), denied(dev, "dev"));
    assert_eq!(edit(&scratch, "", "./envs/../envs/dev/memory.yaml", &wrong).0, Some(1));
    assert_eq!(edit(&scratch, "envs/dev", "memory.yaml", &wrong), denied("memory.yaml", "dev"));
    assert_eq!(edit(&scratch, "", dev, &memory("backend: in-context")), (Some(0), vec![]));
    let shared = wrong.replace("notes", "other");
    assert_eq!(edit(&scratch, "", "base/agent.yaml", &shared), denied("base/agent.yaml", "dev+prod"));
    // A new file in two sets, and one that is in none.
    assert_eq!(edit(&scratch, "", "base/new.yaml", &shared), denied("base/new.yaml", "dev+prod"));
    assert_eq!(edit(&scratch, "", "other/alone.yaml", &wrong), denied("other/alone.yaml", ""));
    // Its state is that of its set.
    fs::write(scratch.path().join("envs/prod/memory.yaml"), &wrong).expect("written");
    let invalid = "warn arkonis/memory-invalid base/agent.yaml prod".to_owned();
    assert_eq!(edit(&scratch, "", "base/agent.yaml", AGENT), (Some(0), vec![invalid]));
}

/// What is wrong in other files is shown when these are edited.
#[test]
fn errors_of_other_files_do_not_count() {
    let good = memory("backend: in-context");
    for (name, text) in [
        ("other.yaml", "a: [\n"),
        ("other.json", "{"),
        ("wide.yaml", "\u{0}"),
        ("kustomization.yaml", "a: [\n"),
    ] {
        let scratch = Scratch::with(&[(name, text), ("memory.yaml", &good)]);
        assert_eq!(edit(&scratch, "", "memory.yaml", &good), (Some(0), vec![]), "{name}");
        assert_eq!(edit(&scratch, "", "new.yaml", AGENT), (Some(0), vec![]), "{name}");
    }
    let scratch = Scratch::with(&[("other.yaml", "a: [\n"), ("memory.yaml", &good)]);
    assert_eq!(edit(&scratch, "", "other.yaml", "a: [\n").0, Some(2));
    let scratch =
        Scratch::with(&[(".memgate.yaml", "paths: [memory.yaml, missing]"), ("memory.yaml", &good)]);
    assert_eq!(edit(&scratch, "", "memory.yaml", &good), (Some(0), vec![]));
    // What the user names must be readable.
    let input = fs::File::open(scratch.path().join("memory.yaml")).expect("a file");
    let words = ["check", "--stdin-filename", "memory.yaml", "--with", "missing"];
    let output = scratch.command(&words).stdin(input).output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// An editor may run memgate in any directory.
#[test]
fn the_state_is_that_of_the_repository_of_the_file() {
    let scratch = Scratch::with(&[
        ("repo/.git/config", ""),
        ("repo/base/memory.yaml", &memory("backend: reddis")),
        ("repo/apps/agent.yaml", AGENT),
        ("home/other/memory.yaml", &memory("backend: in-context")),
    ]);
    for (directory, file) in [
        ("home", "../repo/apps/agent.yaml"),
        ("home", "../repo/apps/new.yaml"),
        ("repo/base", "../apps/agent.yaml"),
        ("repo", "apps/agent.yaml"),
        ("", "repo/apps/agent.yaml"),
    ] {
        let invalid = format!("warn arkonis/memory-invalid {file} ");
        assert_eq!(edit(&scratch, directory, file, AGENT), (Some(0), vec![invalid]), "{directory}");
    }
    let whole = scratch.path().join("repo/apps/agent.yaml");
    let found = edit(&scratch, "home", whole.to_str().expect("UTF-8"), AGENT).1;
    assert!(found.iter().any(|it| it.starts_with("warn arkonis/memory-invalid")), "{found:?}");
}
