//! `--base`: findings that are known already, at the base of a branch.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context as _;

use crate::cli::input::InputArgs;
use crate::cli::project::Project;
use crate::cli::terminal::Terminal;
use memgate_manifest::error::Error;
use memgate_workbench::build::judged_by::{AtReference, JudgedBy};
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::base::{Base, Branch, Commit};
use memgate_workbench::files::difference::AtBase;
use memgate_workbench::files::errors::input_error;
use memgate_workbench::files::ignore;
use memgate_workbench::files::judge::Checked;
use memgate_workbench::files::run::{Run, compared, judged};
use memgate_workbench::files::suppress::{Identity, KnownFindings, Spot, known, suppress};
use memgate_workbench::files::unjudged::{Documents, Tree};
use memgate_workbench::paths::is_glob;
use memgate_workbench::report::{counted, plain};

/// How many digits of a commit are shown.
const COMMIT_DIGITS: usize = 12;

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
pub fn open_branch(reference: &str, input: &InputArgs) -> anyhow::Result<Branch> {
    anyhow::ensure!(!input.reads_stdin(), NOT_STDIN);
    Ok(Branch::find(reference)?)
}

/// What is known at the commits with which a branch is compared.
#[derive(Debug)]
pub struct Compared {
    /// The commit as the user named it.
    reference: String,
    /// The places at which its comments ignore findings.
    comments: BTreeSet<Spot>,
    /// The findings where the branch began.
    known: KnownFindings,
    base: AtBase,
    /// The files of the branch.
    tree: Tree,
}

impl Compared {
    /// Judges the branch. Known findings become notes: those that comments ignore, and those of the base.
    ///
    /// # Errors
    /// When standard input is named twice, or a number is out of bounds.
    pub fn judged(mut self, run: &Run) -> anyhow::Result<Checked> {
        let mut checked = compared(run, Some((&self.base, &self.tree)))?;
        let [identities, _] = ignore::apply_and_identify(&mut checked, Some(&self.comments));
        let reason = format!("already in {}", self.reference);
        suppress(&mut checked, &identities, &mut self.known, &reason);
        Ok(checked)
    }
}

/// Lets the run judge by what the commit says, and finds out what was there where the branch began.
///
/// # Errors
/// When the base cannot be read.
pub fn compare(
    branch: Branch,
    input: &InputArgs,
    project: &Project,
    run: &mut Run,
    terminal: Terminal,
) -> anyhow::Result<Compared> {
    // One reading is enough where both commits are one.
    let is_at_tip = branch.is_at_tip();
    run.plan.judged_by = JudgedBy::Kept;
    let read = |plan: Plan, _: &Base| {
        let occasion = run.occasion;
        Ok(judged(&Run { plan, occasion })?)
    };
    let at_tip =
        (!is_at_tip).then(|| read_at(&branch, Commit::Named, input, project, &run.plan, read)).transpose()?;
    let mut comments = Vec::new();
    if let Some((mut tip, base)) = at_tip {
        note_base_errors(&tip.inputs.errors, &base, "policies there may not count", terminal);
        run.plan.judged_by = judge(&branch, &mut tip, &base);
        comments = ignore::apply(&mut tip, None);
    }
    let read = |plan: Plan, base: &Base| {
        let run = Run { plan, occasion: run.occasion };
        let start = judged(&run)?;
        let tree = Tree { root: base.directory().to_owned(), names: base.names().cloned().collect() };
        let documents = Documents::of(&tree, &run.plan, &start.judged);
        Ok((start, documents))
    };
    let ((mut start, documents), base) = read_at(&branch, Commit::Start, input, project, &run.plan, read)?;
    if is_at_tip {
        run.plan.judged_by = judge(&branch, &mut start, &base);
    }
    let [identities, ignored] = ignore::apply_and_identify(&mut start, None);
    comments.extend(ignored.into_iter().filter(|_| is_at_tip));
    note_start(&branch, terminal);
    note_base_errors(&start.inputs.errors, &base, "findings there count as new", terminal);
    drop_missing_paths(&mut run.plan);
    let known = known(&start, &identities);
    let names = branch.files()?;
    let tree = Tree { root: branch.root().to_owned(), names: names.into() };
    let comments = comments.iter().map(Identity::spot).collect();
    let base = AtBase::new(start, documents, [base.directory().to_owned(), tree.root.clone()]);
    Ok(Compared { reference: branch.reference, comments, known, base, tree })
}

/// What the branch is judged by, of the commit that the user named.
fn judge(branch: &Branch, tip: &mut Checked, base: &Base) -> JudgedBy {
    let mut units = std::mem::take(&mut tip.standings);
    let shown = |file: &str| branch.shown(&base.from_root(file)).to_string_lossy().into_owned();
    for standing in units.values_mut() {
        standing.name_files(shown);
    }
    JudgedBy::Reference(Arc::new(AtReference { name: branch.reference.clone(), units }))
}

/// What `read` makes of the files of a plan as they are in a commit.
fn read_at<T>(
    branch: &Branch,
    commit: Commit,
    input: &InputArgs,
    project: &Project,
    plan: &Plan,
    read: impl FnOnce(Plan, &Base) -> anyhow::Result<T>,
) -> anyhow::Result<(T, Base)> {
    anyhow::ensure!(!plan.reads_stdin(), NOT_STDIN);
    let directory = tempfile::Builder::new().prefix("memgate-base-").tempdir();
    let directory = directory.context("failed to make a temporary directory for the base")?;
    let base = branch.write(commit, plan, directory.path())?;
    let result = read(input.base_plan(project, plan, &base)?, &base)?;
    directory.close().context("failed to remove the temporary directory of the base")?;
    Ok((result, base))
}

/// Writes a note that names the commit at which the branch began.
fn note_start(branch: &Branch, terminal: Terminal) {
    let commit: String = branch.start().chars().take(COMMIT_DIGITS).collect();
    let reference = plain(&branch.reference);
    terminal.note(&format!("note: compared with {commit}, the merge base of {reference} and HEAD"));
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
