//! `--base`: findings that are known already, at the base of a branch.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use anyhow::Context as _;

use crate::cli::branch::OpenBranch;
use crate::cli::input::InputArgs;
use crate::cli::project::Project;
use crate::cli::terminal::Terminal;
use memgate_manifest::error::Error;
use memgate_workbench::base::{self, Base, Commit};
use memgate_workbench::broken;
use memgate_workbench::compared::Comparison;
use memgate_workbench::errors::input_error;
use memgate_workbench::ignore;
use memgate_workbench::judge::Checked;
use memgate_workbench::judged_by::{AtReference, JudgedBy, Standing};
use memgate_workbench::load::each_unit;
use memgate_workbench::paths::is_glob;
use memgate_workbench::plan::Plan;
use memgate_workbench::report::counted;
use memgate_workbench::run::{Run, judged};
use memgate_workbench::suppress::{KnownFindings, known, newly_ignored, suppress};

/// Why standard input cannot be compared.
const NOT_STDIN: &str = "--base compares with a commit, and no commit has standard input (-)";

/// Parses a REF that git cannot take for an option.
pub(super) fn reference(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('-') || text.chars().any(|c| c.is_control() || c == ' ') {
        return Err("this is not the name of a branch or commit".to_owned());
    }
    Ok(text.to_owned())
}

/// Opens the branch that is checked, to compare it with a commit.
///
/// # Errors
/// When there is no such commit, or git fails.
pub fn open_branch(reference: &str, input: &InputArgs) -> anyhow::Result<OpenBranch> {
    anyhow::ensure!(!input.reads_stdin(), NOT_STDIN);
    OpenBranch::find(reference)
}

/// What is known at the commits with which a branch is compared.
#[derive(Debug)]
pub struct Compared {
    /// The commit as the user named it.
    reference: String,
    /// The findings where the branch began.
    known: KnownFindings,
}

impl Compared {
    /// Makes notes of known findings: those that comments ignore, and those of the base.
    pub fn apply(mut self, checked: &mut Checked) {
        let identities = ignore::apply_and_identify(checked);
        checked.inputs.changes.ignored = newly_ignored(checked, &identities, &self.known);
        let reason = format!("already in {}", self.reference);
        suppress(checked, &identities, &mut self.known, &reason);
    }
}

impl OpenBranch {
    /// Lets the run judge by what the commit says, and finds out what was there where the branch began.
    ///
    /// # Errors
    /// When the base cannot be read, or the user stops it.
    pub fn compare(
        self,
        input: &InputArgs,
        project: &Project,
        run: &mut Run,
        terminal: Terminal,
    ) -> anyhow::Result<Compared> {
        // One reading is enough where both commits are one.
        let is_at_tip = self.branch.is_at_tip();
        run.plan.judged_by = if is_at_tip {
            JudgedBy::Kept
        } else {
            JudgedBy::Reference(Arc::new(self.standing(input, project, &run.plan, terminal)?))
        };
        let occasion = run.occasion;
        let judge = |plan| {
            let plan = Plan { comparison: Comparison::Base, ..plan };
            Ok(judged(&Run { plan, occasion })?)
        };
        let (mut checked, base) = self.read(Commit::Start, input, project, &run.plan, judge)?;
        if is_at_tip {
            let standings = std::mem::take(&mut checked.compared.standings);
            run.plan.judged_by = JudgedBy::Reference(Arc::new(self.at_reference(standings, &base)));
        }
        let identities = ignore::apply_and_identify(&mut checked);
        self.note_start(terminal);
        note_base_errors(&checked.inputs.errors, &base, "findings there count as new", terminal);
        drop_missing_paths(&mut run.plan);
        let known = known(&checked, &identities);
        let objects = broken::at_base(&mut checked, |file| self.shown(&base, file));
        run.plan.comparison = Comparison::With(Arc::new(objects));
        Ok(Compared { reference: self.branch.reference, known })
    }

    /// The name of a file of the base as the user would write it.
    fn shown(&self, base: &Base, file: &str) -> String {
        self.branch.shown(&base.from_root(file)).to_string_lossy().into_owned()
    }

    /// What objects are judged by at the commit that the user named.
    ///
    /// # Errors
    /// When the files of the commit cannot be read, or the user stops it.
    fn standing(
        &self,
        input: &InputArgs,
        project: &Project,
        plan: &Plan,
        terminal: Terminal,
    ) -> anyhow::Result<AtReference> {
        let keep = |plan: Plan| {
            let plan = Plan { judged_by: JudgedBy::Kept, ..plan };
            let (first, others) = each_unit(&plan, |it| (it.errors, (it.unit, it.standing)))?;
            Ok(iter::once(first).chain(others).unzip::<_, _, Vec<_>, BTreeMap<_, _>>())
        };
        let ((errors, units), base) = self.read(Commit::Named, input, project, plan, keep)?;
        let errors: Vec<Error> = errors.into_iter().flatten().collect();
        note_base_errors(&errors, &base, "policies there may not count", terminal);
        Ok(self.at_reference(units, &base))
    }

    /// The same, of what was kept while the files were read.
    fn at_reference(&self, mut units: BTreeMap<String, Standing>, base: &Base) -> AtReference {
        for standing in units.values_mut() {
            standing.name_files(|file| self.shown(base, file));
        }
        AtReference { name: self.branch.reference.clone(), units }
    }

    /// What `read` makes of the files of a plan as they are in a commit.
    fn read<T>(
        &self,
        commit: Commit,
        input: &InputArgs,
        project: &Project,
        plan: &Plan,
        read: impl FnOnce(Plan) -> anyhow::Result<T>,
    ) -> anyhow::Result<(T, Base)> {
        anyhow::ensure!(!plan.reads_stdin(), NOT_STDIN);
        let stop = &self.interrupt.stop;
        let directory = tempfile::Builder::new().prefix("memgate-base-").tempdir();
        let directory = directory.context("failed to make a temporary directory for the base")?;
        let base = self.branch.write(commit, plan, directory.path(), stop)?;
        let result = read(input.base_plan(project, plan, &base, stop)?)?;
        directory.close().context("failed to remove the temporary directory of the base")?;
        anyhow::ensure!(!stop.is_set(), base::Error::Interrupted);
        Ok((result, base))
    }
}

/// Leaves out paths that the commit's choices name and the branch does not have.
fn drop_missing_paths(plan: &mut Plan) {
    if plan.within.is_none() {
        return;
    }
    let is_there = |path: &String| is_glob(path) || std::fs::symlink_metadata(path).is_ok();
    plan.later
        .extend(plan.checked.iter().filter(|path| !is_there(path)).map(|path| format!("{path} (removed)")));
    plan.checked.retain(is_there);
}

/// Writes a note about inputs that could not be read at the base, with what follows from it.
fn note_base_errors(errors: &[Error], base: &Base, effect: &str, terminal: Terminal) {
    if let Some(first) = errors.first() {
        let errors = counted(errors.len(), "error");
        let first = base.from_root(&input_error(first).line);
        terminal.note(&format!("note: {errors} at the base, so {effect}: {first}"));
    }
}
