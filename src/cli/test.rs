//! `memgate test`: runs case files.

use std::io;
use std::sync::Arc;

use crate::cli::ExitStatus;
use crate::cli::input::{note_unread, whole_repository};
use crate::cli::output::{OutputArg, write_each};
use crate::cli::project::{Project, ProjectArgs};
use crate::cli::terminal::Terminal;
use memgate_workbench::cases::{CasePlan, CaseRun, run as run_cases};
use memgate_workbench::errors::input_error;
use memgate_workbench::report::cases::{self, CaseReport, RuleCoverage};
use memgate_workbench::report::{counted, plain};

/// Run case files: the decisions that memgate must make
///
/// Each case holds the state of a cluster, a request and the expected decision.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 all passed, 1 a case failed, 2 a file cannot be read or is not a
case file, 3 no case was found.",
    after_long_help = "\
Examples:
  memgate test cases/
  memgate test cases/arkonis.yaml --filter redis -v
  memgate test cases/ -o text -o junit=cases.xml
  memgate test cases/ --policy policies/

A case:
  - name: rejects-redis-without-section
    state: []                     # objects in the cluster
    object:                       # oldObject too for UPDATE, only that for DELETE
      apiVersion: arkonis.dev/v1alpha1
      kind: ArkMemory
      metadata: {name: notes, namespace: team-a}
      spec: {backend: redis}
    expect:                       # also: warnings_contain, unchanged, after, absent,
      allowed: false              # env, env_absent, containers_present
      codes: [arkonis/redis-required]
      message_contains: [spec.redis is required]"
)]
pub struct Args {
    /// Case files, directories, globs, or - for standard input [default: those of the repository]
    ///
    /// Without FILE, the case files below the paths of .memgate.yaml run, else those below the working directory.
    #[arg(value_name = "FILE")]
    files: Vec<String>,

    #[command(flatten)]
    project: ProjectArgs,

    /// Run only cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Policies and exemptions in the state of every case; repeatable
    ///
    /// A policy in the state of a case replaces the one of the same name.
    #[arg(long, value_name = "PATH", help_heading = "Policies")]
    policy: Vec<String>,

    /// Print a line for each case, and how often each rule of policies fired
    #[arg(short, long)]
    verbose: bool,

    /// Format and file; repeatable [default: text]
    ///
    /// Formats: text, json, junit and github. Without a file the format is written to standard output, which then
    /// holds nothing else.
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]", help_heading = "Output", value_parser = parse_output)]
    output: Vec<OutputArg>,
}

fn parse_output(text: &str) -> Result<OutputArg, String> {
    OutputArg::parse(text, &cases::FORMATS)
}

/// Runs the command.
///
/// # Errors
/// When the text cannot be written, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    anyhow::ensure!(
        args.policy.iter().all(|path| path != "-"),
        "policies are read from files, and standard input (-) is not a file"
    );
    let project = if args.files.is_empty() { args.project.read(&[], terminal)? } else { Project::default() };
    let paths = if !args.files.is_empty() {
        args.files.clone()
    } else if project.paths.is_empty() {
        vec![whole_repository(None, terminal)]
    } else {
        project.paths.clone()
    };
    let plan = CasePlan {
        paths: &paths,
        are_searched: args.files.is_empty(),
        within: project.within(&project.paths, &project.directory),
        exclude: Arc::new(project.exclude(&project.directory)?),
        filter: args.filter.as_deref(),
        policies: &args.policy,
    };
    let mut run = run_cases(&plan, &mut io::stdin().lock())?;
    run.unread.switched_off.extend(project.left_out_by(&project.paths));
    run.unread.switched_off.extend(plan.exclude.left_out_by_file());
    let report = report(&run);
    for error in &report.errors {
        terminal.input_error(error);
    }
    note_unread(&run.unread, "case file", terminal);
    for line in &run.blind {
        terminal.note(&format!("warn: {}", plain(line)));
    }
    write_each(&args.output, terminal, |format, _| {
        let mut bytes = Vec::new();
        cases::write(&report, format, args.verbose, &mut bytes)?;
        Ok(bytes)
    })?;
    terminal.note(&summary(&run, args.filter.as_deref()));
    if let Some(note) = coverage_note(&run) {
        terminal.note(&note);
    }
    Ok(ExitStatus::of(!run.errors.is_empty(), run.failed() > 0, run.results.is_empty()))
}

fn report(run: &CaseRun) -> CaseReport<'_> {
    CaseReport {
        cases: &run.results,
        errors: run.errors.iter().map(input_error).collect(),
        blind: &run.blind,
        rules: &run.coverage,
    }
}

/// The number of rules that fired in no case, or in each.
fn coverage_note(run: &CaseRun) -> Option<String> {
    let count = |is: fn(&RuleCoverage) -> bool| run.coverage.iter().filter(|rule| is(rule)).count();
    let never = count(|rule| rule.fired == 0);
    let always = count(|rule| rule.fired > 0 && rule.fired == rule.judged);
    let rules = counted(run.coverage.len(), "rule");
    let hint = if never + always > 0 { " (-v lists them)" } else { "" };
    let is_empty = run.coverage.is_empty();
    (!is_empty).then(|| format!("{rules} of policies: {never} never fired, {always} always did{hint}"))
}

fn summary(run: &CaseRun, filter: Option<&str>) -> String {
    if !run.results.is_empty() || !run.errors.is_empty() {
        return format!("{} passed, {} failed", run.results.len() - run.failed(), run.failed());
    }
    let hint = match filter {
        Some(filter) if run.filtered > 0 => {
            format!("none of {} has \"{}\" in its name", run.filtered, plain(filter))
        }
        _ => "a case file holds a list of cases; see memgate test --help".to_owned(),
    };
    format!("error: no case was found\n  {hint}")
}
