//! The flags about findings that are known already: at the base of a branch, or in a baseline.

use std::collections::BTreeMap;
use std::iter;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use crate::cli::branch::OpenBranch;
use crate::cli::file::write_whole;
use crate::cli::input::InputArgs;
use crate::cli::project::Project;
use crate::cli::terminal::Terminal;
use memgate_manifest::error::Error;
use memgate_manifest::source::Source;
use memgate_workbench::base::{self, Base, Commit, FileThere};
use memgate_workbench::baseline::{self, Baseline, pass_by, read as read_baseline, record};
use memgate_workbench::broken;
use memgate_workbench::compared::Comparison;
use memgate_workbench::errors::input_error;
use memgate_workbench::ignore;
use memgate_workbench::judge::Checked;
use memgate_workbench::judged_by::{AtReference, JudgedBy, Standing};
use memgate_workbench::plan::Plan;
use memgate_workbench::report::html_data::Gone;
use memgate_workbench::report::map::MemoryMap;
use memgate_workbench::report::{counted, plain};
use memgate_workbench::repository::is_glob;
use memgate_workbench::run::{Run, judged};
use memgate_workbench::sets::each_set;
use memgate_workbench::suppress::{Identity, KnownFindings, described, gone, known, newly_ignored, suppress};

/// Why standard input cannot be compared.
const NOT_STDIN: &str = "--base compares with a commit, and no commit has standard input (-)";

/// The flags about known findings. These become notes and do not change the exit code.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Pull requests")]
pub struct PullRequestArgs {
    /// Count only findings that REF does not have
    ///
    /// REF is a branch or a commit. The same paths are read through git, as they were at the merge base of REF and
    /// HEAD. A finding that was there too becomes a note, even if its line has moved or its file was renamed. A reference
    /// whose target the branch renamed, moved or removed denies. The work tree and the index are not touched. With
    /// --render, charts and overlays are rendered as they were there. The branch does not choose its judge:
    /// .memgate.yaml, the files of --project and --baseline in the repository, and MemoryPolicies,
    /// MemoryPolicyExemptions and labels of Namespaces among the inputs count as they are in REF.
    #[arg(long, value_name = "REF", value_parser = reference)]
    base: Option<String>,

    /// Count only findings that are not in FILE
    ///
    /// FILE was written by --write-baseline. A finding about another value than the one that was written is new. An entry without a finding is a warning, so that the file shrinks.
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
    /// Opens the branch that is checked, if it is compared with a commit.
    ///
    /// # Errors
    /// When there is no such commit, or git fails.
    pub fn branch(&self, input: &InputArgs) -> anyhow::Result<Option<OpenBranch>> {
        let Some(reference) = &self.base else { return Ok(None) };
        anyhow::ensure!(!input.reads_stdin(), NOT_STDIN);
        OpenBranch::find(reference).map(Some)
    }

    /// Whether findings in a file are known.
    pub const fn has_baseline(&self) -> bool {
        self.baseline.is_some() || self.write_baseline.is_some()
    }

    /// Makes notes of known findings: those that comments ignore, those of the base, and those of the baseline.
    ///
    /// # Errors
    /// When the new baseline cannot be written. A fault of the old baseline is an error of the inputs.
    pub fn apply(
        &self,
        checked: &mut Checked,
        compared: Option<Compared>,
        terminal: Terminal,
    ) -> anyhow::Result<()> {
        if compared.is_none() && self.baseline.is_none() && self.write_baseline.is_none() {
            ignore::apply(checked);
            return Ok(());
        }
        for path in self.baseline.iter().chain(&self.write_baseline) {
            pass_by(checked, path);
        }
        let identities = ignore::apply_and_identify(checked);
        let mut baseline = None;
        if let Some(Compared { reference, start, mut known, baseline: there, described, .. }) = compared {
            checked.inputs.changes.ignored = newly_ignored(checked, &identities, &known);
            suppress(checked, &identities, &mut known, &format!("already in {reference}"));
            if let Some(page) = &mut checked.page {
                page.gone = Some(gone(described, &known));
                page.base = Some([reference, start]);
            }
            baseline = there;
        }
        let text = match (self.baseline(baseline, checked, terminal), &self.write_baseline) {
            (Some(baseline), _) => baseline.apply(checked, &identities, self.write_baseline.is_some()),
            (None, Some(_)) if checked.inputs.errors.is_empty() => record(checked, &identities),
            (None, _) => String::new(),
        };
        self.write_baseline.as_ref().map_or(Ok(()), |path| write_baseline(path, &text, checked, terminal))
    }

