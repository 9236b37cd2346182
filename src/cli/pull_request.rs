//! Flags about findings that are known: those of the base of a branch, and those in a baseline.

use std::path::Path;

use anyhow::Context as _;

use crate::cli::file::write_whole;
use crate::cli::input::InputArgs;
use crate::cli::interrupt::Interrupt;
use crate::cli::project::Project;
use crate::cli::terminal::Terminal;
use crate::offline::base::{self, BasePaths};
use crate::offline::baseline::read::read as read_baseline;
use crate::offline::baseline::{Baseline, pass_by, record};
use crate::offline::check::{Checked, Decided};
use crate::offline::errors::input_error;
use crate::offline::ignore;
use crate::offline::suppress::{KnownFindings, known, suppress};
use crate::report::{counted, plain};

/// How many digits of a commit are shown.
const COMMIT_DIGITS: usize = 12;

/// Which findings are known already: they become notes, and count neither for the exit code nor for --fail-on.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Pull requests")]
pub struct PullRequestArgs {
    /// Count only findings that this branch or commit does not have
    ///
    /// The same paths are read, through git, as they were at the merge base of REF and HEAD, where the branch
    /// began. What was found there too becomes a note, also where lines have moved or files have other names.
    /// Neither the work tree nor the index is touched. With --render, charts and overlays are rendered as they were
    /// there.
    #[arg(long, value_name = "REF", value_parser = reference)]
    base: Option<String>,

    /// Count only findings that are not in this file, which --write-baseline has written
    ///
    /// An entry that occurs no longer is a warning, so that the file shrinks.
    #[arg(long, value_name = "FILE")]
    baseline: Option<String>,

    /// Write what was found into this file, for --baseline; nothing in it counts then
    ///
    /// Together with --baseline only what was in that file already is written: what is mended is left out, and
    /// nothing is added.
    #[arg(long, value_name = "FILE", conflicts_with = "base")]
    write_baseline: Option<String>,
}

/// A REF that git cannot take for an option.
fn reference(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('-') || text.chars().any(|c| c.is_control() || c == ' ') {
        return Err("this is no name of a branch or commit".to_owned());
    }
    Ok(text.to_owned())
}

impl PullRequestArgs {
    /// Makes notes of what is known: by comments in the files, at the base, and in the baseline.
    ///
    /// # Errors
    /// When the base cannot be read, or the new baseline not be written. What is wrong with the old one is an
    /// error of the inputs.
    pub fn apply(
        &self,
        checked: &mut Checked,
        input: &InputArgs,
        project: &Project,
        terminal: Terminal,
    ) -> anyhow::Result<()> {
        if self.base.is_none() && self.baseline.is_none() && self.write_baseline.is_none() {
            ignore::apply(checked);
            return Ok(());
        }
        for path in self.baseline.iter().chain(&self.write_baseline) {
            pass_by(checked, path);
        }
        let identities = ignore::apply_and_identify(checked);
        if let Some(reference) = &self.base {
            let mut known = known_at(reference, input, project, terminal)?;
            suppress(checked, &identities, &mut known, &format!("already in {reference}"));
        }
        let text = match (self.baseline(checked), &self.write_baseline) {
            (Some(baseline), _) => baseline.apply(checked, &identities, self.write_baseline.is_some()),
            (None, Some(_)) if checked.errors.is_empty() => record(checked, &identities),
            (None, _) => String::new(),
        };
        self.write_baseline.as_ref().map_or(Ok(()), |path| write_baseline(path, &text, checked, terminal))
    }

    /// The baseline; what is wrong with it goes to the errors of the inputs.
    fn baseline(&self, checked: &mut Checked) -> Option<Baseline> {
        match read_baseline(self.baseline.as_ref()?) {
            Ok(baseline) => Some(baseline),
            Err(error) => {
                checked.errors.push(error);
                None
            }
        }
    }
}

/// What is found at the merge base of a branch.
fn known_at(
    reference: &str,
    input: &InputArgs,
    project: &Project,
    terminal: Terminal,
) -> anyhow::Result<KnownFindings> {
    let interrupt = Interrupt::listen()?;
    let stop = &interrupt.stop;
    let directory = tempfile::Builder::new().prefix("memgate-base-").tempdir();
    let directory = directory.context("failed to make a temporary directory for the base")?;
    let read = |asked: BasePaths<'_>| base::read(reference, asked, directory.path(), stop);
    let (base, mut checked) = input.check_base(project, read, stop)?;
    directory.close().context("failed to remove the temporary directory of the base")?;
    let identities = ignore::apply_and_identify(&mut checked);
    let known = known(&checked, &identities);
    anyhow::ensure!(!stop.is_set(), base::Error::Interrupted);
    let commit: String = base.commit.chars().take(COMMIT_DIGITS).collect();
    terminal.note(&format!("note: compared with {commit}, the merge base of {} and HEAD", plain(reference)));
    if let Some(first) = checked.errors.first() {
        let errors = counted(checked.errors.len(), "error");
        let first = base.from_root(&input_error(first).line);
        terminal.note(&format!("note: {errors} at the base, so what stands there counts as new: {first}"));
    }
    Ok(known)
}

/// Writes the file, whole or not at all. What was not read or judged would be missing in it, so it is not written
/// then.
fn write_baseline(path: &str, text: &str, checked: &Checked, terminal: Terminal) -> anyhow::Result<()> {
    let shown = plain(path).into_owned();
    let is_judged = checked.decided.iter().any(Decided::is_judged);
    if !checked.errors.is_empty() || !is_judged {
        terminal.note(&format!("note: {shown} is not written, since not everything was checked"));
        return Ok(());
    }
    write_whole(Path::new(path), text.as_bytes())
}
