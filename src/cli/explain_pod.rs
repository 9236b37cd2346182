//! `memgate explain-pod`: lists what memgate added to a pod of a cluster.

use crate::cli::ExitStatus;
use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::terminal::Terminal;
use memgate_cluster::agent_pods::AgentPod;
use memgate_cluster::cluster_state::Fetched;
use memgate_cluster::reader::{ClusterReader, PAGE_OBJECTS};
use memgate_model::kind::POD;
use memgate_primitives::name::is_dns_subdomain;
use memgate_workbench::files::injected::describe;

/// List what memgate added to a pod
///
/// Prints the annotation memgate.dev/injected of pods of a cluster in words.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 printed, 2 there is no such pod, or it cannot be read.",
    after_long_help = "\
Examples:
  memgate explain-pod team-a/scout-0
  memgate explain-pod --context prod team-a/scout-0 team-a/scout-1

It takes the right to get the pods."
)]
pub struct Args {
    /// Namespace and name of a pod; repeatable
    #[arg(value_name = "NAMESPACE/NAME", value_parser = parse_pod, required = true)]
    pods: Vec<(String, String)>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs the command.
///
/// # Errors
/// When the cluster cannot be reached, a pod cannot be read there, or the text cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    block_on(async {
        let reader = ClusterReader { client: args.cluster.client().await?, page_objects: PAGE_OBJECTS };
        for (namespace, name) in &args.pods {
            let pod = match reader.get_kind(&POD, namespace, name).await {
                Fetched::Found(json) => AgentPod { json },
                Fetched::Absent => anyhow::bail!("there is no Pod {namespace}/{name}"),
                Fetched::Unknown(why) => anyhow::bail!("{why}"),
            };
            terminal.out(describe(&pod.title(), &pod.json).as_bytes())?;
        }
        Ok(ExitStatus::Clean)
    })
}

fn parse_pod(text: &str) -> Result<(String, String), String> {
    let names = text
        .split_once('/')
        .filter(|(namespace, name)| [namespace, name].into_iter().all(|it| is_dns_subdomain(it)));
    let (namespace, name) = names.ok_or("write it like team-a/scout-0")?;
    Ok((namespace.to_owned(), name.to_owned()))
}
