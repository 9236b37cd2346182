//! Repositories without any object of ours: nothing is said of them, in no command, in no hook and not in an editor.
//!
//! ```text
//! templates.txt ─┐
//! odd.rs ────────┴▶ Repository { name, files } ──▶ check, map, audit, hooks, editor ──▶ silence
//! ```
//!
//! No program but memgate is in `PATH`: what holds nothing of ours is never built.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

mod commands;
mod editor;
mod odd;
mod repository;
mod templates;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use repository::Repository;

/// How many repositories there are.
const COUNT: usize = 200;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let all: Vec<Repository> = templates::repositories().into_iter().chain(odd::repositories()).collect();
    let count = all.len();
    let is_silent = |repository: Repository| {
        let name = repository.name.clone();
        Trial::test(name, move || {
            let folder = repository.written()?;
            let words = commands::words(&repository, folder.path())?;
            let words: Vec<String> =
                words.into_iter().chain(editor::words(&repository, folder.path())?).collect();
            if words.is_empty() { Ok(()) } else { Err(words.join("\n").into()) }
        })
    };
    let mut trials: Vec<Trial> = all.into_iter().map(is_silent).collect();
    trials.push(Trial::test("there are 200", move || expect_equal(count, COUNT)));
    trials.push(Trial::test("what is ours is not passed over in silence", control));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn expect_equal(found: usize, expected: usize) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("{found}, not {expected}").into()) }
}

/// A repository with one wrong memory, about which everything has words.
fn control() -> Result<(), Failed> {
    let repository = Repository::new("control").with("deploy/memory.yaml", editor::WRONG_MEMORY);
    let folder = repository.written()?;
    let words = commands::words(&repository, folder.path())?;
    expect_equal(words.len(), commands::COMMANDS.len())?;
    expect_equal(editor::words(&repository, folder.path())?.len(), 1)
}
