//! `--stdin-filename`: what an editor gets about the one file that it shows.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::run::Scratch;

const MEMORY: &str =
    "apiVersion: arkonis.dev/v1alpha1\nkind: ArkMemory\nmetadata: {name: notes, namespace: team-a}\n";
const AGENT: &str = "apiVersion: arkonis.dev/v1alpha1\nkind: ArkAgent\nmetadata: {name: scout, namespace: team-a}\n\
                     spec: {model: m, systemPrompt: a, memoryRef: {name: notes}}\n";

fn memory(spec: &str) -> String {
    format!("{MEMORY}spec: {{{spec}}}\n")
}

/// Each finding as `severity code file units`.
fn findings(report: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let finding = |it: &Value| {
        let units: Vec<String> = it["units"].as_array().into_iter().flatten().map(text).collect();
        format!("{} {} {} {}", text(&it["severity"]), text(&it["code"]), text(&it["file"]), units.join("+"))
    };
    let mut all: Vec<String> = report["findings"].as_array().expect("findings").iter().map(finding).collect();
    all.sort();
    all
}

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
fn a_file_of_an_editor_is_judged_by_its_path() {
    let scratch =
        Scratch::with(&[("envs/memory.yaml", &memory("backend: in-context")), ("apps/agent.yaml", AGENT)]);
    fs::create_dir(scratch.path().join(".git")).expect("made");
    let wrong = memory("backend: reddis");
    let denied = |file: &str| (Some(1), vec![format!("deny arkonis/backend-unknown {file} ")]);
    let file = "envs/memory.yaml";
    assert_eq!(edit(&scratch, "", file, &wrong), denied(file));
    assert_eq!(edit(&scratch, "", "./envs/../envs/memory.yaml", &wrong).0, Some(1));
    assert_eq!(edit(&scratch, "envs", "memory.yaml", &wrong), denied("memory.yaml"));
    assert_eq!(edit(&scratch, "", file, &memory("backend: in-context")), (Some(0), vec![]));
    // A new file.
    assert_eq!(
        edit(&scratch, "", "other/new.yaml", &wrong.replace("notes", "new")),
        denied("other/new.yaml")
    );
    // The other files are its state.
    fs::write(scratch.path().join("envs/memory.yaml"), &wrong).expect("written");
    let invalid = "warn arkonis/memory-invalid apps/agent.yaml ".to_owned();
    assert_eq!(edit(&scratch, "", "apps/agent.yaml", AGENT), (Some(0), vec![invalid]));
}

/// An editor runs no tool: a base, a patch and a template are judged in part, and nothing that another file may give is missed.
#[test]
fn a_part_of_a_unit_is_judged_in_part() {
    let scratch = Scratch::with(&[
        ("base/kustomization.yaml", "resources: [memory.yaml]\n"),
        ("base/memory.yaml", &memory("backend: redis")),
        ("prod/kustomization.yaml", "resources: [../base]\npatches: [{path: patch.yaml}]\n"),
        ("prod/patch.yaml", &memory("redis: {secretRef: {name: s}}")),
        ("chart/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n"),
        ("chart/templates/memory.yaml", "{{ if .Values.a }}\n"),
    ]);
    let unknown = |file: &str| (Some(1), vec![format!("deny arkonis/backend-unknown {file} ")]);
    for file in ["base/memory.yaml", "prod/patch.yaml"] {
        assert_eq!(edit(&scratch, "", file, &memory("backend: redis")), (Some(0), vec![]), "{file}");
        assert_eq!(edit(&scratch, "", file, &memory("backend: reddis")), unknown(file), "{file}");
    }
    let template =
        "{{ if .Values.a }}\n".to_owned() + &memory("backend: {{ .Values.backend }}") + "{{ end }}\n";
    let (code, found) = edit(&scratch, "", "chart/templates/memory.yaml", &template);
    assert!(code != Some(1) && code != Some(2) && found.is_empty(), "{code:?} {found:?}");
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
    assert_eq!(edit(&scratch, "", "other.yaml", "apiVersion: [\n").0, Some(2));
    assert_eq!(edit(&scratch, "", "other.yaml", "a: [\n").0, Some(3));
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
