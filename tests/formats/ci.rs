//! Runs docs/ci.md: each command in it succeeds, and each file that a pipeline reads is written.

use std::process::Command;
use std::sync::Arc;

use memgate_manifest::document::values;
use memgate_manifest::source::Source;

use crate::run::{BAD, Scratch};

const PAGE: &str = include_str!("../../docs/ci.md");

/// The page without the repositories, whose pipelines `repositories` runs.
fn page_without_repositories() -> String {
    let (before, behind) = PAGE.split_once("\n## By repository\n").expect("the section");
    let (_, behind) = behind.split_once("\n## ").expect("the next section");
    format!("{before}\n## {behind}")
}

/// The blocks of code of a page, each with its language.
pub(crate) fn blocks(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks
        .map(|block| block.split_once('\n').expect("a language"))
        .map(|(language, text)| (language.to_owned(), format!("{text}\n")))
        .collect()
}

/// The command in a line of a pipeline, without the YAML around it.
pub(crate) fn command(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("memgate ").filter(|(before, _)| !before.contains("cargo"))?;
    rest.starts_with("check ").then_some(())?;
    Some(rest.split(['\'', '|', '>']).next().unwrap_or(rest).trim())
}

/// Makes the directory a clone of a repository in which the branch began without a commit of its own.
fn begin_branch(scratch: &Scratch) {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(arguments);
        command.current_dir(scratch.path()).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(command.status().expect("git runs").success(), "git {arguments:?}");
    };
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "--message", "begin"]);
    git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    git(&["fetch", "--quiet", ".", "refs/remotes/origin/main"]);
}

#[test]
fn every_command_runs() {
    let mut commands = 0;
    for (_, text) in blocks(&page_without_repositories()) {
        let scratch = Scratch::with(&[("deploy/memory.yaml", BAD)]);
        begin_branch(&scratch);
        // As the service would have filled it in.
        let text = text.replace("${{ github.base_ref }}", "main");
        for line in text.lines().filter_map(command) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let output = scratch.run(&words);
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{line}: {complaint}");
            for file in words.iter().filter_map(|word| word.split_once('=')).map(|(_, file)| file) {
                assert!(!scratch.read(file).is_empty(), "{line}: {file}");
                let is_read = file == "memgate.html" || text.matches(file).count() == 2;
                assert!(is_read, "{file} is written and then read:\n{text}");
            }
            commands += 1;
        }
    }
    assert!(commands >= 7, "{commands} commands");
}

#[test]
fn every_pipeline_is_yaml() {
    let mut pipelines = 0;
    for (_, text) in blocks(PAGE).into_iter().filter(|(language, _)| language == "yaml") {
        let mut errors = Vec::new();
        let documents = values(&Arc::new(Source::new("docs/ci.md", text.as_str())), &mut errors);
        assert!(errors.is_empty() && documents.len() == 1, "{errors:?}\n{text}");
        pipelines += 1;
    }
    assert!(pipelines >= 8, "{pipelines} pipelines");
}
