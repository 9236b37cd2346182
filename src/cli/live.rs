//! What a live cluster holds, in the form of `memgate snapshot`, and as inputs.

use std::collections::BTreeSet;

use anyhow::Context as _;
use jiff::{Timestamp, Unit};
use tokio::runtime::Runtime;

use crate::cli::cluster::ClusterArgs;
use crate::cli::input::InputArgs;
use crate::cli::project::Project;
use crate::cli::terminal::Terminal;
use crate::cluster::listed_state::{add_agent_pods, read_state};
use crate::cluster::reader::ClusterReader;
use crate::model::family::Family;
use crate::report::plain;
use crate::state::cluster_snapshot::{ClusterSnapshot, Known, kinds};

/// The state of the cluster that was named, in the namespace of `-n` or in all; `None` where none was named. With
/// `pods` the agent pods too.
///
/// # Errors
/// When files were named as well, or the cluster does not answer.
pub fn state(
    input: &InputArgs,
    cluster: &ClusterArgs,
    project: &Project,
    pods: bool,
    terminal: Terminal,
) -> anyhow::Result<Option<String>> {
    if !cluster.is_named() {
        return Ok(None);
    }
    anyhow::ensure!(
        !input.has_paths(),
        "files and a cluster were given; leave out PATH, or --kubeconfig and --context"
    );
    anyhow::ensure!(
        !input.has_snapshot(),
        "a snapshot and a cluster were given; leave out --snapshot, or --kubeconfig and --context"
    );
    let families = input.settings(project)?.families;
    let runtime = Runtime::new().context("failed to start the runtime")?;
    let snapshot = runtime.block_on(async {
        let namespaces = input.namespace().map(|name| BTreeSet::from([name.to_owned()]));
        let (reader, mut snapshot) = read(cluster.client().await?, &families, namespaces, false).await?;
        if pods {
            add_agent_pods(&reader, &families, &mut snapshot).await;
        }
        anyhow::Ok(snapshot)
    })?;
    runtime.shutdown_background();
    for kind in snapshot.kinds.iter().filter(|kind| kind.state == Known::Unknown && kind.kind == "Pod") {
        let why = kind.why.as_deref().unwrap_or_default();
        terminal.note(&plain(&format!("note: agent pods are not judged: {why}")));
    }
    let mut bytes = Vec::new();
    snapshot.write(&mut bytes).context("failed to keep what was read")?;
    String::from_utf8(bytes).context("failed to keep what was read").map(Some)
}

/// Reads the state now, in these namespaces or in all, and what reads it.
///
/// # Errors
/// When the cluster does not answer, or one of the namespaces is not there.
pub async fn read(
    client: kube::Client,
    families: &[&'static Family],
    namespaces: Option<BTreeSet<String>>,
    with_secrets: bool,
) -> anyhow::Result<(ClusterReader, ClusterSnapshot)> {
    let taken = Timestamp::now().round(Unit::Second).context("the clock is out of range")?;
    let mut snapshot = ClusterSnapshot::new(taken.to_string(), namespaces);
    // Everything that there is, for what is left out would be taken as absent.
    let reader = ClusterReader { client, max_objects: usize::MAX };
    let read = read_state(&reader, &kinds(families), with_secrets, &mut snapshot).await;
    read.map_err(anyhow::Error::msg)?;
    Ok((reader, snapshot))
}