    /// Reads the baseline, or that of the commit with which a branch is compared. A fault of it is an error of the inputs.
    fn baseline(&self, there: Option<Source>, checked: &mut Checked, terminal: Terminal) -> Option<Baseline> {
        let path = self.baseline.as_ref()?;
        match there.map_or_else(|| read_baseline(path), baseline::parse) {
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

    /// The text of the baseline in the commit with which a branch is compared, if the file is in the repository. What the
    /// branch changes of it is added to `later`.
    fn baseline_at(&self, open: &OpenBranch, later: &mut Vec<String>) -> anyhow::Result<Option<Source>> {
        let Some(path) = &self.baseline else { return Ok(None) };
        let Some(relative) = open.branch.relative(path) else { return Ok(None) };
        let name = format!("{}:{relative}", open.branch.reference);
        let (text, change) = match open.file(&relative)? {
            FileThere::Text(text) => (text, path.clone()),
            FileThere::Missing => (baseline::EMPTY.to_owned(), format!("{path} (new)")),
            FileThere::Unreadable => anyhow::bail!(
                "{}: this is a link, or not a text; give the file itself with --baseline",
                plain(&name)
            ),
        };
        if !std::fs::read(path).is_ok_and(|now| now == text.as_bytes()) {
            later.push(change);
        }
        Ok(Some(Source::new(&name, text)))
    }
}

/// What is known at the commits with which a branch is compared.
#[derive(Debug)]
pub struct Compared {
    /// The commit as the user named it.
    reference: String,
    /// The id of the commit at which the branch began.
    start: String,
    /// The findings where the branch began.
    known: KnownFindings,
    /// The baseline, if it is a file of the repository.
    baseline: Option<Source>,
    /// The same findings as a page shows those that are gone, if there will be one.
    described: BTreeMap<Identity, Gone>,
    /// The map of memory where the branch began, if it is compared.
    map: Option<MemoryMap>,
}

impl Compared {
    /// Takes the map out.
    pub fn take_map(&mut self) -> Option<MemoryMap> {
        self.map.take()
    }
}

impl OpenBranch {
    /// Lets the run judge by what the commit says, and finds out what was there where the branch began.
    ///
    /// # Errors
    /// When the base cannot be read, or the user stops it.
    pub fn compare(
        self,
        flags: &PullRequestArgs,
        input: &InputArgs,
        project: &Project,
        run: &mut Run,
        terminal: Terminal,
    ) -> anyhow::Result<Compared> {
        let following = terminal.follow(&run.plan.progress);
        // One reading is enough where both commits are one.
        let is_at_tip = self.branch.is_at_tip();
        run.plan.judged_by = if is_at_tip {
            JudgedBy::Kept
        } else {
            JudgedBy::Reference(Arc::new(self.standing(input, project, &run.plan, terminal)?))
        };
        let occasion = run.occasion;
        let wants_page = run.plan.wants_page;
        let judge = |plan| {
            let plan = Plan { comparison: Comparison::Base, wants_page, ..plan };
            Ok(judged(&Run { plan, occasion })?)
        };
        let (mut checked, base) = self.read(Commit::Start, input, project, &run.plan, judge)?;
        if is_at_tip {
            let standings = std::mem::take(&mut checked.compared.standings);
            run.plan.judged_by = JudgedBy::Reference(Arc::new(self.at_reference(standings, &base)));
        }
        let identities = ignore::apply_and_identify(&mut checked);
        drop(following);
        self.note_start(terminal);
        note_base_errors(&checked.inputs.errors, &base, "findings there count as new", terminal);
        drop_missing_paths(&mut run.plan);
        let baseline = flags.baseline_at(&self, &mut run.plan.later)?;
        let known = known(&checked, &identities);
        let described = if wants_page {
            described(&mut checked, &identities, |file| self.shown(&base, file))
        } else {
            BTreeMap::new()
        };
        let objects = broken::at_base(&mut checked, |file| self.shown(&base, file));
        run.plan.comparison = Comparison::With(Arc::new(objects));
        let map = checked.page.map(|page| page.map);
        let start = self.branch.start().to_owned();
        Ok(Compared { reference: self.branch.reference, start, known, baseline, described, map })
    }

    /// The name of a file of the base as the user would write it.
    fn shown(&self, base: &Base, file: &str) -> String {
        self.branch.shown(&base.from_root(file)).to_string_lossy().into_owned()
    }

    /// What objects are judged by at the commit that the user named.
    ///
    /// # Errors
    /// When the files of the commit cannot be read, or the user stops it.
    pub fn standing(
        &self,
        input: &InputArgs,
        project: &Project,
        plan: &Plan,
        terminal: Terminal,
    ) -> anyhow::Result<AtReference> {
        let keep = |plan: Plan| {
            let plan = Plan { judged_by: JudgedBy::Kept, ..plan };
            let (first, others) = each_set(&plan, |it| (it.errors, (it.set, it.standing)))?;
            Ok(iter::once(first).chain(others).unzip::<_, _, Vec<_>, BTreeMap<_, _>>())
        };
        let ((errors, sets), base) = self.read(Commit::Named, input, project, plan, keep)?;
        let errors: Vec<Error> = errors.into_iter().flatten().collect();
        note_base_errors(&errors, &base, "policies there may not count", terminal);
        Ok(self.at_reference(sets, &base))
    }

    /// The same, of what was kept while the files were read.
    fn at_reference(&self, mut sets: BTreeMap<String, Standing>, base: &Base) -> AtReference {
        for standing in sets.values_mut() {
            standing.name_files(|file| self.shown(base, file));
        }
        AtReference { name: self.branch.reference.clone(), sets, is_alone: false }
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
    for set in &mut plan.sets {
        set.paths.retain(is_there);
    }
    plan.sets.retain(|set| !set.paths.is_empty());
}

/// What `read` makes of the files of a plan as they were at the merge base of a branch, with a note that names the commit.
///
/// # Errors
/// When the base cannot be read, or the user stops it.
#[cfg(feature = "workstation")]
pub(super) fn at_base<T>(
    reference: &str,
    input: &InputArgs,
    project: &Project,
    plan: &Plan,
    terminal: Terminal,
    read: impl FnOnce(Plan) -> anyhow::Result<T>,
) -> anyhow::Result<(T, Base)> {
    let open = OpenBranch::find(reference)?;
    let result = open.read(Commit::Start, input, project, plan, read)?;
    open.note_start(terminal);
    Ok(result)
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
