//! `memgate review`: one AdmissionReview in, its response out.

use std::io::{self, Read as _};

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::input::{StateArgs, state_from_files};
use crate::cli::policies::OccasionArgs;
use crate::cli::terminal::Terminal;
use crate::model::finding::Phase;
use crate::model::request::Point;
use crate::offline::review::answer;

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

    #[command(flatten)]
    occasion: OccasionArgs,

    /// Answer only one of the two calls, with the bytes that the server would send
    #[arg(long, value_name = "PHASE", value_enum)]
    phase: Option<PhaseArg>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PhaseArg {
    /// The mutating call
    Mutate,
    /// The validating call
    Validate,
}

impl PhaseArg {
    const fn phase(self) -> Phase {
        match self {
            Self::Mutate => Phase::Mutate,
            Self::Validate => Phase::Validate,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// When the input is not a review, or memgate is at fault.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    anyhow::ensure!(
        args.state.with.iter().all(|path| path != "-"),
        "--with - is not possible: standard input holds the review; write the state to a file"
    );
    let Some(snapshot) = state_from_files(
        &args.state.with,
        args.state.snapshot.as_deref(),
        &args.state.policies,
        args.state.settings()?,
        terminal,
    )?
    else {
        return Ok(ExitStatus::Failed);
    };
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).context("failed to read standard input")?;
    let body = std::str::from_utf8(&bytes).context("standard input is no UTF-8 text")?;
    let answer =
        answer(body, args.phase.map(PhaseArg::phase), &snapshot, args.occasion.occasion(Point::Admission))?;
    terminal.raw(&answer.bytes)?;
    if terminal.is_interactive() {
        terminal.raw(b"\n")?;
    }
    Ok(if answer.allowed { ExitStatus::Clean } else { ExitStatus::Denied })
}
