//! `memgate check`: what would be denied or warned about.

use std::io;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::fix::{self, FixArgs};
use crate::cli::input::{InputArgs, unread_notes};
use crate::cli::output::{FindingArgs, OutputArg, check_places, write_outputs};
use crate::cli::page::{self, page};
use crate::cli::project::{FILE_NAME, FailOnSeverity, Project};
use crate::cli::pull_request::PullRequestArgs;
use crate::cli::terminal::Terminal;
use memgate_model::finding::{Code, Severity};
use memgate_model::request::{Occasion, Point};
use memgate_platforms::common;
use memgate_platforms::message::and_more;
use memgate_workbench::judge::Checked;
use memgate_workbench::load::InputPlan;
use memgate_workbench::objects::checked_kinds;
use memgate_workbench::passed_over::{Why, counts};
use memgate_workbench::place::{report, table};
use memgate_workbench::report::html_data::Page;
use memgate_workbench::report::{ObjectRef, PassedOver, Report, counted, plain, text};
use memgate_workbench::sets::check_all;

/// The most objects named in the note about what the inputs do not hold.
const MAX_NAMES_IN_NOTE: usize = 3;

/// The warnings about what was not judged, or was judged on an assumption.
const NOT_JUDGED: [&Code; 5] = [
    &common::KIND_MISSPELT,
    &common::NOT_AN_OBJECT,
    &common::STATE_UNREADABLE,
    &common::STATE_UNUSED,
    &common::VERSION_UNKNOWN,
];

/// The most lines about what was passed over.
const MAX_PASSED_OVER_IN_NOTES: usize = 20;

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
  memgate check --render charts/ overlays/ --values values-prod.yaml
  memgate check agents/ --with cluster-state.yaml --fail-on warn
  memgate check . -o text -o json=findings.json
  memgate check deploy/ -o html=report.html
  memgate check deploy/ -o github -o sarif=memgate.sarif -o junit=memgate.xml
  memgate check . --base origin/main
  memgate check deploy/ --fix --diff"
)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Format and file; repeatable [default: text]
    ///
    /// Formats: text, concise (a line for each finding), json, jsonl (an object on each line), github, gitlab, sarif,
    /// junit and html (a page for a browser). Without a file the format is written to standard output, which then holds
    /// nothing else.
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]", help_heading = "Output")]
    output: Vec<OutputArg>,

    #[command(flatten)]
    findings: FindingArgs,

    #[command(flatten)]
    fail_on: FailOnArgs,

    #[command(flatten)]
    pull_request: PullRequestArgs,

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
    /// misspelt kind, a version that is not served, a chart that was not rendered, a platform that is switched off, a file
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

/// What makes the exit code 1 besides denials.
#[derive(Debug, Clone, Copy)]
pub struct FailOn {
    /// Warnings do.
    pub warnings: bool,
    /// So does what was passed over or assumed.
    pub strict: bool,
    /// Inputs without an object to check do not.
    pub allows_empty: bool,
}

impl FailOnArgs {
    /// The streams, without notes if the user wants none.
    pub fn terminal(self, terminal: Terminal) -> Terminal {
        if self.quiet { terminal.without_notes() } else { terminal }
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
    let project = args.input.project(terminal)?;
    let fail_on = args.fail_on.or(&project);
    let mut plan = args.input.plan(&project, terminal)?;
    plan.wants_page = page::is_wanted(&args.output);
    let occasion = args.input.policies.occasion(Point::Ci);
    if args.fix.fix {
        return run_fix(args, plan, occasion, fail_on, terminal);
    }
    let mut checked = check_all(&plan, occasion)?;
    args.pull_request.apply(&mut checked, &args.input, &project, &plan, terminal)?;
    let report = Report { shown: args.findings.shown(&args.output)?, ..report(&checked) };
    let report = with_page(report, "check", &checked, &plan, occasion, fail_on);
    write_outputs(&report, &args.output, fail_on.warnings, terminal)?;
    write_notes(&checked, &report, fail_on, terminal);
    let status = exit_status(&report, fail_on);
    // The process ends now. To free the objects one by one would take a twentieth of the time.
    drop(report);
    std::mem::forget(checked);
    Ok(status)
}

/// Corrects what has one right answer and reports the rest. With `--diff`, shows the corrections and reports all.
fn run_fix(
    args: &Args,
    mut plan: InputPlan,
    occasion: Occasion<'static>,
    fail_on: FailOn,
    terminal: Terminal,
) -> anyhow::Result<ExitStatus> {
    let before = fix::look(&mut plan, occasion, &fix::FixedTexts::default())?;
    let (mut fixed, mut after) = fix::mend(&mut plan, occasion, &before)?;
    let mut is_written = true;
    if args.fix.diff {
        after = None;
    } else if !fix::write(&mut fixed, terminal) {
        is_written = false;
        after = Some(fix::look(&mut plan, occasion, &fixed)?);
    }
    let checked = after.as_ref().unwrap_or(&before);
    let report = Report { shown: args.findings.shown(&args.output)?, ..report(checked) };
    let report = with_page(report, "check", checked, &plan, occasion, fail_on);
    if args.fix.diff {
        terminal.out(&fix::diffs(&fixed)?)?;
        write_to_stderr(&report, terminal)?;
    } else {
        write_outputs(&report, &args.output, fail_on.warnings, terminal)?;
    }
    let done = if args.fix.diff { "would fix" } else { "fixed" };
    terminal.note(&fix::summary(done, &fixed, if is_written { "nothing to fix" } else { "fixed nothing" }));
    write_notes(checked, &report, fail_on, terminal);
    Ok(if is_written { exit_status(&report, fail_on) } else { ExitStatus::Failed })
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
    if report.objects.is_empty() && report.errors.is_empty() {
        let nothing = nothing_found(checked);
        if fail_on.allows_empty {
            terminal.note(&format!("note: {nothing}"));
        } else {
            terminal.err(format!("error: {nothing}\n").as_bytes());
        }
    } else {
        terminal.note(&report.summary());
    }
}

/// The notes of a run.
fn notes(checked: &Checked, report: &Report<'_>, fail_on: FailOn) -> Vec<String> {
    let mut notes = unread_notes(&checked.inputs.unread, "manifest");
    for codes in checked.rules.unused().filter(|_| !checked.inputs.unread.is_narrow) {
        notes.push(format!("the rule for {} in {FILE_NAME} fits no finding", plain(codes)));
    }
    notes.extend(report.not_shown_lines());
    notes.extend(unknown_note(report));
    if fail_on.strict {
        notes.extend(missed_notes(&report.passed_over));
    }
    if report.assumed > 0 {
        let count = counted(report.assumed, "finding");
        notes.push(format!(
            "{count} assumed: labels of Namespaces are not known (give their manifests, --namespace-labels, or \
             namespaces in {FILE_NAME})"
        ));
    }
    notes
}

/// The same report with the data of a page, if the inputs were read for one. A report without a table of its own gets one
/// in the page.
pub fn with_page<'r>(
    report: Report<'r>,
    command: &'static str,
    checked: &'r Checked,
    plan: &InputPlan,
    occasion: Occasion<'static>,
    fail_on: FailOn,
) -> Report<'r> {
    // The page lists the unknown objects apart.
    let unknown = unknown_note(&report);
    let is_other = |note: &String| Some(note) != unknown.as_ref();
    let notes = || notes(checked, &report, fail_on).into_iter().filter(is_other).collect();
    let page = page(command, plan, checked.page.as_ref(), occasion, notes);
    let page = page.map(|page| Page { table: report.table.is_none().then(|| table(checked)), ..page });
    Report { page, ..report }
}

