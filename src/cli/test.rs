//! `memgate test`: case files against what memgate decides.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::Value;

use crate::admission;
use crate::casefile::compare::{CaseOutcome, failures};
use crate::casefile::read::read;
use crate::casefile::{Case, request};
use crate::cli::ExitStatus;
use crate::cli::findings::{fault, place};
use crate::cli::terminal::Terminal;
use crate::manifest::document::{Document, values};
use crate::manifest::source::Source;
use crate::model::pointer::Pointer;
use crate::offline::collect::collect;
use crate::report::{Fault, Shown, plain};

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

#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
    filtered: usize,
    faulty: bool,
    text: String,
}

/// Runs the command.
///
/// # Errors
/// When the text cannot be written, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let collected = collect(&args.files, &mut io::stdin().lock());
    let mut tally = Tally { faulty: !collected.errors.is_empty(), ..Tally::default() };
    for error in &collected.errors {
        terminal.fault(&fault(error));
    }
    for empty in &collected.empty {
        terminal.note(&format!("note: no case file (*.yaml, *.yml, *.json) in {empty}"));
    }
    for source in collected.sources {
        run_file(&Arc::new(source), args, &mut tally, terminal)?;
    }
    terminal.out(tally.text.as_bytes())?;
    summarize(&tally, args, terminal);
    Ok(if tally.faulty {
        ExitStatus::Failed
    } else if tally.failed > 0 {
        ExitStatus::Denied
    } else if tally.passed == 0 {
        ExitStatus::Nothing
    } else {
        ExitStatus::Clean
    })
}

fn summarize(tally: &Tally, args: &Args, terminal: Terminal) {
    if tally.passed + tally.failed == 0 && !tally.faulty {
        let hint = match &args.filter {
            Some(filter) if tally.filtered > 0 => {
                format!("\n  none of {} has \"{}\" in its name", tally.filtered, plain(filter))
            }
            _ => "\n  a case file holds a list of cases; see memgate test --help".to_owned(),
        };
        terminal.note(&format!("error: no case was found{hint}"));
    } else {
        terminal.note(&format!("{} passed, {} failed", tally.passed, tally.failed));
    }
}

fn run_file(source: &Arc<Source>, args: &Args, tally: &mut Tally, terminal: Terminal) -> anyhow::Result<()> {
    let mut errors = Vec::new();
    let documents = values(source, &mut errors);
    for error in &errors {
        tally.faulty = true;
        terminal.fault(&fault(error));
    }
    for document in &documents {
        match read(document.value()) {
            Ok(cases) => cases.iter().try_for_each(|case| run_case(case, document, args, tally))?,
            Err(faults) => {
                tally.faulty = true;
                for fault in &faults {
                    terminal.fault(&located(document, &fault.pointer, &fault.message));
                }
            }
        }
    }
    Ok(())
}

fn run_case(case: &Case, document: &Document, args: &Args, tally: &mut Tally) -> anyhow::Result<()> {
    if args.filter.as_ref().is_some_and(|filter| !case.name.contains(filter)) {
        tally.filtered += 1;
        return Ok(());
    }
    let outcome = answer(case).with_context(|| format!("failed to run the case {}", case.name))?;
    let failures = failures(&case.expect, &outcome);
    let place = format!("{}:{}", document.source().name(), document.locate(&case.pointer).caret.line);
    if failures.is_empty() {
        tally.passed += 1;
        if args.verbose {
            let _ = writeln!(tally.text, "ok    {} ({})", plain(&case.name), plain(&place));
        }
    } else {
        tally.failed += 1;
        let _ = writeln!(tally.text, "FAIL  {} ({})", plain(&case.name), plain(&place));
        for failure in failures {
            let _ = writeln!(tally.text, "      {}", plain(&failure));
        }
    }
    Ok(())
}

/// What memgate decides, through the same bytes that an apiserver would send and get.
fn answer(case: &Case) -> anyhow::Result<CaseOutcome> {
    let snapshot = request::state(case)?;
    let body = serde_json::to_string(&request::review(case))?;
    let review = admission::parse(&body)?;
    let answer: Value = serde_json::from_slice(&admission::review(&review, &snapshot)?)?;
    CaseOutcome::from_review(&answer, case.object.as_ref()).map_err(anyhow::Error::msg)
}

fn located<'d>(document: &'d Document, pointer: &Pointer, message: &str) -> Fault<'d> {
    let place = place(document.source(), document.locate(pointer).caret);
    let line = format!("{}:{}:{}: {message}", place.file, place.line, place.column);
    Fault { line, shown: Some(Shown { message: message.to_owned(), help: None, place, other: None }) }
}
