//! That `memgate wait` ends when memgate answers, and says what is missing until then.

use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    fixture::{Fixture, Trial},
    installed::{MEMGATE, register},
    support::{
        certs::Authority,
        control_plane::ControlPlane,
        wait,
        webhook::{Endpoint, Serve},
    },
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("wait::ends_when_every_call_is_answered", answered),
        Trial::new("wait::says_what_is_missing", missing),
        Trial::new("wait::waits_for_memgate_to_come", patient),
        Trial::new("wait::says_who_may_not_ask", forbidden),
    ]
}

/// What each of the platforms answers, and pods.
const PROBES: [&str; 11] = [
    "pods",
    "arkonis arkmemories.arkonis.dev",
    "arkonis arkonismemories.arkonis.dev",
    "arkonis swarmmemories.kubeswarm.io",
    "arkonis agentmemories.agentops.agentops.io",
    "ark memories.ark.mckinsey.com",
    "orloj memories.orloj.dev",
    "orka tasks.core.orka.ai",
    "sympozium ensembles.sympozium.ai",
    "kagent agents.kagent.dev",
    "kagent harnesses.api.kagent.dev",
];

fn answered(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("waiting", &[])?;
    let output = run(cluster, &["-n", &namespace, "--timeout", "90s"])?;
    ensure!(output.status.code() == Some(0), "{output:?}");
    let printed = String::from_utf8(output.stdout)?;
    for (line, name) in printed.lines().zip(PROBES) {
        ensure!(line.starts_with(&format!("{name}: answered")), "{line}");
    }
    ensure!(printed.lines().count() == PROBES.len(), "{printed}");

    let text = run(cluster, &["-n", &namespace, "--family", "orloj"])?;
    ensure!(text.status.code() == Some(0), "{text:?}");
    let expected = "pods: answered by required.pods.memgate.dev (memgate/pod-not-recognised)\n\
                    orloj memories.orloj.dev: answered by resources.memgate.dev (orloj/http-endpoint-required)\n";
    ensure!(String::from_utf8_lossy(&text.stdout) == expected, "{text:?}");
    let stored =
        cluster.kubectl(&["get", "pods,memories.orloj.dev", "-n", &namespace, "-o", "name"])?.ok()?;
    ensure!(stored.stdout.is_empty(), "a dry run stored {}", stored.stdout);
    Ok(())
}

/// One thing after the other goes wrong with a registration of its own.
fn missing(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("waiting")?;
    says(cluster, &namespace, "pods: the apiserver does not ask memgate")?;

    let mut webhook = Serve::new(MEMGATE).kubeconfig(&fixture.memgate()?.kubeconfig).ready()?;
    let foreign = Authority::new("another CA")?;
    let address = webhook.addresses().listen;
    registered(cluster, &Endpoint::new(address, &foreign.pem()), &namespace)?;
    says(cluster, &namespace, "x509: certificate signed by unknown authority")?;

    registered(cluster, &webhook.endpoint(), &namespace)?;
    let output = run_here(cluster, &namespace, "90s")?;
    ensure!(output.status.code() == Some(0), "{output:?}");

    webhook.process().kill()?;
    says(cluster, &namespace, "memgate does not answer (required.pods.memgate.dev: ")?;

    cluster.kubectl(&["delete", "mutatingwebhookconfiguration", &namespace])?.ok()?;
    cluster.kubectl(&["delete", "validatingwebhookconfiguration", &namespace])?.ok()?;
    says(cluster, &namespace, "orloj memories.orloj.dev: the apiserver does not ask memgate")
}

/// It is started first, as a Job of an installation may be.
fn patient(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = cluster.fresh_namespace("waiting")?;
    let waiting = command(cluster)
        .args(["-n", &namespace, "--timeout", "90s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let webhook = Serve::new(MEMGATE).kubeconfig(&fixture.memgate()?.kubeconfig).ready()?;
    registered(cluster, &webhook.endpoint(), &namespace)?;
    let output = waiting.wait_with_output()?;
    ensure!(output.status.code() == Some(0), "{output:?}");
    ensure!(String::from_utf8_lossy(&output.stderr).contains("waiting: pods: "), "{output:?}");
    Ok(())
}

fn forbidden(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("waiting", &[])?;
    let kubeconfig = cluster.user_kubeconfig("waits-for-nothing", &[])?;
    let output = memgate_wait(&kubeconfig)
        .args(["-n", &namespace, "--timeout", "1s", "--family", "orloj"])
        .output()
        .context("memgate does not start")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1), "{output:?}");
    ensure!(text.contains("cannot create resource \"pods\""), "{text}");
    ensure!(text.contains("a dry run needs the right to create"), "{text}");
    Ok(())
}

fn registered(cluster: &ControlPlane, endpoint: &Endpoint, namespace: &str) -> Result<()> {
    let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]});
    register(cluster, endpoint, namespace, &only)
}

/// Waits until `memgate wait` gives up with these words: what was applied is not in effect at once.
fn says(cluster: &ControlPlane, namespace: &str, expected: &str) -> Result<()> {
    wait::until(expected, || {
        let output = run_here(cluster, namespace, "1s")?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let gave_up = text.contains("did not answer as it should within 1s");
        Ok((output.status.code() == Some(1) && gave_up && text.contains(expected)).then_some(()))
    })
}

fn run_here(cluster: &ControlPlane, namespace: &str, timeout: &str) -> Result<Output> {
    run(cluster, &["-n", namespace, "--timeout", timeout])
}

fn run(cluster: &ControlPlane, args: &[&str]) -> Result<Output> {
    command(cluster).args(args).output().context("memgate does not start")
}

fn command(cluster: &ControlPlane) -> Command {
    memgate_wait(cluster.admin_kubeconfig())
}

fn memgate_wait(kubeconfig: &std::path::Path) -> Command {
    let mut command = Command::new(MEMGATE);
    command.arg("wait").arg("--kubeconfig").arg(kubeconfig).env_clear();
    command
}
