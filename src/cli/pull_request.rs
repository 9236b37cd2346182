//! The flags about findings that are known already: at the base of a branch, or in a baseline.

use std::path::Path;

use anyhow::Context as _;

use crate::cli::file::write_whole;
use crate::cli::input::InputArgs;
use crate::cli::interrupt::Interrupt;
use crate::cli::project::Project;
use crate::cli::terminal::Terminal;
use memgate_manifest::error::Error;
use memgate_workbench::base::{self, Base};
use memgate_workbench::baseline::{Baseline, pass_by, read as read_baseline, record};
use memgate_workbench::broken::{self, AtBase};
use memgate_workbench::errors::input_error;
use memgate_workbench::ignore;
use memgate_workbench::judge::Checked;
use memgate_workbench::plan::Plan;
use memgate_workbench::report::{counted, plain};
use memgate_workbench::run::{Run, judged};
use memgate_workbench::suppress::{KnownFindings, known, suppress};

/// How many digits of a commit are shown.
const COMMIT_DIGITS: usize = 12;

/// The flags about known findings. These become notes and do not change the exit code.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Pull requests")]
pub struct PullRequestArgs {
    /// Count only findings that REF does not have
    ///
    /// REF is a branch or a commit. The same paths are read through git, as they were at the merge base of REF and
    /// HEAD. A finding that was there too becomes a note, even if its line has moved or its file was renamed. A reference
    /// whose target the branch renamed, moved or removed denies. The work tree and the index are not touched. With
    /// --render, charts and overlays are rendered as they were there.
    #[arg(long, value_name = "REF", value_parser = reference)]
    base: Option<String>,

    /// Count only findings that are not in FILE
    ///
    /// FILE was written by --write-baseline. An entry without a finding is a warning, so that the file shrinks.
    #[arg(long, value_name = "FILE")]
    baseline: Option<String>,

    /// Write the findings to FILE, for --baseline
    ///
    /// The findings in it do not count. Together with --baseline, findings that are gone are left out of the file and
    /// new ones are not added.
    #[arg(long, value_name = "FILE", conflicts_with = "base")]
    write_baseline: Option<String>,
}

/// Parses a REF that git cannot take for an option.
pub(super) fn reference(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('-') || text.chars().any(|c| c.is_control() || c == ' ') {
        return Err("this is not the name of a branch or commit".to_owned());
    }
    Ok(text.to_owned())
}

impl PullRequestArgs {
    /// Makes notes of known findings: those that comments ignore, those of the base, and those of the baseline.
    ///
    /// # Errors
    /// When the base cannot be read or the new baseline cannot be written. A fault of the old baseline is an error of
    /// the inputs.
    pub fn apply(
        &self,
        checked: &mut Checked,
        input: &InputArgs,
        project: &Project,
        run: &Run,
        terminal: Terminal,
    ) -> anyhow::Result<()> {
        if self.base.is_none() && self.baseline.is_none() && self.write_baseline.is_none() {
            ignore::apply(checked);
            return Ok(());
        }
        for path in self.baseline.iter().chain(&self.write_baseline) {
            pass_by(checked, path);
        }
        let base = self.base.as_ref();
        let base = base.map(|base| Ok::<_, anyhow::Error>((base, at(base, input, project, run, terminal)?)));
        let base = base.transpose()?;
        if let Some((_, (_, objects))) = &base {
            broken::mark(checked, objects);
        }
        let identities = ignore::apply_and_identify(checked);
        if let Some((reference, (mut known, _))) = base {
            suppress(checked, &identities, &mut known, &format!("already in {reference}"));
        }
        let text = match (self.baseline(checked, terminal), &self.write_baseline) {
            (Some(baseline), _) => baseline.apply(checked, &identities, self.write_baseline.is_some()),
            (None, Some(_)) if checked.inputs.errors.is_empty() => record(checked, &identities),
            (None, _) => String::new(),
        };
        self.write_baseline.as_ref().map_or(Ok(()), |path| write_baseline(path, &text, checked, terminal))
    }

    /// Reads the baseline. A fault of it is an error of the inputs.
    fn baseline(&self, checked: &mut Checked, terminal: Terminal) -> Option<Baseline> {
        let path = self.baseline.as_ref()?;
        match read_baseline(path) {
            Ok(baseline) => {
                if baseline.is_older() {
                    let note = "is older; write it anew to pin its values (--write-baseline)";
                    terminal.note(&format!("note: baseline {} {note}", plain(path)));
                }
                Some(baseline)
            }
            Err(error) => {
                checked.inputs.errors.push(error);
                None
            }
        }
    }
}

/// The findings and the objects at the merge base of a branch.
fn at(
    reference: &str,
    input: &InputArgs,
    project: &Project,
    Run { plan, occasion }: &Run,
    terminal: Terminal,
) -> anyhow::Result<(KnownFindings, AtBase)> {
    let read = |plan| Ok(judged(&Run { plan, occasion: *occasion })?);
    let (mut checked, base) = at_base(reference, input, project, plan, terminal, read)?;
    let identities = ignore::apply_and_identify(&mut checked);
    note_base_errors(&checked.inputs.errors, &base, "findings there count as new", terminal);
    Ok((known(&checked, &identities), AtBase::of(&mut checked)))
}

/// What `read` makes of the files of a plan as they were at the merge base of a branch, with a note that names the commit.
///
/// # Errors
/// When the base cannot be read, or the user stops it.
pub(super) fn at_base<T>(
    reference: &str,
    input: &InputArgs,
    project: &Project,
    plan: &Plan,
    terminal: Terminal,
    read: impl FnOnce(Plan) -> anyhow::Result<T>,
) -> anyhow::Result<(T, Base)> {
    anyhow::ensure!(
        !plan.reads_stdin(),
        "--base compares with a commit, and no commit has standard input (-)"
    );
    let interrupt = Interrupt::listen()?;
    let stop = &interrupt.stop;
    let directory = tempfile::Builder::new().prefix("memgate-base-").tempdir();
    let directory = directory.context("failed to make a temporary directory for the base")?;
    let base = base::read(reference, plan, directory.path(), stop)?;
    let result = read(input.base_plan(project, plan, &base, stop)?)?;
    directory.close().context("failed to remove the temporary directory of the base")?;
    anyhow::ensure!(!stop.is_set(), base::Error::Interrupted);
    let commit: String = base.commit.chars().take(COMMIT_DIGITS).collect();
    terminal.note(&format!("note: compared with {commit}, the merge base of {} and HEAD", plain(reference)));
    Ok((result, base))
}

/// Writes a note about inputs that could not be read at the base, with what follows from it.
pub(super) fn note_base_errors(errors: &[Error], base: &Base, effect: &str, terminal: Terminal) {
    if let Some(first) = errors.first() {
        let errors = counted(errors.len(), "error");
        let first = base.from_root(&input_error(first).line);
        terminal.note(&format!("note: {errors} at the base, so {effect}: {first}"));
    }
}

/// Writes the file, whole or not at all. It is not written when an object was not read or judged, since its findings
/// would be missing.
fn write_baseline(path: &str, text: &str, checked: &Checked, terminal: Terminal) -> anyhow::Result<()> {
    let shown = plain(path).into_owned();
    let is_judged = checked.decided.iter().any(|decided| decided.is_judged);
    if !checked.inputs.errors.is_empty() || !is_judged {
        terminal.note(&format!("note: {shown} is not written, since not everything was checked"));
        return Ok(());
    }
    write_whole(Path::new(path), text.as_bytes())
}
