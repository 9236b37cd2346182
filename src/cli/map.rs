//! `memgate map`: which agents and pods reach which memory.

use anyhow::Context as _;

use crate::cli::cluster::ClusterArgs;
use crate::cli::input::{InputArgs, note_read};
use crate::cli::terminal::Terminal;
use crate::cli::{ExitStatus, live};
use memgate_model::request::Point;
use memgate_workbench::files::map_verdicts::judged_map;
use memgate_workbench::files::run::Run;
use memgate_workbench::report::map::write;

/// Print which agents and pods reach which memory
///
/// For each memory resource: backend, durability, retention, hosts and names of Secrets, and the objects that refer to
/// it or get it. Objects are judged as check does, those of a cluster as audit does: denied, warned, not used, not
/// found; what uses denied memory would run without memory. A line across namespaces is marked, and so is a host without TLS. A workload stands for its pods. The
/// order is stable, so a diff of two maps shows what has changed.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "\
Exit codes: 0 printed, 2 an input cannot be read or parsed, 3 nothing to map
was found.",
    after_long_help = "\
Examples:
  memgate map deploy/
  memgate map --context prod

Without PATH the objects are those of the cluster of --context or --kubeconfig. With none of them, they are \
those of the paths of .memgate.yaml, else of the cluster of KUBECONFIG, else of the working directory."
)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs the command.
///
/// # Errors
/// When the cluster does not answer, or the map cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let input = &args.input;
    let project = input.project(terminal)?;
    let mut plan = live::plan(input, &args.cluster, &project, true, terminal)?;
    plan.policies.clone_from(&input.policies.policy);
    let occasion = input.policies.occasion(if plan.cluster.is_some() { Point::Audit } else { Point::Ci });
    let run = Run { plan, occasion };
    let (map, inputs) = judged_map(&run)?;
    note_read(&inputs, terminal);
    let errors = inputs.errors;
    let has_memory = map.memories().next().is_some();
    if has_memory {
        let mut bytes = Vec::new();
        write(&map, &mut bytes).context("failed to write the map")?;
        terminal.out(&bytes)?;
    } else if errors.is_empty() {
        terminal.note("error: nothing to map was found: no memory resource, and nothing that refers to one");
    }
    Ok(ExitStatus::of(!errors.is_empty(), false, !has_memory))
}
