//! What memgate says where an API server of ark's own serves ark's kinds. On a cluster of its own: others need
//! the CRDs.

use std::{
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::{MEMGATE, install_account, register, wait_until_asked_about_pods},
    support::{control_plane::ControlPlane, wait, webhook::Serve},
};

/// The name of the APIService.
const API_SERVICE: &str = "v1alpha1.ark.mckinsey.com";

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::new("aggregated::is_said_at_the_start_by_doctor_and_by_wait", said)]
}

fn said(_: &Fixture) -> Result<()> {
    let cluster = ControlPlane::start()?;
    let namespace = cluster.fresh_namespace("agents")?;
    let account = install_account(&cluster)?;
    let memgate = Serve::new(MEMGATE).kubeconfig(&account).ready()?;
    let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]});
    register(&cluster, &memgate.endpoint(), "memgate", &only)?;
    wait_until_asked_about_pods(&cluster, &namespace)?;
    ensure!(!memgate.log().contains(API_SERVICE), "{}", memgate.log());

    cluster.admin().apply(&leading_nowhere().to_string())?;
    let admin = cluster.admin_kubeconfig();
    let waited = run(admin, &["wait", "-n", &namespace, "--family", "ark", "--timeout", "90s"])?;
    let text = String::from_utf8_lossy(&waited.stdout);
    let line = format!(
        "ark memories.ark.mckinsey.com: not asked: an API server of the platform serves it \
         (APIService {API_SERVICE}) and may not call webhooks\n"
    );
    ensure!(waited.status.code() == Some(0) && text.starts_with("pods: answered by "), "{waited:?}");
    ensure!(text.ends_with(&line), "{waited:?}");

    let checks = doctor(&cluster, &namespace)?;
    let subject = "ark memories.ark.mckinsey.com";
    let found = checks.iter().find(|check| check["subject"] == subject).context("nothing is said")?;
    let help = found["help"].as_str().unwrap_or_default();
    ensure!(found["status"] == "warn" && help.contains("policy.thirdPartyWebhooks.enabled"), "{found}");

    // Who may not see whether there is such a server sends nothing to it.
    let user = cluster.user_kubeconfig("makes-pods", &[])?;
    let role = ["create", "role", "makes-pods", "--verb=create", "--resource=pods", "-n", &namespace];
    cluster.kubectl(&role)?.ok()?;
    let binding = ["create", "rolebinding", "makes-pods", "--role=makes-pods", "--user=makes-pods"];
    cluster.kubectl(&[&binding[..], &["-n", &namespace]].concat())?.ok()?;
    let waited = run(&user, &["wait", "-n", &namespace, "--family", "ark", "--timeout", "90s"])?;
    let unknown = format!("not asked: you may not get the APIService {API_SERVICE}");
    let text = String::from_utf8_lossy(&waited.stdout);
    ensure!(waited.status.code() == Some(0) && text.contains(&unknown), "{waited:?}");

    // memgate's account may read this one.
    let later = Serve::new(MEMGATE).kubeconfig(&account).live()?;
    wait::until("the line at the start", || Ok(later.log().contains(API_SERVICE).then_some(())))?;
    ensure!(later.log().matches(API_SERVICE).count() == 1, "{}", later.log());
    let without = Serve::new(MEMGATE).kubeconfig(&account).arg("--family").arg("orloj").ready()?;
    ensure!(!without.log().contains(API_SERVICE), "{}", without.log());
    Ok(())
}

/// An APIService as the chart of ark's API server has it, of a Service that does not exist.
fn leading_nowhere() -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": API_SERVICE},
        "spec": {
            "group": "ark.mckinsey.com", "version": "v1alpha1",
            "service": {"name": "ark-apiserver", "namespace": "ark-system"},
            "insecureSkipTLSVerify": true, "groupPriorityMinimum": 1000, "versionPriority": 15,
        },
    })
}

fn doctor(cluster: &ControlPlane, namespace: &str) -> Result<Vec<Value>> {
    let args = ["doctor", "-o", "json", "--dry-run-namespace", namespace];
    let output = run(cluster.admin_kubeconfig(), &args)?;
    let mut result: Value = serde_json::from_slice(&output.stdout).with_context(|| format!("{output:?}"))?;
    let checks = result["checks"].as_array_mut().map(std::mem::take);
    checks.with_context(|| format!("{output:?}"))
}

fn run(kubeconfig: &Path, args: &[&str]) -> Result<Output> {
    let mut command = Command::new(MEMGATE);
    command.args(args).arg("--kubeconfig").arg(kubeconfig).env_clear();
    command.output().context("memgate does not start")
}
