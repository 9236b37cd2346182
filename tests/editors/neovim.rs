//! Neovim with the snippets of docs/editors.md, as they are written there: it shows what memgate reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::page::blocks;
use crate::repository::{FILE, Repository};
use crate::{npm, pip};

#[test]
#[ignore = "needs node and npm, and Neovim 0.11 or python3"]
fn the_snippet_marks_findings_beside_the_language_server_for_schemas() {
    let repository = Repository::new();
    repository.add_program(&npm::installed("editors").join("yaml-language-server/bin/yaml-language-server"));
    let marks = open(&repository, &neovim_of_the_snippet(), 0, "memgate,yaml-schema");
    expect_memgate_to_mark(&marks);
    // The other server marks the same value by the schema.
    let other: Vec<_> = marks.iter().filter(|mark| mark["source"] != "memgate").collect();
    let [other] = other.as_slice() else { panic!("{marks:?}") };
    assert_eq!(other["line"], 5, "{marks:?}");
}

#[test]
#[ignore = "needs Neovim 0.7 or newer"]
fn the_snippet_for_older_versions_marks_findings() {
    let marks = open(&Repository::new(), Path::new("nvim"), 1, "memgate");
    assert_eq!(marks.len(), 1, "{marks:?}");
    expect_memgate_to_mark(&marks);
}

fn expect_memgate_to_mark(marks: &[Value]) {
    let marks: Vec<_> = marks.iter().filter(|mark| mark["source"] == "memgate").collect();
    let [mark] = marks.as_slice() else { panic!("{marks:?}") };
    assert_eq!(mark["code"], "arkonis/backend-unknown", "{mark}");
    assert_eq!(mark["line"], 5, "{mark}");
    let message = mark["message"].as_str().unwrap_or_default();
    assert!(message.contains("did you mean \"redis\"?"), "{mark}");
}

/// The Neovim of the `PATH` if it is new enough for the first snippet, else one from PyPI.
fn neovim_of_the_snippet() -> PathBuf {
    let asked = Command::new("nvim")
        .args(["--clean", "--headless", "+if has('nvim-0.11') | quit | else | cquit | endif"])
        .output();
    if asked.is_ok_and(|answer| answer.status.success()) {
        PathBuf::from("nvim")
    } else {
        pip::installed("neovim").join("bin/nvim")
    }
}

/// Opens the wrong memory with a snippet of the page as `init.lua`, and returns the marks when each source has some.
fn open(repository: &Repository, neovim: &Path, snippet: usize, sources: &str) -> Vec<Value> {
    let init = repository.home().join("init.lua");
    fs::write(&init, &blocks("Neovim", "lua")[snippet]).expect("is written");
    let mut command = Command::new(neovim);
    command.args(["--clean", "--headless", "-u"]).arg(&init).arg(FILE);
    command.arg("+luafile ".to_owned() + concat!(env!("CARGO_MANIFEST_DIR"), "/tests/editors/neovim.lua"));
    let printed = repository.run(command.env("SOURCES", sources));
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}
