//! `memgate check`: what would be denied or warned about.

use std::io;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::fix::{FixArgs, mend, mend_rendered, write_files};
use crate::cli::input::InputArgs;
use crate::cli::output::{OutputArg, check_places, is_page, or_reported, write_outputs};
use crate::cli::project::{FailOnSeverity, Project};
use crate::cli::pull_request::{compare, open_branch, reference};
use crate::cli::terminal::Terminal;
use memgate_model::finding::{Finding, Severity};
use memgate_platforms::common::{KUSTOMIZATION_INVALID, NOT_JUDGED, VALUE_UNKNOWN};
use memgate_policy::counts::RuleCounts;
use memgate_workbench::build::rules::IgnoredCodes;
use memgate_workbench::files::base::Branch;
use memgate_workbench::files::fix::{judged_with, summary};
use memgate_workbench::files::ignore;
use memgate_workbench::files::judge::Checked;
use memgate_workbench::files::outcome::{FailOn, notes, nothing_found, with_page};
use memgate_workbench::files::place::report;
use memgate_workbench::files::run::{Run, judged, leave_out};
use memgate_workbench::report::{Report, rule_counts, text};

/// Check manifests: what would be denied in a cluster, and why
///
/// Reads manifests as the apiserver would get them, judges memory resources, the agents that refer
/// to them, pods and workloads, and shows each finding at its line. Other objects are passed over.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 nothing would be denied, 1 something would, 2 an input cannot be
read or parsed, 3 nothing to check was found.",
    after_long_help = "\
Examples:
  memgate check deploy/
  helm template chart | memgate check -
  memgate check charts/one --values charts/one/values-prod.yaml
  memgate check agents/ --with cluster-state.yaml --fail-on warn
  memgate check . -o text -o json=findings.json
  memgate check deploy/ -o html=report.html
  memgate check deploy/ -o github -o sarif=memgate.sarif -o junit=memgate.xml
  memgate check . --base origin/main
  memgate check deploy/ --fix"
)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Format and file; repeatable [default: text]
    ///
    /// Formats: text, concise (a line for each finding), json, github, gitlab, sarif, junit, markdown (a comment for a pull
    /// request) and html (a page for a browser). Without a file the format is written to standard output, which then
    /// holds nothing else.
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]", help_heading = "Output")]
    output: Vec<OutputArg>,

    /// Leave out findings with this code; repeatable
    ///
    /// A code, or a glob such as 'ark/*' or 'policy/*', in which * also stands for /. Syntax errors always count, and so
    /// do findings that are not listed since an object has more than 50. A comment about a finding that is left out
    /// counts as used.
    #[arg(long, value_name = "CODE", help_heading = "Output")]
    ignore: Vec<String>,

    #[command(flatten)]
    fail_on: FailOnArgs,

    /// Count only findings that REF does not have
    ///
    /// REF is a branch or a commit. The same paths are read through git, as they were at the merge base of REF and
    /// HEAD. A finding that was there too becomes a note, even if its line has moved or its file was renamed. A reference
    /// whose target the branch renamed, moved or removed denies. The work tree and the index are not touched.
    /// Kustomizations and charts are built as they were there. The branch does not choose its judge:
    /// .memgate.yaml, the file of --project in the repository, and MemoryPolicies, MemoryPolicyExemptions and labels of
    /// Namespaces among the inputs count as they are in REF.
    #[arg(long, value_name = "REF", value_parser = reference, help_heading = "Pull requests")]
    base: Option<String>,

    #[command(flatten)]
    fix: FixArgs,
}

