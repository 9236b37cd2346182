//! `memgate check`: what would be denied, and what is doubtful.

use std::io;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::fix::{self, FixArgs};
use crate::cli::input::{InputArgs, note_unread};
use crate::cli::output::{OutputArg, write_outputs};
use crate::cli::project::Project;
use crate::cli::pull_request::PullRequestArgs;
use crate::cli::terminal::Terminal;
use crate::family::naming::and_more;
use crate::model::finding::Severity;
use crate::offline::check::Checked;
use crate::offline::classify::checked_kinds;
use crate::offline::findings::report;
use crate::offline::passed_over::counts;
use crate::report::{ObjectRef, PassedOver, Report, counted, plain, text};

/// The most objects named in the note about what the inputs do not hold.
const MAX_NAMES_IN_NOTE: usize = 3;

/// The most lines about what was passed over.
const MAX_PASSED_OVER_IN_NOTES: usize = 20;

/// Check manifests: what would be denied in a cluster, and why
///
/// Reads manifests as the apiserver would get them, judges memory resources, the agents that refer
/// to them, pods and workloads, and shows each finding at its line. Everything else is passed over.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate check deploy/
  helm template chart | memgate check -
  memgate check --render charts/ overlays/ --values values-prod.yaml
  memgate check agents/ --with cluster-state.yaml --fail-on warn
  memgate check . -o text -o json=findings.json
  memgate check deploy/ -o github -o sarif=memgate.sarif -o junit=memgate.xml
  memgate check . --base origin/main
  memgate check deploy/ --fix --diff

Exit codes: 0 nothing would be denied, 1 something would, 2 an input cannot be read or parsed,
3 nothing to check was found.")]
pub struct Args {
    /// What is checked.
    #[command(flatten)]
    pub input: InputArgs,

    /// How to write findings, and to which file; can be repeated [default: text]
    ///
    /// Formats: text, concise (a line each), json, jsonl (an object a line), github, gitlab, sarif and junit. Without
    /// a file it is standard output, which then holds nothing else.
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]", help_heading = "Output")]
    pub output: Vec<OutputArg>,

    /// What makes the exit code 1.
    #[command(flatten)]
    pub fail_on: FailOnArgs,

    #[command(flatten)]
    pull_request: PullRequestArgs,

    /// Whether to mend what is found.
    #[command(flatten)]
    pub fix: FixArgs,
}

/// What makes the exit code 1.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct FailOnArgs {
    /// The least severity for which the exit code is 1 [default: deny]
    #[arg(long, value_name = "SEVERITY", value_enum, help_heading = "Output")]
    fail_on: Option<FailOnSeverity>,

    /// Also make the exit code 1 when something was passed over or assumed
    ///
    /// What no enabled family judged was passed over; what the inputs do not hold was assumed to be there.
    #[arg(long, help_heading = "Output", default_missing_value = "true", num_args = 0..=1)]
    #[arg(value_name = "true|false", require_equals = true, hide_possible_values = true)]
    strict: Option<bool>,
}

