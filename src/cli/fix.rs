//! `memgate check --fix`: corrects what has one right answer in the files, and reports the rest.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use crate::cli::file::rewrite_whole;
use crate::cli::terminal::Terminal;
use memgate_manifest::mask;
use memgate_manifest::source::Source;
use memgate_model::request::Occasion;
use memgate_workbench::fix::{FixedFile, fix_all};
use memgate_workbench::ignore;
use memgate_workbench::judge::Checked;
use memgate_workbench::load::InputPlan;
use memgate_workbench::report::{counted, diff};
use memgate_workbench::sets::check_all;

/// The most rounds of correcting and checking again. Below a corrected field others show up, and one object has at
/// most 50 findings at a time: a list of ten thousand wrong elements takes 200 rounds.
const MAX_ROUNDS: usize = 250;

/// The flags about corrections.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Fix")]
pub struct FixArgs {
    /// Correct what has one right answer, in the files
    ///
    /// Corrects a misspelt field or value, quotes around a number, and a repeated element of a list. Comments and
    /// layout stay. A file is written whole, or not at all when it is read-only or has changed meanwhile. The
    /// remaining findings are reported.
    #[arg(long, conflicts_with_all = ["render", "base", "baseline", "write_baseline"])]
    pub fix: bool,

    /// With --fix: print a unified diff, write nothing
    #[arg(long, requires = "fix", conflicts_with = "output")]
    pub diff: bool,
}

/// The corrected files by the names of their sources.
pub type FixedTexts = BTreeMap<String, FixedFile>;

/// Checks the files, with the corrected texts in place of their own.
///
/// # Errors
/// When standard input is among the files, or they cannot be read at all.
pub fn look(
    plan: &mut InputPlan,
    occasion: Occasion<'static>,
    fixed: &FixedTexts,
) -> anyhow::Result<Checked> {
    anyhow::ensure!(
        !plan.reads_stdin(),
        "--fix writes files, and standard input (-) is not a file; `memgate mutate` prints what it reads"
    );
    plan.reading.instead = fixed.iter().map(|(name, fixed)| (name.clone(), fixed.text.clone())).collect();
    let mut checked = check_all(plan, occasion)?;
    ignore::apply(&mut checked);
    Ok(checked)
}

/// Corrects everything that can be, and checks the result, if there is one.
///
/// # Errors
/// Those of [`look`].
pub fn mend(
    plan: &mut InputPlan,
    occasion: Occasion<'static>,
    before: &Checked,
) -> anyhow::Result<(FixedTexts, Option<Checked>)> {
    let (mut fixed, mut after) = (FixedTexts::default(), None);
    for _ in 0..MAX_ROUNDS {
        let round = fix_all(after.as_ref().unwrap_or(before));
        if round.is_empty() {
            break;
        }
        for file in round {
            let before = fixed.remove(file.source.name());
            let count = file.count + before.as_ref().map_or(0, |before| before.count);
            let source = before.map_or(file.source, |before| before.source);
            fixed.insert(source.name().to_owned(), FixedFile { source, count, ..file });
        }
        after = Some(look(plan, occasion, &fixed)?);
    }
    Ok((fixed, after))
}

/// Writes the files, and removes those that cannot be written. The result is whether all of them were written.
pub fn write(fixed: &mut FixedTexts, terminal: Terminal) -> bool {
    let all = fixed.len();
    fixed.retain(|name, FixedFile { source, text, .. }| {
        let written = rewrite_whole(Path::new(name), source.text(), text);
        written.map_err(|error| terminal.error(&error)).is_ok()
    });
    fixed.len() == all
}

/// The corrections as a diff, with masked credentials.
///
/// # Errors
/// When the diff cannot be made, which is a fault of memgate.
pub fn diffs(fixed: &FixedTexts) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (name, FixedFile { source, text, .. }) in fixed {
        let after = Arc::new(Source::new(name.as_str(), text.as_str()));
        let (before, after) = (mask::shown(source), mask::shown(&after));
        let file = diff::FileDiff { name, before, after, origins: &[] };
        diff::write(&file, &mut bytes).context("failed to write the diff")?;
    }
    Ok(bytes)
}

/// The number of corrections in one line, after the word `done`, unless there is `nothing`.
pub fn summary(done: &str, fixed: &FixedTexts, nothing: &str) -> String {
    let count = fixed.values().map(|file| file.count).sum();
    if count == 0 {
        return nothing.to_owned();
    }
    format!("{done} {} in {}", counted(count, "finding"), counted(fixed.len(), "file"))
}
