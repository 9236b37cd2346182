//! What `memgate status` says after a refusal, after changes of policies, and in an outage.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::support::wait;

/// A policy with an exemption that ends in ten days, and one memory that is refused.
const WRITES: &str = r#"
kubectl create namespace team-a
kubectl create -f - <<'EOF'
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: owned}
spec:
  rules: [{id: team, labels: {required: [team]}}]
  exemptions: {namespaces: [team-a], maxAge: 30d}
EOF
kubectl create -f - <<EOF
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicyExemption
metadata: {name: move, namespace: team-a}
spec:
  policy: owned
  rules: [team]
  target: {namespaces: [team-a]}
  reason: "it moves to another team"
  from: "$(date -u +%Y-%m-%dT00:00:00Z)"
  expiresAt: "$(date -u -d '+10 days' +%Y-%m-%dT%H:%M:%SZ)"
EOF
for flag in "" --dry-run=server; do
  ! kubectl create $flag -f - <<'EOF'
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec: {backend: redis}
EOF
done
"#;

/// What was refused, who changed what, and what ends; then that memgate is away.
pub(crate) fn answers(cluster: &Cluster) -> Result<()> {
    leftovers(cluster)?;
    cluster.install("--component policies")?;
    cluster.sh(WRITES)?.ok()?;
    let status = wait::until("the status to tell all", || {
        let status = json(cluster, 0)?;
        let has_refusal = list(&status, "refused").next().is_some();
        Ok(has_refusal.then_some(status))
    })?;
    let refused = list(&status, "refused").map(|refused| {
        let [code, namespace] =
            ["code", "namespace"].map(|field| refused[field].as_str().unwrap_or_default());
        format!("{} of {code} in {namespace}", refused["count"])
    });
    // What asked whether memgate answers were dry runs.
    ensure!(refused.collect::<Vec<_>>() == ["1 of arkonis/redis-required in team-a"], "{status:#}");
    for policy in ["owned", "team-a/move"] {
        let change = list(&status, "policyChanges").find(|change| change["policy"] == policy);
        let change = change.with_context(|| format!("nothing is said of {policy}: {status:#}"))?;
        ensure!(change["user"] == "test-admin", "{change}");
    }
    ensure!(list(&status, "endsSoon").any(|end| end["name"] == "team-a/move from owned"), "{status:#}");
    cluster.sh("kubectl -n memgate-system scale deployment memgate --replicas=0")?.ok()?;
    let away = wait::until("memgate to be away", || {
        let status = cluster.sh("memgate status || test $? = 1")?.ok()?.stdout;
        Ok(status.starts_with("memgate does not answer\n").then_some(status))
    })?;
    ensure!(away.contains("`memgate pause -n NAMESPACE --for 1h --reason TEXT`"), "{away}");
    ensure!(away.lines().count() <= 60, "{away}");
    ensure!(json(cluster, 1)?["replicas"]["wanted"] == 0, "{away}");
    Ok(())
}

/// The JSON form, with this exit code.
fn json(cluster: &Cluster, code: u8) -> Result<Value> {
    let printed =
        cluster.sh(&format!("code=0; memgate status -o json || code=$?; test $code = {code}"))?.ok()?.stdout;
    let status: Value = serde_json::from_str(&printed)?;
    for key in ["replicas", "paused", "podsWithoutMemory", "refused", "policyChanges", "endsSoon", "cost"] {
        ensure!(status.get(key).is_some(), "{key} is missing: {status:#}");
    }
    Ok(status)
}

fn list<'s>(status: &'s Value, key: &str) -> impl Iterator<Item = &'s Value> {
    status[key].as_array().into_iter().flatten()
}

/// Objects of a component that was taken away, until what `memgate doctor` advises is done.
fn leftovers(cluster: &Cluster) -> Result<()> {
    cluster.install("--component network-policy")?;
    ensure!(left(cluster)?.is_empty(), "{:?}", left(cluster)?);
    cluster.install("")?;
    let found = left(cluster)?;
    let subjects: Vec<&str> = found.iter().filter_map(|check| check["subject"].as_str()).collect();
    ensure!(subjects == ["component network-policy"], "{found:?}");
    for check in &found {
        let help = check["help"].as_str().context("it has no help")?;
        cluster.sh(help)?.ok()?;
    }
    ensure!(left(cluster)?.is_empty(), "{:?}", left(cluster)?);
    Ok(())
}

/// What `memgate doctor` says of leftovers.
fn left(cluster: &Cluster) -> Result<Vec<Value>> {
    let printed = cluster.sh("memgate doctor -o json || test $? = 1")?.ok()?.stdout;
    let printed: Value = serde_json::from_str(&printed)?;
    let is_left = |check: &&Value| check["id"] == "leftovers" && check["status"] != "ok";
    Ok(list(&printed, "checks").filter(is_left).cloned().collect())
}
