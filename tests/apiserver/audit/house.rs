//! A cluster with the rights of audits and memgate's definitions, audits of it, and what they wrote there.

use std::{collections::BTreeMap, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, stream};
use kube::{Client, core::Request};
use serde_json::{Value, json};

use crate::{
    installed::{MEMGATE, install_crds, memgate},
    support::{control_plane::ControlPlane, wait},
};

/// How long the control plane may take for what it does itself.
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
        let kubeconfig = cluster.service_account_kubeconfig(&home, "memgate-audit")?;
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

    /// Audits. Returns what the command says.
    pub(super) fn audit(&self) -> Result<String> {
        let (code, said) = self.audit_with_code()?;
        ensure!(code == Some(0), "it ends with {code:?}: {said}");
        Ok(said)
    }

    /// Audits. Returns its exit code and what it says.
    pub(super) fn audit_with_code(&self) -> Result<(Option<i32>, String)> {
        let mut command = Command::new(MEMGATE);
        command.args(["audit", "--write", "--kubeconfig"]).arg(&self.kubeconfig).env_clear();
        let output = command.current_dir(self.cluster.scratch().path()).output()?;
        ensure!(output.stdout.is_empty(), "it prints {}", String::from_utf8_lossy(&output.stdout));
        Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    /// Waits until a namespace has so many pods.
    pub(super) fn until_pods(&self, namespace: &str, count: usize) -> Result<()> {
        wait::until_within(PATIENCE, "pods", || {
            let pods = self.kubectl(&["-n", namespace, "get", "pods", "-o", "name"])?;
            Ok((pods.lines().count() == count).then_some(()))
        })
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

    /// Audits, and then there are so many reports.
    pub(super) fn audited(&self, count: usize) -> Result<BTreeMap<String, Value>> {
        self.audit()?;
        let reports = self.reports("reports.openreports.io")?;
        ensure!(reports.len() == count, "{} reports", reports.len());
        Ok(reports)
    }

    /// An object.
    pub(super) fn get(&self, what: &[&str]) -> Result<Value> {
        Ok(serde_json::from_str(&self.kubectl(&[&["get", "-o", "json"], what].concat())?)?)
    }
}

async fn create(client: Client, path: String, object: Value) -> Result<()> {
    let body = serde_json::to_vec(&object)?;
    let request = Request::new(path).create(&kube::api::PostParams::default(), body)?;
    client.request::<Value>(request).await?;
    Ok(())
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
