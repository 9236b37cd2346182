//! `memgate audit`: what policies say of objects that are stored.

use std::sync::Arc;

use crate::cli::ExitStatus;
use crate::cli::check::{FailOnArgs, exit_status, write_notes};
use crate::cli::cluster::ClusterArgs;
use crate::cli::input::InputArgs;
use crate::cli::live;
use crate::cli::output::{OutputArg, write_outputs};
use crate::cli::terminal::Terminal;
use crate::model::policy::Policies;
use crate::model::request::Point;
use crate::offline::check::check;
use crate::offline::errors::input_error;
use crate::offline::findings::report;
use crate::offline::transient::pass_over;
use crate::offline::what_if::policy_sets;

/// Audit stored objects: what policies say of them, and what admission would make of it
///
/// Judges memory resources and agents as they are, by the actions that policies have for audits, and says beside
/// each finding whether admission would deny or warn today, and from when on it will deny. Pods, and objects that run
/// once and end, are judged when they are made, and no audit does. Nothing is changed anywhere.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate audit --context prod
  memgate audit --snapshot prod.json --policy policies/ -o json
  memgate audit deploy/ --policy policies/ --fail-on warn

Without PATH it is about the objects of --snapshot, or of the cluster of --context or --kubeconfig.

Exit codes: 0 nothing is denied, 1 something is, 2 an input cannot be read or parsed, 3 nothing to judge was
found. Audits report by default, which denies nothing.")]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// How to write findings, and to which file; can be repeated [default: text]
    ///
    /// Formats: text, concise, json, jsonl, github, gitlab, sarif and junit.
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]", help_heading = "Output")]
    output: Vec<OutputArg>,

    #[command(flatten)]
    fail_on: FailOnArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs the command.
///
/// # Errors
/// When the cluster does not answer, or the report cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let project = args.input.project(terminal)?;
    let fail_on = args.fail_on.or(&project);
    let given = args.input.read_policies(&project, args.input.policy_paths())?;
    for error in &given.errors {
        terminal.input_error(&input_error(error));
    }
    if !given.errors.is_empty() {
        return Ok(ExitStatus::Failed);
    }
    let cluster = live::state(&args.input, &args.cluster, &project, false, terminal)?;
    let mut inputs = args.input.read_subjects(&project, cluster)?;
    let none = Policies::default();
    let policies = policy_sets(&inputs.snapshot.policies, &none, &given.snapshot.policies).new;
    inputs.snapshot.policies = if args.input.leaves_policies_out() { Arc::default() } else { policies };
    inputs.places.extend(given.places);
    let families = inputs.snapshot.settings.families.clone();
    pass_over(&mut inputs.objects, &mut inputs.passed_over, &families, true);
    let checked = check(inputs, args.input.occasion_at(Point::Audit));
    let report = report(&checked);
    write_outputs(&report, &args.output, fail_on.on_warnings(), terminal)?;
    write_notes(&checked, &report, fail_on, terminal);
    Ok(exit_status(&report, fail_on))
}
