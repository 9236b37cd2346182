//! `memgate review`: one AdmissionReview in, its response out.

use std::io::Read as _;

use anyhow::Context as _;
use serde_json::Value;

use crate::admission;
use crate::cli::ExitStatus;
use crate::cli::findings::fault;
use crate::cli::input::{StateArgs, load_state};
use crate::cli::terminal::Terminal;
use crate::decide::decide;
use crate::model::finding::Phase;

/// Answer one AdmissionReview from standard input, as the webhook would
///
/// The response goes to standard output. It tells what both webhook calls together come to: the
/// object is mutated, and the result is validated.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate review --with state.yaml < review.json
  memgate review --phase mutate < review.json

Exit codes: 0 allowed, 1 denied, 2 the review or the state cannot be read.")]
pub struct Args {
    #[command(flatten)]
    state: StateArgs,

    /// Answer only one of the two calls, with the bytes that the server would send
    #[arg(long, value_name = "PHASE", value_enum)]
    phase: Option<Call>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Call {
    /// The mutating call
    Mutate,
    /// The validating call
    Validate,
}

/// Runs the command.
///
/// # Errors
/// When the review is none, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    anyhow::ensure!(
        args.state.with.iter().all(|path| path != "-"),
        "--with - is not possible: standard input holds the review; write the state to a file"
    );
    let input = load_state(&args.state.with, args.state.settings()?)?;
    for empty in &input.empty {
        terminal.note(&format!("note: no manifest (*.yaml, *.yml, *.json) in {empty}"));
    }
    if !input.errors.is_empty() {
        for error in &input.errors {
            terminal.fault(&fault(error));
        }
        return Ok(ExitStatus::Failed);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).context("failed to read standard input")?;
    let body = std::str::from_utf8(&bytes).context("standard input is no UTF-8 text")?;
    let review = admission::parse(body.trim_start_matches('\u{feff}'))
        .context("standard input holds no good AdmissionReview")?;
    let answer = match args.phase {
        None => admission::review(&review, &input.snapshot),
        Some(call) => {
            let phase = match call {
                Call::Mutate => Phase::Mutate,
                Call::Validate => Phase::Validate,
            };
            admission::respond(phase, &review, &decide(&review.request, &input.snapshot))
        }
    };
    let answer = answer.context("failed to answer the review")?;
    terminal.raw(&answer)?;
    if terminal.is_interactive() {
        terminal.raw(b"\n")?;
    }
    Ok(if is_allowed(&answer)? { ExitStatus::Clean } else { ExitStatus::Denied })
}

fn is_allowed(answer: &[u8]) -> anyhow::Result<bool> {
    let answer: Value = serde_json::from_slice(answer).context("the answer is no JSON")?;
    Ok(answer.pointer("/response/allowed") == Some(&Value::Bool(true)))
}
