//! `memgate explain-pod`: lists what memgate added to a pod.

use std::path::Path;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::input::note_read;
use crate::cli::terminal::Terminal;
use memgate_cluster::agent_pods::AgentPod;
use memgate_cluster::cluster_state::Fetched;
use memgate_cluster::reader::{ClusterReader, PAGE_OBJECTS};
use memgate_model::kind::POD;
use memgate_primitives::name::is_dns_subdomain;
use memgate_workbench::build::plan::Plan;
use memgate_workbench::files::injected::{describe, describe_all};
use memgate_workbench::files::load::load;

/// List what memgate added to a pod
///
/// Prints the annotation memgate.dev/injected of pods, or of the pod templates of workloads, in words.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 printed, 2 an input cannot be read or parsed, 3 no pod was found.",
    after_long_help = "\
Examples:
  memgate explain-pod team-a/scout-0
  kubectl get pod scout-0 -o yaml | memgate explain-pod

NAMESPACE/NAME takes the right to get the pod."
)]
pub struct Args {
    /// Files, directories, globs, - for standard input, or NAMESPACE/NAME of a pod
    #[arg(value_name = "PATH", default_value = "-")]
    paths: Vec<String>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs the command.
///
/// # Errors
/// When the cluster cannot be reached, a pod cannot be read there, or the text cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let (pods, checked): (Vec<String>, Vec<String>) =
        args.paths.iter().cloned().partition(|path| pod_in_cluster(path).is_some());
    let mut described = from_cluster(args, &pods)?;
    let mut has_failed = false;
    if !checked.is_empty() {
        let inputs = load(&Plan { checked, ..Plan::default() })?;
        described.extend(describe_all(&inputs));
        note_read(&inputs, terminal);
        has_failed = !inputs.errors.is_empty();
    }
    for text in &described {
        terminal.out(text.as_bytes())?;
    }
    if has_failed {
        return Ok(ExitStatus::Failed);
    }
    if described.is_empty() {
        terminal.note("error: no pod was found, and no workload with a pod template");
        return Ok(ExitStatus::Nothing);
    }
    Ok(ExitStatus::Clean)
}

/// Namespace and name of a pod, if the argument has that form and is not a path.
fn pod_in_cluster(argument: &str) -> Option<(&str, &str)> {
    let (namespace, name) = argument.split_once('/')?;
    let is_manifest = [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
    let is_pod = is_dns_subdomain(namespace) && is_dns_subdomain(name) && !is_manifest;
    (is_pod && !Path::new(argument).exists()).then_some((namespace, name))
}

fn from_cluster(args: &Args, pods: &[String]) -> anyhow::Result<Vec<String>> {
    if pods.is_empty() {
        return Ok(Vec::new());
    }
    block_on(async {
        // The argument may be a mistyped path.
        let taken_as = || format!("{} is not a file, so it was taken as a pod in a cluster", pods.join(", "));
        let client = args.cluster.client().await.with_context(taken_as)?;
        let reader = ClusterReader { client, page_objects: PAGE_OBJECTS };
        let mut described = Vec::new();
        for (namespace, name) in pods.iter().filter_map(|pod| pod_in_cluster(pod)) {
            let pod = match reader.get_kind(&POD, namespace, name).await {
                Fetched::Found(json) => AgentPod { json },
                Fetched::Absent => anyhow::bail!("there is no Pod {namespace}/{name}"),
                Fetched::Unknown(why) => anyhow::bail!("{why}"),
            };
            described.push(describe(&pod.title(), &pod.json));
        }
        Ok(described)
    })
}
