//! `memgate check --fix`: what has one right answer is mended in the files, and what is left is told.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use crate::cli::file::rewrite_whole;
use crate::cli::input::InputArgs;
use crate::cli::project::Project;
use crate::cli::terminal::Terminal;
use crate::manifest::mask;
use crate::manifest::source::Source;
use crate::offline::check::Checked;
use crate::offline::fix::fix_all;
use crate::offline::ignore;
use crate::report::{counted, diff};

/// How often what was mended is looked at again at most: behind a misspelt field others show up, and of one object
/// only 50 findings are told at a time. Ten thousand elements of a list need the most.
const MAX_ROUNDS: usize = 250;

/// Flags about mending.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Fix")]
pub struct FixArgs {
    /// Mend what has one right answer, in the files
    ///
    /// A misspelt field or value, quotes around a number, and an element of a list that is there twice. Comments and
    /// form stay; a file is written whole, or not at all when it is read-only or has changed meanwhile. What is left
    /// is told.
    #[arg(long, conflicts_with_all = ["render", "base", "baseline", "write_baseline"])]
    pub fix: bool,

    /// With --fix, print a unified diff and write nothing
    #[arg(long, requires = "fix", conflicts_with = "output")]
    pub diff: bool,
}

/// A file with its old text, its new one, and how many fixes lie between.
#[derive(Debug)]
pub struct FixedText {
    source: Arc<Source>,
    text: String,
    count: usize,
}

/// By the names of the sources.
pub type FixedTexts = BTreeMap<String, FixedText>;

/// Reads and judges the files, with these texts in the place of their own.
///
/// # Errors
/// When standard input is among the files, or they cannot be read at all.
pub fn look(input: &InputArgs, project: &Project, fixed: &FixedTexts) -> anyhow::Result<Checked> {
    anyhow::ensure!(
        !input.reads_stdin(project)?,
        "--fix writes files, and standard input (-) is none; `memgate mutate` prints what it reads"
    );
    let texts = fixed.iter().map(|(name, fixed)| (name.clone(), fixed.text.clone())).collect();
    let mut checked = input.check_with(project, texts)?;
    ignore::apply(&mut checked);
    Ok(checked)
}

/// All that can be mended, and the files as they are then; none when nothing can.
///
/// # Errors
/// Those of [`look`].
pub fn mend(
    input: &InputArgs,
    project: &Project,
    before: &Checked,
) -> anyhow::Result<(FixedTexts, Option<Checked>)> {
    let (mut fixed, mut after) = (FixedTexts::default(), None);
    for _ in 0..MAX_ROUNDS {
        let round = fix_all(after.as_ref().unwrap_or(before));
        if round.is_empty() {
            break;
        }
        for file in round {
            let name = file.source.name().to_owned();
            let new = FixedText { source: file.source, text: String::new(), count: 0 };
            let known = fixed.entry(name).or_insert(new);
            known.text = file.text;
            known.count += file.count;
        }
        after = Some(look(input, project, &fixed)?);
    }
    Ok((fixed, after))
}

/// Writes the files; whether all of them could be written.
#[must_use]
pub fn write(fixed: &FixedTexts, terminal: Terminal) -> bool {
    let mut is_whole = true;
    for (name, FixedText { source, text, .. }) in fixed {
        if let Err(error) = rewrite_whole(Path::new(name), source.text(), text) {
            terminal.error(&error);
            is_whole = false;
        }
    }
    is_whole
}

/// What would be written, with credentials masked in all lines.
///
/// # Errors
/// When it cannot be made, which is a fault of memgate's own.
pub fn diffs(fixed: &FixedTexts) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (name, FixedText { source, text, .. }) in fixed {
        let after = Arc::new(Source::new(name.as_str(), text.as_str()));
        let (before, after) = (mask::shown(source), mask::shown(&after));
        let file = diff::FileDiff { name, before, after, origins: &[] };
        diff::write(&file, &mut bytes).context("failed to write the diff")?;
    }
    Ok(bytes)
}

/// How much was mended, or would be.
#[must_use]
pub fn summary(done: &str, fixed: &FixedTexts) -> String {
    let count = fixed.values().map(|file| file.count).sum();
    if count == 0 {
        return "nothing to fix".to_owned();
    }
    format!("{done} {} in {}", counted(count, "finding"), counted(fixed.len(), "file"))
}
