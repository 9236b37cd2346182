//! `memgate what-if`: whom other policies would hit.

use crate::cli::ExitStatus;
use crate::cli::cluster::ClusterArgs;
use crate::cli::input::{InputArgs, note_unread};
use crate::cli::live;
use crate::cli::output::{OutputArg, write_outputs};
use crate::cli::terminal::Terminal;
use crate::offline::errors::input_error;
use crate::offline::load::Inputs;
use crate::offline::what_if::{PolicySets, policy_sets, what_if};
use crate::report::changes;

/// Tell which objects other policies would deny, warn about, or let pass
///
/// Decides about every object with the policies of today and with those of --policy, and prints the objects whose
/// verdict changes, by namespace and owner. The policies of today are those among the files, in --with, in the
/// snapshot or in the cluster; one of --policy takes the place of the one of its name. Nothing is changed anywhere.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memgate what-if --policy new.yaml deploy/
  memgate what-if --policy new.yaml --snapshot prod.json
  memgate what-if --policy new.yaml --context prod --point admission --at 2027-02-01T00:00:00Z
  memgate what-if --base old.yaml --policy new.yaml deploy/ -o json

Without PATH it is about the objects of --snapshot, or of the cluster of --context or --kubeconfig: memory resources and
agents, and for policies with rules on pods the agent pods.

Exit codes: 0 nothing would newly be denied, 1 something would, 2 an input cannot be read or parsed,
3 nothing to judge was found.")]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// The policies of today, instead of those of the same name elsewhere; can be repeated
    ///
    /// One that --policy does not have is gone with the new policies.
    #[arg(long, value_name = "PATH", help_heading = "Policies")]
    base: Vec<String>,

    /// How to write what changes, and to which file; can be repeated [default: text]
    ///
    /// Formats: text, concise, json, jsonl, github, gitlab, sarif and junit.
    #[arg(short, long = "output", value_name = "FORMAT[=FILE]", help_heading = "Output")]
    output: Vec<OutputArg>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs the command.
///
/// # Errors
/// When there are no policies, the cluster does not answer, or the report cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let new_paths = args.input.policy_paths();
    anyhow::ensure!(!new_paths.is_empty(), "no policy was given to try; name it with --policy FILE");
    anyhow::ensure!(
        !args.input.leaves_policies_out(),
        "--no-policies would leave nothing to try; leave it out"
    );
    anyhow::ensure!(
        new_paths.iter().chain(&args.base).all(|path| path != "-"),
        "policies are read from files, and standard input (-) is none"
    );
    let project = args.input.project(terminal)?;
    let new = args.input.read_policies(&project, new_paths)?;
    let base = args.input.read_policies(&project, &args.base)?;
    if has_errors(&[&new, &base], terminal) {
        return Ok(ExitStatus::Failed);
    }
    let judges_pods =
        [&new, &base].iter().any(|inputs| inputs.snapshot.policies.iter().any(|it| it.judges_pods()));
    let cluster = live::state(&args.input, &args.cluster, &project, judges_pods, terminal)?;
    let mut inputs = args.input.read_subjects(&project, cluster)?;
    if let Some(why) = inputs.unread.assumed.as_ref().and_then(|it| it.policies_unknown()) {
        anyhow::ensure!(
            !args.base.is_empty(),
            "the policies of today are not known: {why}; give them by --base"
        );
    }
    let policies = &inputs.snapshot.policies;
    let sets: PolicySets = policy_sets(policies, &base.snapshot.policies, &new.snapshot.policies);
    inputs.places.extend(base.places);
    inputs.places.extend(new.places);
    let result = what_if(inputs, sets, args.input.occasion());
    let report = result.report();
    write_outputs(&report, &args.output, false, terminal)?;
    for error in &report.errors {
        terminal.input_error(error);
    }
    note_unread(&result.checked().unread, "manifest", terminal);
    if report.objects.is_empty() && report.errors.is_empty() {
        terminal.note("error: nothing to judge was found");
        return Ok(ExitStatus::Nothing);
    }
    let changes = report.changes.as_deref().unwrap_or_default();
    terminal.note(&changes::summary(&report, changes));
    Ok(if !report.errors.is_empty() {
        ExitStatus::Failed
    } else if result.newly_denied() > 0 {
        ExitStatus::Denied
    } else {
        ExitStatus::Clean
    })
}

/// Writes what is wrong with the policies; whether anything is.
fn has_errors(all: &[&Inputs], terminal: Terminal) -> bool {
    let errors = all.iter().flat_map(|inputs| &inputs.errors);
    errors.fold(false, |_, error| {
        terminal.input_error(&input_error(error));
        true
    })
}
