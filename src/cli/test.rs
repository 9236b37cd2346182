//! `memgate test`: case files against what memgate decides.

use std::fmt::Write as _;
use std::io;

use crate::cli::ExitStatus;
use crate::cli::input::note_unread;
use crate::cli::terminal::Terminal;
use crate::offline::cases::{CaseResult, CaseRun, run as run_cases};
use crate::offline::errors::input_error;
use crate::report::plain;

/// Run case files: what memgate must decide about an object in a given state
///
/// Each case holds the state of a cluster, a request and what has to come out of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate test cases/
  memgate test cases/arkonis.yaml --filter redis -v

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
}

/// Runs the command.
///
/// # Errors
/// When the text cannot be written, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let run = run_cases(&args.files, args.filter.as_deref(), &mut io::stdin().lock());
    for error in &run.errors {
        terminal.input_error(&input_error(error));
    }
    note_unread(&run.unread, "case file", terminal);
    for line in &run.blind {
        terminal.note(&format!("warn: {}", plain(line)));
    }
    terminal.out(text(&run.results, args.verbose).as_bytes())?;
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

/// A line for each case, with what failed below it; those that passed only when `verbose`.
fn text(results: &[CaseResult], verbose: bool) -> String {
    let mut text = String::new();
    for CaseResult { name, file, line, failures } in results {
        let (name, file) = (plain(name), plain(file));
        if !failures.is_empty() {
            let _infallible = writeln!(text, "FAIL  {name} ({file}:{line})");
        } else if verbose {
            let _infallible = writeln!(text, "ok    {name} ({file}:{line})");
        }
        for failure in failures {
            let _infallible = writeln!(text, "      {}", plain(failure));
        }
    }
    text
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
