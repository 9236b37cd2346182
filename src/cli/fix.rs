//! `memgate check --fix`: corrects what has one right answer in the files, and reports the rest.

use std::path::Path;

use crate::cli::file::rewrite_whole;
use crate::cli::terminal::Terminal;
use memgate_workbench::files::fix::{FixedFile, FixedTexts, add_round, fix_in_rounds};
use memgate_workbench::files::judge::Checked;
use memgate_workbench::files::run::{Run, judged_without_ignored};

/// The most rounds of correcting and checking again. Below a corrected field others show up, and one object has at
/// most 50 findings at a time: a list of ten thousand wrong elements takes 200 rounds.
const MAX_ROUNDS: usize = 250;

/// The flags about corrections.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Fix")]
pub struct FixArgs {
    /// Correct what has one right answer, in the files
    ///
    /// Corrects a misspelt field or value, quotes around a number, days in a duration (30d becomes 720h), and a repeated
    /// element of a list. Comments and layout stay. A file is written whole, or not at all when it is read-only or has
    /// changed meanwhile. The remaining findings are reported. Of what is built, bases, patches and values are
    /// corrected.
    #[arg(long, conflicts_with = "base")]
    pub fix: bool,
}

/// Corrects everything that can be: the judged objects of the files as they were, the corrected files, and the judged
/// objects of these, if there are any.
///
/// # Errors
/// When standard input is among the files, or they cannot be loaded.
pub fn mend(run: &mut Run) -> anyhow::Result<(Checked, FixedTexts, Option<Checked>)> {
    anyhow::ensure!(
        !run.plan.reads_stdin(),
        "--fix writes files, and standard input (-) is not a file; `memgate mutate` prints what it reads"
    );
    let before = judged_without_ignored(run)?;
    let (fixed, after) = fix_in_rounds(run, &before, MAX_ROUNDS)?;
    Ok((before, fixed, after))
}

/// Goes on with what helm and kustomize make of the files that were written: they read nothing but those. Adds the corrected
/// files, and returns the judged objects of the last round, and whether all files were written.
///
/// # Errors
/// When the files cannot be loaded.
pub fn mend_rendered(
    run: &mut Run,
    fixed: &mut FixedTexts,
    terminal: Terminal,
) -> anyhow::Result<(Checked, bool)> {
    for _ in 1..MAX_ROUNDS {
        run.plan.instead.clear();
        let (before, mut more, _) = mend(run)?;
        let is_written = write_files(&mut more, terminal);
        if more.is_empty() {
            return Ok((before, is_written));
        }
        add_round(fixed, more.into_values());
    }
    run.plan.instead.clear();
    Ok((judged_without_ignored(run)?, true))
}

/// Writes the files, and removes those that cannot be written. The result is whether all of them were written.
pub fn write_files(fixed: &mut FixedTexts, terminal: Terminal) -> bool {
    let all = fixed.len();
    fixed.retain(|name, FixedFile { source, text, .. }| {
        let written = rewrite_whole(Path::new(name), source.text(), text);
        written.map_err(|error| terminal.error(&error)).is_ok()
    });
    fixed.len() == all
}
