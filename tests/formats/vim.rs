//! The errorformat of docs/ci.md, in vim.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::run::{BAD, Scratch};

#[test]
#[ignore = "needs vim"]
fn vim_finds_each_place() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ci.md")).expect("the page");
    let block = page.split("```vim\n").nth(1).and_then(|text| text.split("```").next()).expect("a block");
    let scratch = Scratch::with(&[("bad.yaml", BAD), ("tab.yaml", "a:\n\tb: 1\n")]);
    let output = scratch.run(&["check", "bad.yaml", "tab.yaml", "-o", "concise"]);
    // As :make has it: both streams in one file.
    fs::write(scratch.path().join("errors"), [output.stdout, output.stderr].concat()).expect("written");
    let settings = block.lines().filter(|line| line.contains("errorformat"));
    let settings = settings.collect::<Vec<_>>().join(
        "
",
    );
    let script = format!(
        "{settings}\ncgetfile errors\n\
         let lines = map(filter(getqflist(), 'v:val.valid'), \
         'bufname(v:val.bufnr).\":\".v:val.lnum.\":\".v:val.col.\":\".v:val.type.\":\".v:val.text')\n\
         call writefile(lines, 'found')\nqall!\n"
    );
    fs::write(scratch.path().join("script.vim"), script).expect("written");
    let status = Command::new("vim")
        .args(["-u", "NONE", "-N", "-es", "-S", "script.vim"])
        .env("HOME", scratch.path())
        .current_dir(scratch.path())
        .status();
    status.expect("vim runs");
    let found = scratch.read("found");
    let found: Vec<&str> = found.lines().collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("tab.yaml:2:1:e:[syntax] "), "{found:?}");
    assert!(found[1].starts_with("bad.yaml:5:12:d:[arkonis/backend-unknown] "), "{found:?}");
    assert!(found[2].starts_with("bad.yaml:18:3:w:[arkonis/unknown-field] "), "{found:?}");
}
