//! `memgate explain-pod`: lists what memgate added to a pod, with the origin of each addition.

use std::path::Path;

use anyhow::Context as _;

use crate::cli::ExitStatus;
use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::input::{StateArgs, note_read};
use crate::cli::settings::SettingsArgs;
use crate::cli::terminal::Terminal;
use memgate_cluster::doctor::inferred::registered;
use memgate_cluster::doctor::missing_memory;
use memgate_cluster::explained_pod::{ExplainedPod, explained_pod};
use memgate_cluster::installation::registration;
use memgate_cluster::reader::ClusterReader;
use memgate_cluster::replay::replay_one;
use memgate_cluster::webhook_entry::WebhookEntry;
use memgate_model::settings::Settings;
use memgate_platforms::inject::INJECTED_ANNOTATION;
use memgate_primitives::name::is_dns_subdomain;
use memgate_workbench::injected::{DescribedPod, about, describe, describe_all};
use memgate_workbench::load::load;
use memgate_workbench::plan::Plan;
use memgate_workbench::report::plain;
use memgate_workbench::unfit::causes;

/// List what memgate added to a pod, and where it comes from
///
/// Reads the annotation memgate.dev/injected of pods, or of the pod templates of workloads. The origin of an addition
/// is shown if its memory resource can be read: in the cluster of the pod, or among the files, in --with or in
/// --snapshot. Values that have changed since are marked. For a pod with its memory that cannot start, or runs otherwise
/// than meant, it says why.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Exit codes: 0 printed, 2 an input cannot be read or parsed, 3 no pod was found.",
    after_long_help = "\
Examples:
  memgate explain-pod team-a/scout-0
  kubectl get pod scout-0 -o yaml | memgate explain-pod
  memgate explain-pod pod.yaml --with memory.yaml

NAMESPACE/NAME takes the right to get the pod, and to list memory resources and agents in its namespace. Kinds that you
may not read are named.

For a pod without memory it names the reason that memgate doctor finds. That may take the right to
list mutatingwebhookconfigurations and to get the namespace, and for a pause the right to list
rolebindings in the namespace, and clusterrolebindings."
)]
pub struct Args {
    /// Files, directories, globs, - for standard input, or NAMESPACE/NAME of a pod
    #[arg(value_name = "PATH", default_value = "-")]
    paths: Vec<String>,

    #[command(flatten)]
    state: StateArgs,

    #[command(flatten)]
    settings: SettingsArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Why memgate added nothing to a pod, as `memgate doctor` judges it; empty if it added something.
async fn why_none(reader: &ClusterReader, explained: &ExplainedPod) -> String {
    let ExplainedPod { pod, snapshot, created, .. } = explained;
    let is_open = pod.annotation(INJECTED_ANNOTATION).is_none() && about(&pod.json, snapshot).is_empty();
    let Some(replayed) = replay_one(pod, snapshot).filter(|_| is_open) else {
        return String::new();
    };
    if !replayed.lacks_memory && causes(&replayed.decision).next().is_some() {
        // The description of the pod has them.
        return String::new();
    }
    let families = &replayed.decision.families;
    let is_own = |entries: &[WebhookEntry]| {
        let registered = registered(entries);
        families.iter().all(|share| registered.contains(&share.family)) && !registered.is_empty()
    };
    let found = registration(reader, pod.namespace(), is_own).await;
    let (why, help) = missing_memory::why(&found, created, &replayed);
    let help = help.map(|help| format!("  help: {help}\n")).unwrap_or_default();
    format!("  why: {}\n{help}", plain(&why))
}

/// Runs the command.
///
/// # Errors
/// When the cluster cannot be reached, a pod cannot be read there, or the text cannot be written.
pub fn run(args: &Args, terminal: Terminal) -> anyhow::Result<ExitStatus> {
    let (pods, paths): (Vec<String>, Vec<String>) =
        args.paths.iter().cloned().partition(|path| pod_in_cluster(path).is_some());
    anyhow::ensure!(
        pods.is_empty() || (args.state.with.is_empty() && args.state.snapshot.is_none()),
        "--with and --snapshot are for files; the state around {} is read in the cluster",
        pods.join(", ")
    );
    let plan = args.state.plan(args.settings.settings(None)?);
    let mut described = from_cluster(args, &pods, &plan.settings, terminal)?;
    let mut has_failed = false;
    if !paths.is_empty() {
        let inputs = load(&Plan { checked: paths.clone(), ..plan })?;
        described.extend(describe_all(&inputs));
        note_read(&inputs, terminal);
        has_failed = !inputs.errors.is_empty();
    }
    for pod in &described {
        terminal.out(pod.text.as_bytes())?;
    }
    if described.iter().any(|pod| pod.lacks_origins) {
        let advice = if paths.is_empty() {
            "comes from objects that were deleted, have changed, or cannot be read"
        } else {
            "comes from objects that are not among the inputs; give NAMESPACE/NAME of a pod in a cluster, or the memory by \
             --with or --snapshot"
        };
        terminal.note(&format!("note: what has no ← {advice}"));
    }
    if has_failed {
        return Ok(ExitStatus::Failed);
    }
    if described.is_empty() {
        terminal.note("error: no pod was found\n  what counts: pods, and workloads with a pod template");
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

fn from_cluster(
    args: &Args,
    pods: &[String],
    settings: &Settings,
    terminal: Terminal,
) -> anyhow::Result<Vec<DescribedPod>> {
    if pods.is_empty() {
        return Ok(Vec::new());
    }
    block_on(async {
        // The argument may be a mistyped path.
        let taken_as = || format!("{} is not a file, so it was taken as a pod in a cluster", pods.join(", "));
        let client = args.cluster.client().await.with_context(taken_as)?;
        let reader = ClusterReader { client, max_objects: usize::MAX, deadline: None };
        let mut described = Vec::new();
        for (namespace, name) in pods.iter().filter_map(|pod| pod_in_cluster(pod)) {
            let read = explained_pod(&reader, settings.clone(), namespace, name).await;
            let explained = read.map_err(anyhow::Error::msg)?;
            for why in &explained.incomplete {
                terminal.note(&format!("note: {why}"));
            }
            let ExplainedPod { pod, snapshot, .. } = &explained;
            let mut described_pod = describe(&pod.title(), &pod.json, namespace, snapshot);
            described_pod.text.push_str(&why_none(&reader, &explained).await);
            described.push(described_pod);
        }
        Ok(described)
    })
}
