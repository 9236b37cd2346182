//! Audits of very many stored objects, as fast as one replica can: how long a pass takes, and in how much memory.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    installed::{MEMGATE, install_crds, memgate},
    many::create_all,
    runs::Parameters,
    samples::{agent, memory_of},
    support::{
        control_plane::ControlPlane,
        wait,
        webhook::{Serve, Webhook},
    },
};

/// How long the first pass may take, which writes all reports.
const PATIENCE: Duration = Duration::from_mins(10);

/// The goals.
const PASS_SECONDS: f64 = 60.0;
const PEAK_KIB: u64 = 256 << 10;

const REPORTS: &str = include_str!("../../../tests/apiserver/audit/reports.yaml");

pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let cluster = ControlPlane::start()?;
    install_crds(&cluster)?;
    cluster.admin().apply(REPORTS)?;
    let home = cluster.fresh_namespace("memgate")?;
    let rights = memgate(&["manifests", "-n", &home, "--name", "memgate", "--only", "rbac"])?;
    cluster.admin().apply(&rights)?;
    let kubeconfig = cluster.service_account_kubeconfig(&home, "memgate")?;
    let (objects, failing) = (parameters.number("objects")?, parameters.number("failing")?);
    fill(&cluster, objects, failing)?;
    for index in 0..parameters.number("policies")? {
        cluster.admin().apply(&policy(index).to_string())?;
    }
    let program = parameters.text_or("memgate", MEMGATE)?;
    let own = ["--namespace", home.as_str(), "--audit-interval", "5s"];
    let serve = Serve::new(program).kubeconfig(&kubeconfig).settings("auditRate: 0");
    let serve = own.into_iter().fold(serve, Serve::arg);
    let mut replica = serve.ready()?;
    let at_start = replica.process().peak_memory().context("memgate has ended")?;
    let first = pass(&replica, 1.0)?;
    let computed = replica.process().cpu_time().context("memgate has ended")?;
    let second = pass(&replica, 3.0)?;
    let peak = replica.process().peak_memory().context("memgate has ended")?;
    let after = replica.process().cpu_time().context("memgate has ended")?;
    println!(
        "first pass {first:.1} s, a later one {second:.1} s ({:.1?} of CPU for two and what is between them); peak {} MiB, {} MiB of them before the first",
        after.saturating_sub(computed),
        peak >> 10,
        at_start >> 10,
    );
    let violations =
        replica.metric("memgate_audit_reports")? + replica.metric("memgate_audit_reports_left_out")?;
    println!("{violations} objects of {} violate a policy", replica.metric("memgate_audit_subjects")?);
    ensure!(second <= PASS_SECONDS, "a pass takes too long");
    ensure!(peak <= PEAK_KIB, "too much memory");
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

/// Waits until so many passes are done; how long the last one took.
fn pass(replica: &Webhook, count: f64) -> Result<f64> {
    wait::until_within(PATIENCE, "a pass", || {
        let done = replica.metric("memgate_audit_passes_total{result=\"ok\"}")?;
        Ok((done >= count).then_some(()))
    })?;
    replica.metric("memgate_audit_last_pass_seconds")
}
