//! That `memgate what-if` tells of a live cluster whom new policies would hit, pods included, and changes nothing.

use std::{fs, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::MEMGATE,
    samples::{agent, memory_of, pod},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::new("what_if::tells_whom_policies_would_hit", tells)]
}

fn tells(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("what-if", &[])?;
    let spec = json!({"backend": "in-context"});
    for mut object in [memory_of("notes", &spec), agent("scout", "notes"), pod("scout-0", "scout", &[])] {
        object["metadata"]["namespace"] = json!(namespace);
        cluster.admin().apply(&object.to_string())?;
    }
    let policy = json!({"apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy",
    "metadata": {"name": "house"}, "spec": {"rules": [
        {"id": "durable", "backends": {"durable": true}},
        {"id": "pods-too", "roles": ["pod"], "backends": {"durable": true}},
    ]}});
    let file = cluster.scratch().path().join(format!("{namespace}-policy.json"));
    fs::write(&file, policy.to_string())?;
    let output = Command::new(MEMGATE)
        .args(["what-if", "-o", "json", "-n", &namespace, "--policy"])
        .arg(&file)
        .arg("--kubeconfig")
        .arg(cluster.admin_kubeconfig())
        .env_clear()
        .output()
        .context("memgate does not start")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let changes = report["changes"].as_array().context("no changes")?;
    let hit: Vec<String> =
        changes.iter().map(|it| format!("{} {}", it["object"]["kind"], it["to"]).replace('"', "")).collect();
    ensure!(hit == ["ArkMemory denied", "Pod denied"], "{hit:?} {said}");
    ensure!(said.contains("2 newly denied"), "{said}");
    let stored = cluster.kubectl(&["get", "memorypolicies", "house"])?;
    ensure!(stored.ok().is_err(), "the policy was stored");
    Ok(())
}
