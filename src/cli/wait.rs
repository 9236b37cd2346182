//! `memgate wait`: waits until the webhook answers in a cluster.

use std::time::Duration;

use crate::cli::ExitStatus;
use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::duration;
use crate::cli::families::FamilyArgs;
use crate::cli::terminal::Terminal;
use memgate_cluster::answer::Answer;
use memgate_cluster::probe::probes;
use memgate_cluster::wait::{all_answered, probe_namespace, wait};

/// Wait until the webhook answers in a cluster
///
/// Asks the apiserver to create, as a dry run, a pod and a memory resource of each installed platform
/// that memgate has to refuse, until it refuses all of them. This tests registration, certificate,
/// Service and replicas. Nothing is stored. Missing answers are named on standard error. A kind that
/// an API server of the platform serves is named and not tried: that server may call no webhook, and
/// store the object although it is a dry run.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 memgate answers, 1 it does not in time, 2 wrong usage or a fault.",
    after_long_help = "\
Examples:
  memgate wait
  memgate wait --timeout 5m -n team-a
  memgate wait --context staging

It takes the right to create pods, and the memory resources of the platforms, in the namespace; for
ark also the right to get the APIService v1alpha1.ark.mckinsey.com."
)]
pub struct Args {
    /// Time limit, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "60s")]
    timeout: Duration,

    /// Namespace of the dry runs [default: that of the context]
    #[arg(short, long, value_name = "NAME", value_parser = probe_namespace)]
    namespace: Option<String>,

    #[command(flatten)]
    families: FamilyArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs the command.
///
/// # Errors
/// When the cluster cannot be reached, or the result cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let answers = block_on(answers(args, terminal))?;
    if all_answered(&answers) {
        let lines =
            answers.iter().map(|Answer { check, .. }| format!("{}: {}\n", check.subject, check.message));
        terminal.out(lines.collect::<String>().as_bytes())?;
        return Ok(ExitStatus::Clean);
    }
    terminal.error(&anyhow::anyhow!(
        "memgate did not answer as it should within {:?}; memgate doctor says why",
        args.timeout
    ));
    Ok(ExitStatus::Denied)
}

async fn answers(args: &Args, terminal: Terminal) -> anyhow::Result<Vec<Answer>> {
    let client = args.cluster.client().await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
    probe_namespace(&namespace).map_err(|error| anyhow::anyhow!("{error} with --namespace"))?;
    let notify = |line: &str| terminal.note(&format!("waiting: {line}"));
    Ok(wait(&client, &probes(&args.families.chosen()), &namespace, args.timeout, notify).await)
}