/// What makes the exit code 1 besides denials, as flags.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct FailOnArgs {
    /// Least severity for exit code 1 [default: deny]
    #[arg(long, value_name = "deny|warn", value_enum, hide_possible_values = true)]
    fail_on: Option<FailOnSeverity>,

    /// Fail if what looked checkable was not checked
    ///
    /// Exit code 1 also means that something looked checkable and was not judged, or was judged on an assumption: a
    /// misspelt kind, a version that is not served, a chart that was not built, a platform that is switched off, a file
    /// of --with that nothing used, or a policy that depends on labels of an unknown Namespace.
    #[arg(long, default_missing_value = "true", num_args = 0..=1)]
    #[arg(value_name = "true|false", require_equals = true, hide_possible_values = true)]
    strict: Option<bool>,

    /// Write no notes and no summary
    #[arg(short, long)]
    quiet: bool,

    /// Exit with 0 if nothing to check was found
    ///
    /// For hooks, which also run for changes of other files. A note still says that nothing was checked.
    #[arg(long, hide_short_help = true)]
    allow_empty: bool,
}

impl FailOnArgs {
    /// The streams, without notes if the user wants none.
    pub fn terminal(self, terminal: Terminal) -> Terminal {
        if self.quiet { terminal.without_notes() } else { terminal }
    }

    /// Leaves out the notes about what a later step fills in if the user wants no notes, unless they make the run fail.
    pub fn hide_later(self, fail_on: FailOn, checked: &mut Checked) {
        if self.quiet && !fail_on.strict {
            let is_shown = |it: &Finding| it.severity != Severity::Note || it.code != &VALUE_UNKNOWN;
            checked.inputs.notices.retain(|notice| is_shown(&notice.finding));
        }
    }

