//! `memgate map`: which agents and pods reach which memory.

use std::collections::BTreeSet;

use anyhow::Context as _;

use crate::cli::cluster::ClusterArgs;
use crate::cli::input::{InputArgs, note_read};
use crate::cli::terminal::Terminal;
use crate::cli::{ExitStatus, live};
use memgate_model::request::Point;
use memgate_primitives::number::more;
use memgate_primitives::plain_text::{quoted, shown_name};
use memgate_primitives::suggest::nearest;
use memgate_workbench::map_verdicts::judged_map;
use memgate_workbench::report::map::{MemoryMap, write};
use memgate_workbench::run::Run;

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
was found, or nothing in a namespace of --namespace.",
    after_long_help = "\
Examples:
  memgate map deploy/
  memgate map --context prod
  memgate map deploy/ --namespace team-a

Without PATH the objects are those of the cluster of --context or --kubeconfig. With none of them, they are \
those of the paths of .memgate.yaml, else of the cluster of KUBECONFIG, else of the working directory."
)]
pub struct Args {
    #[command(flatten)]
    input: MapInput,

    /// Show this namespace, and what its lines reach; repeatable
    #[arg(
        id = "shown_namespace",
        short = 'n',
        long = "namespace",
        value_name = "NAME",
        help_heading = "Selection"
    )]
    namespaces: Vec<String>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// The flags that say what is read, without those that do not concern a map. `--namespace` has another meaning here.
#[derive(Debug)]
struct MapInput(InputArgs);

impl MapInput {
    const LEFT_OUT: [&str; 3] = ["namespace", "stdin_filename", "point"];
}

impl clap::Args for MapInput {
    fn augment_args(command: clap::Command) -> clap::Command {
        let all = InputArgs::augment_args(clap::Command::new(""));
        let stays = |arg: &&clap::Arg| !Self::LEFT_OUT.contains(&arg.get_id().as_str());
        // A flag that is left out has no value. It must have a name, which an empty group gives it.
        command.args(all.get_arguments().filter(stays)).groups(Self::LEFT_OUT.map(clap::ArgGroup::new))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for MapInput {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        InputArgs::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Runs the command.
///
/// # Errors
/// When the cluster does not answer, or the map cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let MapInput(input) = &args.input;
    let project = input.project(terminal)?;
    let mut plan = live::plan(input, &args.cluster, &project, true, terminal)?;
    plan.policies.clone_from(&input.policies.policy);
    let occasion = input.policies.occasion(if plan.cluster.is_some() { Point::Audit } else { Point::Ci });
    let run = Run { plan, occasion };
    let (mut map, inputs) = judged_map(&run)?;
    note_read(&inputs, terminal);
    let errors = inputs.errors;
    if !args.select(&mut map, terminal) {
        return Ok(ExitStatus::Nothing);
    }
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

impl Args {
    /// Leaves out what the user does not ask for, and returns whether what the user asks for is there.
    fn select(&self, map: &mut MemoryMap, terminal: Terminal) -> bool {
        /// The most namespaces that a message names.
        const MOST: usize = 20;
        let names: BTreeSet<String> =
            self.namespaces.iter().map(|name| shown_name(name).into_owned()).collect();
        let there: BTreeSet<&str> = map.namespaces().into_iter().collect();
        if let Some(missing) = names.iter().find(|name| !there.contains(name.as_str())) {
            let near = nearest(missing, there.iter().copied());
            let near = near.map(|name| format!("; did you mean {}?", quoted(name))).unwrap_or_default();
            let names: Vec<&str> = there.iter().copied().take(MOST).collect();
            let names = names.join(", ") + &more(there.len().saturating_sub(MOST));
            let names = if names.is_empty() { "none".to_owned() } else { names };
            terminal.note(&format!(
                "error: the map has nothing in namespace {}{near}\n  its namespaces: {names}",
                quoted(missing)
            ));
            return false;
        }
        if !names.is_empty() {
            map.keep_namespaces(&names);
        }
        true
    }
}
