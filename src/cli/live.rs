//! What a live cluster holds, as the plan of a command about stored objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context as _;
use jiff::{Timestamp, Unit};

use crate::cli::cluster::{ClusterArgs, block_on};
use crate::cli::input::{HERE, InputArgs};
use crate::cli::project::Project;
use crate::cli::terminal::Terminal;
use memgate_cluster::agent_pods::add_agent_pods;
use memgate_cluster::listed_state::read_state;
use memgate_cluster::reader::{ClusterReader, PAGE_OBJECTS};
use memgate_core::state::cluster_snapshot::{ClusterSnapshot, KindEntry, kinds};
use memgate_model::family::Family;
use memgate_workbench::build::plan::Plan;
use memgate_workbench::report::plain;

/// Plans to read stored objects, without the policies of `--policy`: the objects of the paths that were typed; without
/// those, of the cluster; without one, of the repository's paths; without these, of the cluster of KUBECONFIG; without it,
/// of the working directory. With `pods` the agent pods of the cluster too.
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
    if cluster.is_named() || plan.checked.is_empty() && ClusterArgs::is_in_environment() {
        anyhow::ensure!(
            input.paths.is_empty(),
            "files and a cluster were given; leave out PATH, or --kubeconfig and --context"
        );
        let namespace = input.state.namespace.as_deref();
        plan.cluster = Some(Arc::new(read(cluster, &plan.settings.families, namespace, pods, terminal)?));
        plan.checked.clear();
    } else if plan.checked.is_empty() {
        plan.checked = vec![HERE.to_owned()];
    }
    Ok(plan)
}

/// The objects of a cluster now, of one namespace or of all.
fn read(
    cluster: &ClusterArgs,
    families: &[&'static Family],
    namespace: Option<&str>,
    pods: bool,
    terminal: Terminal,
) -> anyhow::Result<ClusterSnapshot> {
    let taken = Timestamp::now().round(Unit::Second).context("the clock is out of range")?;
    let namespaces = namespace.map(|name| BTreeSet::from([name.to_owned()]));
    let mut snapshot = ClusterSnapshot::new(taken.to_string(), namespaces);
    block_on(async {
        let reader = ClusterReader { client: cluster.client().await?, page_objects: PAGE_OBJECTS };
        let read = read_state(&reader, &kinds(families), &mut snapshot).await;
        read.map_err(anyhow::Error::msg)?;
        if pods {
            add_agent_pods(&reader, families, &mut snapshot).await;
        }
        Ok(())
    })?;
    for why in snapshot.kinds.iter().filter(|kind| kind.kind == "Pod").filter_map(KindEntry::unknown) {
        terminal.note(&plain(&format!("note: agent pods could not be read: {why}")));
    }
    Ok(snapshot)
}