impl FailOnArgs {
    /// The same; where a flag says nothing, what the repository says.
    #[must_use]
    pub fn or(self, project: &Project) -> Self {
        let fail_on = project.fail_on.map(|severity| match severity {
            Severity::Warn => FailOnSeverity::Warn,
            Severity::Deny | Severity::Note => FailOnSeverity::Deny,
        });
        Self { fail_on: self.fail_on.or(fail_on), strict: self.strict.or(project.strict) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOnSeverity {
    /// What would be denied
    Deny,
    /// Warnings too
    Warn,
}

impl FailOnArgs {
    /// Whether a warning makes the exit code 1.
    #[must_use]
    pub fn on_warnings(self) -> bool {
        self.fail_on == Some(FailOnSeverity::Warn)
    }
}

/// Runs the command.
///
/// # Errors
/// When the report cannot be written, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let project = args.input.project(terminal)?;
    if args.fix.fix {
        return run_fix(args, &project, terminal);
    }
    let fail_on = args.fail_on.or(&project);
    let mut checked = args.input.check(&project)?;
    args.pull_request.apply(&mut checked, &args.input, &project, terminal)?;
    let report = report(&checked);
    write_outputs(&report, &args.output, fail_on.on_warnings(), terminal)?;
    write_notes(&checked, &report, fail_on, terminal);
    let status = exit_status(&report, fail_on);
    // The process ends now: to take apart what it holds first is a twentieth of the time.
    drop(report);
    std::mem::forget(checked);
    Ok(status)
}

/// Mends what has one right answer, and tells the rest; with `--diff` shows what would be mended and tells all.
fn run_fix(args: &Args, project: &Project, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let fail_on = args.fail_on.or(project);
    let before = fix::look(&args.input, project, &fix::FixedTexts::default())?;
    let (fixed, after) = fix::mend(&args.input, project, &before)?;
    let is_written = !args.fix.diff && fix::write(&fixed, terminal);
    let checked = after.as_ref().filter(|_| is_written).unwrap_or(&before);
    let report = report(checked);
    if args.fix.diff {
        terminal.out(&fix::diffs(&fixed)?)?;
        let mut findings = Vec::new();
        text::write(&report, Terminal::width(&io::stderr()), &mut findings)
            .context("failed to write the report")?;
        terminal.err(&findings);
    } else {
        write_outputs(&report, &args.output, fail_on.on_warnings(), terminal)?;
    }
    if args.fix.diff || is_written {
        terminal.note(&fix::summary(if is_written { "fixed" } else { "would fix" }, &fixed));
    }
    write_notes(checked, &report, fail_on, terminal);
    let failed = !args.fix.diff && !is_written;
    Ok(if failed { ExitStatus::Failed } else { exit_status(&report, fail_on) })
}

/// Writes errors of the inputs, notes and the summary to standard error; the report goes to standard output.
pub fn write_notes(checked: &Checked, report: &Report<'_>, fail_on: FailOnArgs, terminal: Terminal) {
    for error in &report.errors {
        terminal.input_error(error);
    }
    note_unread(&checked.unread, "manifest", terminal);
    for line in report.not_shown_lines() {
        terminal.note(&format!("note: {line}"));
    }
    if let Some(note) = unknown_note(&report.unknown) {
        terminal.note(&note);
    }
    if fail_on.strict == Some(true) {
        write_passed_over(&report.passed_over, terminal);
    }
    if report.objects.is_empty() && report.errors.is_empty() {
        terminal.note(&nothing_found(checked));
    } else {
        terminal.note(&report.summary());
    }
}

/// The exit status that follows from a report.
#[must_use]
pub fn exit_status(report: &Report<'_>, fail_on: FailOnArgs) -> ExitStatus {
    let warned = fail_on.on_warnings() && report.count(Severity::Warn) > 0;
    let blind = fail_on.strict == Some(true)
        && (!report.passed_over.is_empty() || !assumed(&report.unknown).is_empty());
    if !report.errors.is_empty() {
        ExitStatus::Failed
    } else if report.denied > 0 || warned || blind {
        ExitStatus::Denied
    } else if report.objects.is_empty() {
        ExitStatus::Nothing
    } else {
        ExitStatus::Clean
    }
}

/// Says of what was passed over where it stands and why; of the first of a long list.
fn write_passed_over(passed_over: &[PassedOver<'_>], terminal: Terminal) {
    for PassedOver { file, line, object_ref, reason: words, .. } in
        passed_over.iter().take(MAX_PASSED_OVER_IN_NOTES)
    {
        let title = object_ref.map_or_else(|| "a document".to_owned(), ObjectRef::title);
        terminal.note(&format!("note: {}:{line}: not checked: {} {words}", plain(file), plain(&title)));
    }
    let more = passed_over.len().saturating_sub(MAX_PASSED_OVER_IN_NOTES);
    if more > 0 {
        terminal.note(&format!("note: {more} more not checked"));
    }
}

/// Of what the inputs do not hold, what users are told. Every pod asks for its Namespace, which inputs rarely
/// hold: a note about it would be noise. About a claim there is a warning already.
fn assumed(unknown: &[String]) -> Vec<String> {
    let told =
        |name: &&String| !["Namespace ", "PersistentVolumeClaim "].iter().any(|kind| name.starts_with(kind));
    unknown.iter().filter(told).cloned().collect()
}

/// What the inputs do not hold, in one line; the first few of a long list.
fn unknown_note(names: &[String]) -> Option<String> {
    let names = assumed(names);
    let shown = and_more(&names, MAX_NAMES_IN_NOTE);
    let note = format!(
        "note: not among the inputs, so whether it is there is not known: {shown} (add it with --with)"
    );
    (!names.is_empty()).then_some(note)
}

/// What was looked at, and what would have counted.
fn nothing_found(checked: &Checked) -> String {
    let seen = counts(&checked.passed_over);
    let seen = match (checked.sources.len(), seen.as_slice()) {
        (0, _) => "no file at all".to_owned(),
        (1, []) => "1 file, which holds no object".to_owned(),
        (files, []) => format!("{files} files, which hold no object"),
        (files, seen) => format!("{} with {}", counted(files, "file"), seen.join(", ")),
    };
    format!("error: nothing to check was found\n  looked at: {seen}\n  what counts: {}", checked_kinds())
}