    /// Joins the flags with the choices of the repository.
    pub fn or(self, project: &Project) -> FailOn {
        FailOn {
            warnings: self.fail_on.or(project.fail_on) == Some(FailOnSeverity::Warn),
            strict: self.strict.or(project.strict) == Some(true),
            allows_empty: self.allow_empty,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// When the report cannot be written, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let terminal = args.fail_on.terminal(terminal);
    check_places(&args.output, terminal)?;
    let branch = args.base.as_ref().map(|base| open_branch(base, &args.input)).transpose()?;
    let mut project = or_reported(project(args, branch.as_ref(), terminal), &args.output, terminal)?;
    let (fail_on, broken) = (args.fail_on.or(&project), project.broken.take());
    let run = plan(args, &project)?;
    if args.fix.fix {
        return run_fix(args, run, fail_on, terminal);
    }
    let mut checked = judge(args, branch, &project, run, fail_on, terminal)?;
    // The next run on the main branch would end with it. What is denied now comes before that.
    let is_only_broken = broken.is_some() && checked.inputs.errors.is_empty();
    checked.inputs.errors.extend(broken);
    let report = with_page(report(&checked), "check", &checked);
    let status = finish(&checked, &report, &args.output, fail_on, terminal)?;
    let status = if is_only_broken && fail_on.is_in(&report) { ExitStatus::Denied } else { status };
    drop(report);
    forget(checked);
    Ok(status)
}

/// The choices of the repository: with a branch those that it must not change.
fn project(args: &Args, branch: Option<&Branch>, terminal: Terminal) -> anyhow::Result<Project> {
    match branch {
        Some(branch) => args.input.project_at(branch, terminal),
        None => args.input.project(terminal),
    }
}

/// What is read, and how.
fn plan(args: &Args, project: &Project) -> anyhow::Result<Run> {
    let mut run = args.input.run(project)?;
    run.plan.ignored = IgnoredCodes::new(&args.ignore).map_err(anyhow::Error::msg)?;
    run.plan.wants_map = is_page(&args.output);
    Ok(run)
}

/// Judges what is read, and leaves out what comments, the base of the branch and flags silence.
fn judge(
    args: &Args,
    branch: Option<Branch>,
    project: &Project,
    mut run: Run,
    fail_on: FailOn,
    terminal: Terminal,
) -> anyhow::Result<Checked> {
    let mut checked = match branch {
        Some(branch) => compare(branch, &args.input, project, &mut run, terminal)?.judged(&run)?,
        None => {
            let mut checked = judged(&run)?;
            ignore::apply(&mut checked, None);
            checked
        }
    };
    args.fail_on.hide_later(fail_on, &mut checked);
    leave_out(&mut checked, &run.plan.ignored);
    Ok(checked)
}

/// Ends with the objects in memory, since the process ends now: to free them one by one would take a twentieth of the time. The
/// folder of the programs that built goes with the origins.
fn forget(mut checked: Checked) {
    drop(std::mem::take(&mut checked.inputs.origins));
    std::mem::forget(checked);
}

/// Corrects what has one right answer and reports the rest.
fn run_fix(args: &Args, mut run: Run, fail_on: FailOn, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let (before, mut fixed, mut after) = mend(&mut run)?;
    let mut is_written = true;
    if !write_files(&mut fixed, terminal) {
        is_written = false;
        after = Some(judged_with(&mut run, &fixed)?);
    } else if run.plan.builder.is_some() && !fixed.is_empty() {
        let (last, all_written) = mend_rendered(&mut run, &mut fixed, terminal)?;
        (after, is_written) = (Some(last), all_written);
    }
    let mut checked = after.unwrap_or(before);
    args.fail_on.hide_later(fail_on, &mut checked);
    let report = with_page(report(&checked), "check", &checked);
    write_outputs(&report, &args.output, fail_on.warnings, terminal)?;
    if !is_nothing(&report) {
        terminal.note(&summary(&fixed, if is_written { "nothing to fix" } else { "fixed nothing" }));
    }
    write_notes(&checked, &report, fail_on, terminal);
    Ok(if is_written { exit_status(&report, fail_on) } else { ExitStatus::Failed })
}

/// Writes the report in the formats of the flags, and its notes. The exit status follows from it.
///
/// # Errors
/// When it cannot be written.
pub fn finish(
    checked: &Checked,
    report: &Report<'_>,
    outputs: &[OutputArg],
    fail_on: FailOn,
    terminal: Terminal,
) -> anyhow::Result<ExitStatus> {
    write_outputs(report, outputs, fail_on.warnings, terminal)?;
    write_notes(checked, report, fail_on, terminal);
    Ok(exit_status(report, fail_on))
}

/// Writes the report as text to standard error, for commands with something else on standard output.
///
/// # Errors
/// When the report cannot be made, which is a fault of memgate.
pub fn write_to_stderr(report: &Report<'_>, terminal: Terminal) -> anyhow::Result<()> {
    let mut findings = Vec::new();
    text::write(report, Terminal::width(&io::stderr()), &mut findings)
        .context("failed to write the report")?;
    terminal.err(&findings);
    Ok(())
}

/// Writes errors of the inputs, notes and the summary to standard error.
pub fn write_notes(checked: &Checked, report: &Report<'_>, fail_on: FailOn, terminal: Terminal) {
    for error in &report.errors {
        terminal.input_error(error);
    }
    for note in notes(checked, report, fail_on) {
        terminal.note(&format!("note: {note}"));
    }
    if is_nothing(report) && report.errors.is_empty() {
        let nothing = nothing_found(checked);
        if fail_on.allows_empty {
            terminal.note(&format!("note: {nothing}"));
        } else {
            terminal.err(format!("error: {nothing}\n").as_bytes());
        }
    } else {
        // The verdict is the last line.
        note_rules(report.rules, terminal);
        terminal.note(&report.summary());
    }
}

/// Writes how often each rule of the policies judged and fired.
pub fn note_rules(counts: Option<&RuleCounts>, terminal: Terminal) {
    for line in counts.map(rule_counts::lines).unwrap_or_default() {
        terminal.note(&line);
    }
}

/// Whether nothing to check was found: neither objects nor a kustomization with a fault, nor what a branch hides.
fn is_nothing(report: &Report<'_>) -> bool {
    report.objects.is_empty() && ![&KUSTOMIZATION_INVALID, &NOT_JUDGED].into_iter().any(|it| report.has(it))
}

/// The exit status that follows from a report.
pub fn exit_status(report: &Report<'_>, fail_on: FailOn) -> ExitStatus {
    let is_empty = is_nothing(report) && !fail_on.allows_empty;
    ExitStatus::of(!report.errors.is_empty(), fail_on.is_in(report), is_empty)
}