/// The exit status that follows from a report.
pub fn exit_status(report: &Report<'_>, fail_on: FailOn) -> ExitStatus {
    let warned = fail_on.warnings && report.count(Severity::Warn) > 0;
    let missed =
        missed(&report.passed_over).next().is_some() || NOT_JUDGED.iter().any(|code| report.has(code));
    let blind = fail_on.strict && (missed || report.assumed > 0);
    let denied = report.denied > 0 || report.count(Severity::Deny) > 0 || warned || blind;
    ExitStatus::of(!report.errors.is_empty(), denied, report.objects.is_empty() && !fail_on.allows_empty)
}

/// What looked as if it was to be checked: all but what memgate never judges, and documents that are not objects. Those
/// that are likely objects have a warning of their own.
fn missed<'r>(passed_over: &'r [PassedOver<'_>]) -> impl Iterator<Item = &'r PassedOver<'r>> {
    const ON_PURPOSE: [Why; 7] = [
        Why::OtherKind,
        Why::NotAnnotated,
        Why::AdmissionOnly,
        Why::NotRecognised,
        Why::OptedOut,
        Why::SystemNamespace,
        Why::NotAnObject(""),
    ];
    passed_over.iter().filter(|it| ON_PURPOSE.iter().all(|why| it.why != why.words().0))
}

/// Where each object stands that looked as if it was to be checked, and why it was not; the first ones of a long list.
fn missed_notes(passed_over: &[PassedOver<'_>]) -> Vec<String> {
    let note = |PassedOver { file, line, object_ref, reason: words, .. }: &PassedOver<'_>| {
        let title = object_ref.map_or_else(|| "a document".to_owned(), ObjectRef::title);
        format!("{}:{line}: not checked: {} {words}", plain(file), plain(&title))
    };
    let mut notes: Vec<String> = missed(passed_over).take(MAX_PASSED_OVER_IN_NOTES).map(note).collect();
    let more = missed(passed_over).count().saturating_sub(MAX_PASSED_OVER_IN_NOTES);
    if more > 0 {
        notes.push(format!("{more} more not checked"));
    }
    notes
}

/// The missing objects in one line; the first few of a long list.
fn unknown_note(report: &Report<'_>) -> Option<String> {
    let names: Vec<String> = report.unknown_objects().cloned().collect();
    let shown = and_more(&names, MAX_NAMES_IN_NOTE);
    let shown = plain(&shown);
    let note =
        format!("not among the inputs, so whether it is there is not known: {shown} (add it with --with)");
    (!names.is_empty()).then_some(note)
}

/// The words about inputs without an object to check: what was read, and which kinds are checked.
fn nothing_found(checked: &Checked) -> String {
    let seen = counts(&checked.inputs.passed_over);
    let seen = match (checked.inputs.sources.len(), seen.as_slice()) {
        (0, _) => "no file at all".to_owned(),
        (1, []) => "1 file, which holds no object".to_owned(),
        (files, []) => format!("{files} files, which hold no object"),
        (files, seen) => format!("{} with {}", counted(files, "file"), seen.join(", ")),
    };
    format!("nothing to check was found\n  looked at: {seen}\n  what counts: {}", checked_kinds())
}
