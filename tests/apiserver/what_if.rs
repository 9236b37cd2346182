//! That `memgate what-if` tells of a live cluster whom new policies would hit, pods included, and changes nothing; and
//! that `memgate audit` says what they make of what is stored, also on a page with a map, which `memgate map` prints.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::MEMGATE,
    samples::{agent, memory_of, pod},
    support::control_plane::ControlPlane,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("what_if::tells_whom_policies_would_hit", tells),
        Trial::new("what_if::audits_what_is_stored", audits),
    ]
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
    let output = run(cluster, &["what-if", "-n", &namespace], &file)?;
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

fn run(cluster: &ControlPlane, command: &[&str], policy: &Path) -> Result<Output> {
    let mut memgate = Command::new(MEMGATE);
    memgate.args(command).args(["-o", "json", "--policy"]).arg(policy);
    of_cluster(cluster, &mut memgate)
}

fn of_cluster(cluster: &ControlPlane, memgate: &mut Command) -> Result<Output> {
    let memgate = memgate.arg("--kubeconfig").arg(cluster.admin_kubeconfig()).env_clear();
    memgate.output().context("memgate does not start")
}

/// Labels and definitions of the cluster count; pods, and what runs once, do not.
fn audits(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("audit", &[])?;
    let mut labelled = memory_of("labelled", &json!({"backend": "in-context"}));
    labelled["metadata"]["labels"] = json!({"team": "a"});
    let plain = memory_of("plain", &json!({"backend": "in-context"}));
    let query = json!({"apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Query", "metadata": {"name": "once"},
        "spec": {"input": "hello", "target": {"type": "agent", "name": "a"}}});
    for mut object in [labelled, plain, agent("scout", "plain"), query, pod("scout-0", "scout", &[])] {
        object["metadata"]["namespace"] = json!(namespace);
        cluster.admin().apply(&object.to_string())?;
    }
    let rule = json!({"id": "owned", "labels": {"required": ["team"]}});
    let policy = json!({"apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy",
        "metadata": {"name": "house"}, "spec": {"actions": {"admission": "deny"}, "rules": [rule]}});
    let file = cluster.scratch().path().join(format!("{namespace}-policy.json"));
    fs::write(&file, policy.to_string())?;
    let page = cluster.scratch().path().join(format!("{namespace}.html"));
    let html = format!("html={}", page.display());
    let output = run(cluster, &["audit", "-n", &namespace, "-o", &html], &file)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(0), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let findings = report["findings"].as_array().context("no findings")?;
    // Other trials have policies and objects without a namespace in the same cluster.
    let of_house = findings
        .iter()
        .filter(|it| it["policy"]["name"] == "house" && it["object"]["namespace"] == namespace.as_str());
    let mut found: Vec<String> = of_house
        .map(|it| {
            format!("{} {} {}", it["object"]["kind"], it["object"]["name"], it["policy"]["atAdmission"])
        })
        .map(|line| line.replace('"', ""))
        .collect();
    found.sort();
    ensure!(found == ["ArkAgent scout deny", "ArkMemory plain deny"], "{found:?} {said}");
    // The maps have the pods too.
    let page = fs::read_to_string(page)?;
    ensure!(page.contains(&format!("<li>Pod {namespace}/scout-0</li>")), "{page}");
    let output = of_cluster(cluster, Command::new(MEMGATE).args(["map", "-n", &namespace]))?;
    let (map, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for [kind, name] in [["ArkAgent", "scout"], ["Pod", "scout-0"]] {
        let line = format!("{kind} {namespace}/{name} → ArkMemory {namespace}/plain\n");
        ensure!(map.contains(&line), "{line}: {map} {said}");
    }
    // The environment names the cluster too.
    let output = Command::new(MEMGATE)
        .args(["audit", "-o", "json", "-n", &namespace, "--policy"])
        .arg(&file)
        .env_clear()
        .env("KUBECONFIG", cluster.admin_kubeconfig())
        .current_dir(cluster.scratch().path())
        .output()?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let rows = report["table"].as_array().context("no table")?;
    let row = rows.iter().find(|row| row["policy"] == "house").context("no row of the policy")?;
    ensure!(row["denials"] == 2 && row["namespace"] == json!(namespace), "{report:#}");
    Ok(())
}
