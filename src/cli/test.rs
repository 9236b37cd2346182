//! `memgate test`: case files against what memgate decides.

use std::io;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::file::write_whole;
use crate::cli::input::note_unread;
use crate::cli::output::{CaseOutputArg, check_places};
use crate::cli::terminal::Terminal;
use crate::offline::cases::{CaseResult, CaseRun, run as run_cases};
use crate::offline::errors::input_error;
use crate::report::cases::{self, CaseEntry, CaseFormat, CaseReport};
use crate::report::plain;

/// Run case files: what memgate must decide about an object in a given state
///
/// Each case holds the state of a cluster, a request and what has to come out of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate test cases/
  memgate test cases/arkonis.yaml --filter redis -v
  memgate test cases/ -o text -o junit=cases.xml

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

Exit codes: 0 all passed, 1 a case failed, 2 a file cannot be read or is no case file,
3 no case was found.")]
pub struct Args {
    /// Case files, directories, globs, or - for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,

    /// Run only cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Print a line for each case, not only for those that fail
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
    let run = run_cases(&args.files, args.filter.as_deref(), &mut io::stdin().lock());
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
    Ok(if !run.errors.is_empty() {
        ExitStatus::Failed
    } else if run.failed() > 0 {
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
    }
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
