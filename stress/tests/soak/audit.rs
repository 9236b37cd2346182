//! Audits of very many stored objects: how long one takes, and in how much memory.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    installed::{MEMGATE, install_crds, memgate},
    many::create_all,
    runs::Parameters,
    samples::{agent, memory_of},
    support::{control_plane::ControlPlane, process::Process},
};

/// How often the memory is read.
const POLL: Duration = Duration::from_millis(50);

/// The goals, of an audit that finds nothing new.
const SECONDS: f64 = 60.0;
const PEAK_KIB: u64 = 256 << 10;

const REPORTS: &str = include_str!("../../../tests/apiserver/audit/reports.yaml");

pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let cluster = ControlPlane::start()?;
    install_crds(&cluster)?;
    cluster.admin().apply(REPORTS)?;
    let home = cluster.fresh_namespace("memgate")?;
    let rights = memgate(&["manifests", "-n", &home, "--name", "memgate", "--only", "rbac"])?;
    cluster.admin().apply(&rights)?;
    let kubeconfig = cluster.service_account_kubeconfig(&home, "memgate-audit")?;
    let (objects, failing) = (parameters.number("objects")?, parameters.number("failing")?);
    fill(&cluster, objects, failing)?;
    for index in 0..parameters.number("policies")? {
        cluster.admin().apply(&policy(index).to_string())?;
    }
    let mut command = Command::new(parameters.text_or("memgate", MEMGATE)?);
    command.args(["audit", "--write", "--kubeconfig"]).arg(&kubeconfig);
    for which in ["first", "second"] {
        let (start, log) = (Instant::now(), cluster.scratch().path().join(which));
        let mut process = Process::start("memgate audit", &command, &log)?;
        let mut peak = 0;
        let status = loop {
            peak = process.peak_memory().unwrap_or_default().max(peak);
            match process.exited()? {
                Some(status) => break status,
                None => std::thread::sleep(POLL),
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        println!("the {which} audit: {seconds:.1} s, peak {} MiB\n{}", peak >> 10, process.log());
        ensure!(status.success(), "it failed: {status}");
        ensure!(peak <= PEAK_KIB, "too much memory");
        ensure!(which == "first" || seconds <= SECONDS, "an audit takes too long");
    }
    Ok(())
}

/// Half of them memories, half agents that claim them.
fn fill(cluster: &ControlPlane, objects: u32, failing: u32) -> Result<()> {
    let mut namespaces = Vec::new();
    for _ in 0..20 {
        namespaces.push(cluster.fresh_namespace("team")?);
    }
    let every = objects.checked_div(failing).unwrap_or(u32::MAX).max(1);
    let object = |number: u32| {
        let is_agent = number % 2 == 1;
        let mut object = if is_agent {
            agent(&format!("agent-{number}"), &format!("notes-{}", number - 1))
        } else {
            let redis =
                json!({"backend": "redis", "redis": {"secretRef": {"name": "redis"}, "ttlSeconds": 3600}});
            memory_of(&format!("notes-{number}"), &redis)
        };
        let team = if number.is_multiple_of(every) {
            json!({})
        } else {
            json!({"team": "a", "app.kubernetes.io/name": "notes"})
        };
        object["metadata"]["labels"] = team;
        object
    };
    let namespace = |number: u32| namespaces[number as usize / 2 % namespaces.len()].as_str();
    create_all(cluster, (0..objects).map(|number| (namespace(number), object(number))))
}

/// Seven rules; only the first one is broken by some.
fn policy(index: u32) -> Value {
    json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy",
        "metadata": {"name": format!("policy-{index}")},
        "spec": {"rules": [
            {"id": "team", "labels": {"required": ["team"]}},
            {"id": "durable", "backends": {"durable": true}},
            {"id": "secret", "secrets": {"inline": "forbid", "required": true}, "when": {"backends": ["redis"]}},
            {"id": "expiry", "retention": {"min": "1m", "max": "30d"}},
            {"id": "bounded", "capacity": {"maxEntries": {"max": 1000, "zero": "allow"}}},
            {"id": "found", "references": {"mustExist": ["ArkMemory"], "crossNamespace": "forbid"}},
            {"id": "names", "tenancy": {"from": {"namespace": true}, "collection": "{tenant}-*"}},
        ]},
    })
}
