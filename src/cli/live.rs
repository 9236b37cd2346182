//! What a live cluster holds, in the form of `memgate snapshot`, and as the plan of a command about stored objects.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use jiff::{Timestamp, Unit};

use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::input::{InputArgs, whole_repository};
use crate::cli::project::Project;
use crate::cli::terminal::Terminal;
use memgate_cluster::agents::add_agent_pods;
use memgate_cluster::listed_state::{Beyond, read_state};
use memgate_cluster::reader::ClusterReader;
use memgate_core::state::cluster_snapshot::{ClusterSnapshot, KindEntry, kinds};
use memgate_model::family::Family;
use memgate_workbench::plan::Plan;
use memgate_workbench::report::plain;

/// The name of the cluster's state in findings, in place of a path.
const CLUSTER: &str = "cluster";

/// Plans to read stored objects, without the policies of `--policy`: the objects of the paths that were typed; without
/// those, of the cluster or of `--snapshot`; without either, of the repository's paths; without these, of the cluster of
/// KUBECONFIG; without it, of the working directory. With `pods` the agent pods of the cluster too.
///
/// # Errors
/// When no objects or objects of two origins were given, or the cluster does not answer.
pub fn plan(
    input: &InputArgs,
    cluster: &ClusterArgs,
    project: &Project,
    pods: bool,
    terminal: Terminal,
) -> anyhow::Result<Plan> {
    let mut plan = input.plan_without_paths(project, &project.directory)?;
    plan.policies.clear();
    let is_given = !plan.checked.is_empty() || plan.snapshot.is_some();
    if cluster.is_named() || !is_given && ClusterArgs::is_in_environment() {
        anyhow::ensure!(
            input.paths.is_empty(),
            "files and a cluster were given; leave out PATH, or --kubeconfig and --context"
        );
        anyhow::ensure!(
            plan.snapshot.is_none(),
            "a snapshot and a cluster were given; leave out --snapshot, or --kubeconfig and --context"
        );
        let namespace = input.state.namespace.as_deref();
        let text = state(cluster, &plan.settings.families, namespace, pods, terminal)?;
        plan.instead.insert(CLUSTER.to_owned(), text);
        plan.snapshot = Some(PathBuf::from(CLUSTER));
    }
    if input.paths.is_empty() && !plan.reads_stdin() && plan.snapshot.is_some() {
        plan.checked.clear();
        plan.sets.clear();
        plan.checks_snapshot = true;
    } else if plan.checked.is_empty() {
        plan.checked = vec![whole_repository(None, terminal)];
    }
    Ok(plan)
}

/// The state of a cluster as the text of a snapshot, of one namespace or of all.
fn state(
    cluster: &ClusterArgs,
    families: &[&'static Family],
    namespace: Option<&str>,
    pods: bool,
    terminal: Terminal,
) -> anyhow::Result<String> {
    let snapshot = block_on(async {
        let namespaces = namespace.map(|name| BTreeSet::from([name.to_owned()]));
        let (reader, mut snapshot) = read(cluster.client().await?, families, namespaces, false).await?;
        if pods {
            add_agent_pods(&reader, families, &mut snapshot).await;
        }
        Ok(snapshot)
    })?;
    for why in snapshot.kinds.iter().filter(|kind| kind.kind == "Pod").filter_map(KindEntry::unknown) {
        terminal.note(&plain(&format!("note: agent pods could not be read: {why}")));
    }
    let mut bytes = Vec::new();
    snapshot.write(&mut bytes).context("failed to keep the state of the cluster")?;
    String::from_utf8(bytes).context("failed to keep the state of the cluster")
}

/// Reads the state now, of these namespaces or of all, and returns the reader too.
///
/// # Errors
/// When the cluster does not answer, or does not have one of the namespaces.
pub(crate) async fn read(
    client: kube::Client,
    families: &[&'static Family],
    namespaces: Option<BTreeSet<String>>,
    with_secrets: bool,
) -> anyhow::Result<(ClusterReader, ClusterSnapshot)> {
    let taken = Timestamp::now().round(Unit::Second).context("the clock is out of range")?;
    let mut snapshot = ClusterSnapshot::new(taken.to_string(), namespaces);
    // No limit: an object that is left out would count as absent.
    let reader = ClusterReader { client, max_objects: usize::MAX, deadline: None };
    let read =
        read_state(&reader, &kinds(families), Beyond { secrets: with_secrets, times: false }, &mut snapshot)
            .await;
    read.map_err(anyhow::Error::msg)?;
    Ok((reader, snapshot))
}
