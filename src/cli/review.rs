//! `memgate review`: answers one AdmissionReview.

use std::io::{self, Read as _};

use anyhow::Context as _;
use serde_json::Value;

use crate::cli::ExitStatus;
use crate::cli::input::{StateArgs, load_whole};
use crate::cli::policies::PolicyArgs;
use crate::cli::settings::SettingsArgs;
use crate::cli::terminal::Terminal;
use memgate_core::admission;
use memgate_model::request::{Occasion, Point};
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::inputs::Inputs;

/// Answer one AdmissionReview from standard input, as the webhook would
///
/// The response goes to standard output. It joins the two calls that an apiserver makes: the
/// object is mutated, and the result is validated.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 allowed, 1 denied, 2 the review or the state cannot be read.",
    after_long_help = "\
Examples:
  memgate review --with state.yaml < review.json"
)]
pub struct Args {
    #[command(flatten)]
    state: StateArgs,

    #[command(flatten)]
    policies: PolicyArgs,

    #[command(flatten)]
    settings: SettingsArgs,
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
    let mut settings = args.settings.settings(None)?;
    args.policies.apply(&mut settings.policies);
    let plan = Plan {
        policies: args.policies.policy.clone(),
        ignores_policies: args.policies.no_policies,
        ..args.state.plan(settings)
    };
    let Some(Inputs { snapshot, .. }) = load_whole(&plan, terminal)? else {
        return Ok(ExitStatus::Failed);
    };
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).context("failed to read standard input")?;
    let body = std::str::from_utf8(&bytes).context("standard input is not UTF-8 text")?;
    let mut review = admission::parse(body.trim_start_matches('\u{feff}'))
        .context("standard input holds no good AdmissionReview")?;
    // The user is named in the review.
    let user = review.request.occasion.user;
    review.request.occasion = Occasion { user, ..args.policies.occasion(Point::Admission) };
    let answer = admission::review(&review, &snapshot).context("failed to answer the review")?;
    let allowed = serde_json::from_slice::<Value>(&answer).context("the answer is not JSON")?;
    let allowed = allowed.pointer("/response/allowed") == Some(&Value::Bool(true));
    terminal.raw(&answer)?;
    if terminal.is_interactive() {
        terminal.raw(b"\n")?;
    }
    Ok(if allowed { ExitStatus::Clean } else { ExitStatus::Denied })
}
