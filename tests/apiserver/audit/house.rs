//! A cluster with memgate's rights and definitions, replicas that audit it, and what they wrote there.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, stream};
use kube::{Client, core::Request};
use serde_json::{Value, json};

use crate::{
    installed::{MEMGATE, install_crds, memgate},
    support::{
        control_plane::ControlPlane,
        wait,
        webhook::{Serve, Webhook},
    },
};

/// How long a pass may take until what it writes is there, on a machine on which other trials run.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);

/// How many requests are sent at once to fill a cluster.
const AT_ONCE: usize = 32;

const REPORTS: &str = include_str!("reports.yaml");

/// A cluster to audit.
pub(super) struct House {
    /// memgate's own namespace.
    pub(super) home: String,
    kubeconfig: PathBuf,
    pub(super) cluster: ControlPlane,
}

impl House {
    /// With the definitions of policies and of all families, without those of reports.
    pub(super) fn new() -> Result<Self> {
        let cluster = ControlPlane::start()?;
        install_crds(&cluster)?;
        let home = cluster.fresh_namespace("memgate")?;
        let rights = memgate(&["manifests", "-n", &home, "--name", "memgate", "--only", "rbac"])?;
        cluster.admin().apply(&rights)?;
        let kubeconfig = cluster.service_account_kubeconfig(&home, "memgate")?;
        Ok(Self { home, kubeconfig, cluster })
    }

    /// The same with the definitions of reports.
    pub(super) fn with_reports() -> Result<Self> {
        let house = Self::new()?;
        house.install_reports()?;
        Ok(house)
    }

    pub(super) fn install_reports(&self) -> Result<()> {
        let kubectl = self.cluster.admin();
        kubectl.apply(REPORTS)?;
        kubectl.run(&["wait", "--for=condition=Established", "crd", "--all"])?.ok()?;
        Ok(())
    }

    /// A replica that audits every few seconds, as fast as it can.
    pub(super) fn replica(&self, args: &[&str]) -> Result<Webhook> {
        self.replica_with("auditRate: 0", args)
    }

    /// The same with other settings.
    pub(super) fn replica_with(&self, settings: &str, args: &[&str]) -> Result<Webhook> {
        let serve = Serve::new(MEMGATE).kubeconfig(&self.kubeconfig).settings(settings);
        let own = ["--namespace", self.home.as_str(), "--audit-interval", "4s"];
        own.iter().chain(args).fold(serve, Serve::arg).ready()
    }

    pub(super) fn apply(&self, object: &Value) -> Result<()> {
        self.cluster.admin().apply(&object.to_string())?;
        Ok(())
    }

    pub(super) fn kubectl(&self, args: &[&str]) -> Result<String> {
        Ok(self.cluster.kubectl(args)?.ok()?.stdout)
    }

    /// Creates many objects below a path.
    pub(super) fn fill(&self, objects: Vec<(String, Value)>) -> Result<()> {
        let client = self.cluster.client();
        let create = |(path, object): (String, Value)| create(client.clone(), path, object);
        self.cluster.block_on(async {
            let created: Vec<_> = stream::iter(objects).map(create).buffer_unordered(AT_ONCE).collect().await;
            created.into_iter().collect::<Result<()>>()
        })
    }

    /// All reports, or all of ClusterReports, by the name of what they are about.
    pub(super) fn reports(&self, plural: &str) -> Result<BTreeMap<String, Value>> {
        let text = self.kubectl(&["get", plural, "-A", "-o", "json"])?;
        let list: Value = serde_json::from_str(&text)?;
        let of = |report: &Value| Some((report["scope"]["name"].as_str()?.to_owned(), report.clone()));
        list["items"].as_array().context("no list")?.iter().map(|it| of(it).context("no scope")).collect()
    }

    /// Waits until there are so many reports.
    pub(super) fn until_reports(&self, count: usize) -> Result<BTreeMap<String, Value>> {
        wait::until_within(PATIENCE, &format!("{count} reports"), || {
            let reports = self.reports("reports.openreports.io")?;
            Ok((reports.len() == count).then_some(reports))
        })
    }

    /// Waits until an object says so.
    pub(super) fn until(&self, what: &[&str], says: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = Value::Null;
        let asked = wait::until_within(PATIENCE, &format!("{what:?}"), || {
            last = serde_json::from_str(&self.kubectl(&[&["get", "-o", "json"], what].concat())?)?;
            Ok(says(&last).then(|| last.clone()))
        });
        asked.with_context(|| format!("it is {last:#}"))
    }
}

async fn create(client: Client, path: String, object: Value) -> Result<()> {
    let body = serde_json::to_vec(&object)?;
    let request = Request::new(path).create(&kube::api::PostParams::default(), body)?;
    client.request::<Value>(request).await?;
    Ok(())
}

/// How many passes a replica has done.
pub(super) fn passes(replica: &Webhook) -> Result<f64> {
    metric(replica, "memgate_audit_passes_total{result=\"ok\"}")
}

/// Whether it is the replica that audits.
pub(super) fn is_leading(replica: &Webhook) -> Result<bool> {
    Ok(metric(replica, "memgate_audit_leading")? > 0.0)
}

pub(super) fn metric(replica: &Webhook, name: &str) -> Result<f64> {
    let (_, metrics) = replica.probe("/metrics").context("memgate has no metrics")?;
    value(&metrics, name)
}

/// The value of a series.
pub(super) fn value(metrics: &str, name: &str) -> Result<f64> {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("no {name}"))?.parse()?)
}

/// Waits until it has done two more passes: the second one began when the first was over.
pub(super) fn pass_twice(replica: &Webhook) -> Result<()> {
    let before = passes(replica)?;
    wait::until_within(PATIENCE, "two passes", || Ok((passes(replica)? >= before + 2.0).then_some(())))
}

/// A policy with one rule; what a status says of it comes beside its specification.
pub(super) fn policy(name: &str, more: &Value, rules: &Value) -> Value {
    let mut spec = json!({"rules": rules});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy", "metadata": {"name": name},
        "spec": spec,
    })
}

/// The rule that memory outlives its process.
pub(super) fn durable() -> Value {
    json!([{"id": "durable", "backends": {"durable": true}, "severity": "high"}])
}

/// ArkMemories of a namespace, each durable or not.
pub(super) fn memories(namespace: &str, names: impl Iterator<Item = (String, bool)>) -> Vec<(String, Value)> {
    let path = format!("/apis/arkonis.dev/v1alpha1/namespaces/{namespace}/arkmemories");
    let object = |(name, is_durable): (String, bool)| {
        let spec = if is_durable {
            json!({"backend": "redis", "redis": {"secretRef": {"name": "redis"}}})
        } else {
            json!({"backend": "in-context"})
        };
        let object = json!({
            "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        });
        (path.clone(), object)
    };
    names.map(object).collect()
}

/// The resourceVersion of each.
pub(super) fn versions(reports: &BTreeMap<String, Value>) -> BTreeMap<&str, &Value> {
    reports.iter().map(|(name, report)| (name.as_str(), &report["metadata"]["resourceVersion"])).collect()
}

/// A condition of a status.
pub(super) fn condition<'s>(object: &'s Value, type_name: &str) -> &'s Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.and_then(|all| all.iter().find(|it| it["type"] == type_name)).unwrap_or(&Value::Null)
}

/// That two values are the same.
pub(super) fn same(found: &Value, expected: &Value) -> Result<()> {
    ensure!(found == expected, "{found:#}\nis not\n{expected:#}");
    Ok(())
}
