//! What `memgate doctor` says of components that were taken away.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cluster::Cluster;

/// Policies of components that were taken away, until what `memgate doctor` advises is done.
pub(crate) fn go_as_advised(cluster: &Cluster) -> Result<()> {
    cluster.install("--component vap --component map")?;
    ensure!(left(cluster)?.is_empty(), "{:?}", left(cluster)?);
    cluster.install("")?;
    let found = left(cluster)?;
    let subjects: Vec<&str> = found.iter().filter_map(|check| check["subject"].as_str()).collect();
    ensure!(subjects == ["component map", "component vap"], "{found:?}");
    for check in &found {
        let help = check["help"].as_str().context("it has no help")?;
        cluster.sh(help)?.ok()?;
    }
    ensure!(left(cluster)?.is_empty(), "{:?}", left(cluster)?);
    cluster.ensure_only_the_self_guard_refuses()
}

/// What `memgate doctor` says of leftovers.
fn left(cluster: &Cluster) -> Result<Vec<Value>> {
    let printed = cluster.sh("memgate doctor -o json || test $? = 1")?.ok()?.stdout;
    let printed: Value = serde_json::from_str(&printed)?;
    let is_left = |check: &&Value| check["id"] == "leftovers" && check["status"] != "ok";
    Ok(printed["checks"].as_array().into_iter().flatten().filter(is_left).cloned().collect())
}
