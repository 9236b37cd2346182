//! `memgate test`: case files against what memgate decides.

use std::io;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::file::write_whole;
use crate::cli::input::note_unread;
use crate::cli::output::{CaseOutputArg, check_places};
use crate::cli::terminal::Terminal;
use crate::offline::cases::{CaseOptions, CaseResult, CaseRun, RuleCoverage, Survivor, run as run_cases};
use crate::offline::errors::input_error;
use crate::report::cases::{self, CaseEntry, CaseFormat, CaseReport, RuleEntry, SurvivorEntry};
use crate::report::{counted, plain};

/// Run case files: what memgate must decide about an object in a given state
///
/// Each case holds the state of a cluster, a request and what has to come out of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate test cases/
  memgate test cases/arkonis.yaml --filter redis -v
  memgate test cases/ -o text -o junit=cases.xml
  memgate test cases/ --policy policies/ --mutants

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
      message_contains: [spec.redis is required]

Exit codes: 0 all passed, 1 a case failed, or no case notices a change of --mutants, 2 a file cannot be read or is no case file,
3 no case was found.")]
pub struct Args {
    /// Case files, directories, globs, or - for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,

    /// Run only cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Policies and exemptions that are in the state of every case; can be repeated
    ///
    /// A policy in the state of a case takes the place of the one of its name.
    #[arg(long, value_name = "PATH", help_heading = "Policies")]
    policy: Vec<String>,

    /// Change each rule of the policies, one at a time, and print the changes that no case notices
    ///
    /// A rule is dropped, so that it never fires, and inverted, so that it fires where it did not.
    #[arg(long, help_heading = "Policies")]
    mutants: bool,

    /// Print a line for each case, not only for those that fail; and how often each rule of policies fired
    #[arg(short, long)]
    verbose: bool,

    /// How to write what came of the cases, and to which file; can be repeated [default: text]
    ///
    /// Formats: text, json, junit and github. Without a file it is standard output, which then holds nothing else.
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]", help_heading = "Output")]
    output: Vec<CaseOutputArg>,
}

/// Runs the command.
///
/// # Errors
/// When the text cannot be written, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let options =
        CaseOptions { filter: args.filter.as_deref(), policies: &args.policy, mutants: args.mutants };
    anyhow::ensure!(
        args.policy.iter().all(|path| path != "-"),
        "policies are read from files, and standard input (-) is none"
    );
    let run = run_cases(&args.files, options, &mut io::stdin().lock())?;
    let report = report(&run);
    for error in &report.errors {
        terminal.input_error(error);
    }
    note_unread(&run.unread, "case file", terminal);
    for line in &run.blind {
        terminal.note(&format!("warn: {}", plain(line)));
    }
    write_outputs(&report, args, terminal)?;
    terminal.note(&summary(&run, args.filter.as_deref()));
    if let Some(note) = coverage_note(&run) {
        terminal.note(&note);
    }
    Ok(if !run.errors.is_empty() {
        ExitStatus::Failed
    } else if run.failed() > 0 || run.survivors.as_ref().is_some_and(|survivors| !survivors.is_empty()) {
        ExitStatus::Denied
    } else if run.results.is_empty() {
        ExitStatus::Nothing
    } else {
        ExitStatus::Clean
    })
}

fn report(run: &CaseRun) -> CaseReport<'_> {
    CaseReport {
        cases: run.results.iter().map(entry).collect(),
        errors: run.errors.iter().map(input_error).collect(),
        blind: &run.blind,
        rules: run.coverage.iter().map(rule).collect(),
        survivors: run.survivors.as_ref().map(|survivors| survivors.iter().map(survivor).collect()),
    }
}

fn rule(coverage: &RuleCoverage) -> RuleEntry<'_> {
    let RuleCoverage { policy, rule, judged, fired } = coverage;
    RuleEntry { policy, rule, judged: *judged, fired: *fired }
}

fn survivor(survivor: &Survivor) -> SurvivorEntry<'_> {
    let Survivor { policy, rule, mutation } = survivor;
    SurvivorEntry { policy, rule, mutation: mutation.name() }
}

/// How many rules no case tries, or only one way.
fn coverage_note(run: &CaseRun) -> Option<String> {
    let count = |is: fn(&RuleCoverage) -> bool| run.coverage.iter().filter(|rule| is(rule)).count();
    let never = count(|rule| rule.fired == 0);
    let always = count(|rule| rule.fired > 0 && rule.fired == rule.judged);
    let rules = counted(run.coverage.len(), "rule");
    let survivors = run
        .survivors
        .as_ref()
        .map(|survivors| format!("; {} that no case notices", counted(survivors.len(), "change")));
    let hint = if never + always > 0 { " (-v lists them)" } else { "" };
    (!run.coverage.is_empty()).then(|| {
        let survivors = survivors.unwrap_or_default();
        format!("{rules} of policies: {never} never fired, {always} always did{hint}{survivors}")
    })
}

fn entry(result: &CaseResult) -> CaseEntry<'_> {
    let CaseResult { name, file, line, failures } = result;
    CaseEntry { name, file, line: *line, passed: failures.is_empty(), failures }
}

fn write_outputs(report: &CaseReport<'_>, args: &Args, terminal: Terminal) -> anyhow::Result<()> {
    check_places(args.output.iter().map(|output| output.file.as_deref()))?;
    let text = [CaseOutputArg { format: CaseFormat::Text, file: None }];
    let outputs = if args.output.is_empty() { text.as_slice() } else { args.output.as_slice() };
    for CaseOutputArg { format, file } in outputs {
        let mut bytes = Vec::new();
        cases::write(report, *format, args.verbose, &mut bytes).context("failed to write the result")?;
        match file {
            None => terminal.raw(&bytes)?,
            Some(path) => write_whole(path, &bytes)?,
        }
    }
    Ok(())
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
