//! Running pods without their memory, as a replica with the right to read pods counts them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::house::{House, PATIENCE};
use crate::{
    fixture::Fixture,
    installed::memgate,
    samples::{agent, deployment, memory, pod},
    support::{wait, webhook::Webhook},
};

/// How many owners have a series of their own.
const MOST: usize = 100;

/// A cluster whose pods start without memgate, and the right to read them.
fn house() -> Result<(House, String)> {
    let house = House::new()?;
    let rights =
        ["manifests", "-n", &house.home, "--name", "memgate", "--only", "rbac", "--component", "scan"];
    house.cluster.admin().apply(&memgate(&rights)?)?;
    let namespace = house.cluster.fresh_namespace("team")?;
    for object in [memory("notes"), agent("scout", "notes")] {
        house.apply(&within(&namespace, object))?;
    }
    Ok((house, namespace))
}

fn within(namespace: &str, mut object: Value) -> Value {
    object["metadata"]["namespace"] = namespace.into();
    object
}

/// The series by namespace and owner.
fn counted(replica: &Webhook) -> Result<BTreeMap<(String, String), usize>> {
    let (_, metrics) = replica.probe("/metrics").context("memgate has no metrics")?;
    let lines = metrics.lines().filter_map(|line| line.strip_prefix("memgate_pods_without_memory{"));
    let one = |line: &str| {
        let (labels, count) = line.split_once("} ")?;
        let (namespace, owner) = labels.strip_prefix("namespace=\"")?.split_once("\",owner=\"")?;
        let owner = owner.strip_suffix('"')?;
        Some(((namespace.to_owned(), owner.to_owned()), count.parse().ok()?))
    };
    lines.map(|line| one(line).with_context(|| format!("not a series: {line}"))).collect()
}

/// Waits until these are all owners with pods without their memory.
fn until(replica: &Webhook, namespace: &str, expected: &[(&str, usize)]) -> Result<()> {
    let expected: BTreeMap<_, _> =
        expected.iter().map(|(owner, count)| ((namespace.to_owned(), (*owner).to_owned()), *count)).collect();
    let mut last = BTreeMap::new();
    let asked = wait::until_within(PATIENCE, &format!("{expected:?}"), || {
        last = counted(replica)?;
        Ok((last == expected).then_some(()))
    });
    asked.with_context(|| format!("it counts {last:?}"))
}

/// Pods come and go, and what they refer to does.
pub(super) fn follows(_: &Fixture) -> Result<()> {
    let (house, namespace) = house()?;
    let replica = house.replica(&[])?;
    house.apply(&within(&namespace, deployment(2)))?;
    house.apply(&within(&namespace, pod("lone", "scout", &[])))?;
    house.apply(&within(&namespace, pod("quiet", "scout", &[("memgate.dev/inject", "disabled")])))?;
    let all = [("Deployment/scout-agent", 2), ("Pod/lone", 1)];
    until(&replica, &namespace, &all)?;
    // Nothing but the pod itself has changed, then nothing but its agent.
    house.kubectl(&["-n", &namespace, "delete", "pod", "lone", "--force", "--grace-period=0"])?;
    until(&replica, &namespace, &all[..1])?;
    let forget = json!([{"op": "remove", "path": "/spec/memoryRef"}]).to_string();
    house.kubectl(&["-n", &namespace, "patch", "arkagent", "scout", "--type=json", "-p", &forget])?;
    until(&replica, &namespace, &[])?;
    house.apply(&within(&namespace, agent("scout", "notes")))?;
    until(&replica, &namespace, &all[..1])?;
    // A replica that starts finds the pods that run.
    replica.terminate()?;
    until(&house.replica(&[])?, &namespace, &all[..1])
}

/// The owners beyond the limit share a series.
pub(super) fn bounded(_: &Fixture) -> Result<()> {
    let (house, namespace) = house()?;
    let replica = house.replica(&[])?;
    house.apply(&within(&namespace, deployment(2)))?;
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let bare =
        (0..MOST + 20).map(|it| (path.clone(), within(&namespace, pod(&format!("lone-{it}"), "scout", &[]))));
    house.fill(bare.collect())?;
    let counts = wait::until_within(PATIENCE, "all pods are counted", || {
        let counts = counted(&replica)?;
        Ok((counts.values().sum::<usize>() == MOST + 22).then_some(counts))
    })?;
    ensure!(counts.len() == MOST + 1, "{} series", counts.len());
    let count = |namespace: &str, owner: &str| counts.get(&(namespace.to_owned(), owner.to_owned())).copied();
    ensure!(count("other", "other") == Some(21), "{counts:?}");
    ensure!(
        count(&namespace, "Deployment/scout-agent") == Some(2),
        "the owner with the most pods has no series"
    );
    Ok(())
}

/// Without the right, pods are not read and not counted, and audits go on.
pub(super) fn without_right(_: &Fixture) -> Result<()> {
    let house = House::new()?;
    let account = format!("--as=system:serviceaccount:{}:memgate", house.home);
    for verb in ["get", "list", "watch"] {
        let asked = house.cluster.kubectl(&["auth", "can-i", verb, "pods", "--all-namespaces", &account])?;
        ensure!(asked.stdout.trim() == "no", "the account may {verb} pods: {asked:?}");
    }
    let namespace = house.cluster.fresh_namespace("team")?;
    for object in [memory("notes"), agent("scout", "notes"), pod("lone", "scout", &[])] {
        house.apply(&within(&namespace, object))?;
    }
    let replica = house.replica(&[])?;
    super::house::pass_twice(&replica)?;
    ensure!(counted(&replica)?.is_empty(), "pods are counted");
    Ok(())
}
