//! What `memgate status` says of a cluster: an outage, pods without memory by their owner, refusals of pods that a
//! controller makes, and rights that are missing. `tests/operate` has what the logs of replicas tell.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    doctor::DoctorTarget,
    fixture::{Fixture, Trial},
    installed::MEMGATE,
    request::create,
    samples::{agent, memory, owned_pod, pod, pod_spec},
    support::wait,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("status::begins_with_an_outage", outage),
        Trial::new("status::names_the_owners_of_pods_without_memory", owners),
        Trial::new("status::names_a_pause_as_the_cause", paused),
        Trial::new("status::counts_what_controllers_were_refused", refused),
        Trial::new("status::names_the_rights_that_are_missing", rights),
    ]
}

/// What it prints, and its exit code.
fn run(kubeconfig: &Path, args: &[&str]) -> Result<(String, Option<i32>)> {
    let mut command = Command::new(MEMGATE);
    command.arg("status").arg("--kubeconfig").arg(kubeconfig).args(args).env_clear();
    let output = command.output().context("memgate does not start")?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(!text.is_empty(), "it prints nothing: {}", String::from_utf8_lossy(&output.stderr));
    Ok((text, output.status.code()))
}

fn json(kubeconfig: &Path, args: &[&str]) -> Result<Value> {
    let (text, _) = run(kubeconfig, &[args, &["-o", "json"]].concat())?;
    Ok(serde_json::from_str(&text)?)
}

fn list<'s>(status: &'s Value, key: &str) -> impl Iterator<Item = &'s Value> {
    status[key].as_array().into_iter().flatten()
}

/// No kubelet runs what the Deployment asks for.
fn outage(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let target = DoctorTarget::new(cluster)?;
    let names = ["-n", &target.namespace, "--webhook-configuration", &target.namespace];
    let cause = format!("  Deployment {}/memgate: 0 of 2 replicas are available", target.namespace);
    // The Deployment counts its replicas a moment after it is made.
    let (text, code) = wait::until("an outage to be told", || {
        let (text, code) = run(cluster.admin_kubeconfig(), &names)?;
        Ok(text.contains(&cause).then_some((text, code)))
    })?;
    let lines: Vec<&str> = text.lines().collect();
    ensure!(code == Some(1) && lines.len() <= 60, "exit code {code:?}, {} lines: {text}", lines.len());
    ensure!(lines.starts_with(&["memgate does not answer", &cause]), "{text}");
    ensure!(text.contains("`memgate pause -n NAMESPACE --for 1h --reason TEXT`"), "{text}");
    Ok(())
}

/// Pods that were created without a call to memgate, after their memory.
fn owners(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let exempt = fixture.memgate()?.exempt_client();
    let namespace = fixture.namespace("forgotten", &[])?;
    for object in [memory("notes"), agent("scout", "notes"), owned_pod("scout-0"), owned_pod("scout-1")] {
        cluster.block_on(create(&exempt, &namespace, &object, ""))?.object()?;
    }
    let status = json(cluster.admin_kubeconfig(), &["-n", "memgate", "--webhook-configuration", "memgate"])?;
    let here: Vec<&Value> =
        list(&status, "podsWithoutMemory").filter(|owner| owner["namespace"] == namespace.as_str()).collect();
    let expected = json!({
        "namespace": namespace, "owner": "Deployment/scout", "pods": 2, "cause": "memgate did not answer",
        "restart": format!("kubectl -n {namespace} rollout restart deployment/scout"),
        "help": format!("kubectl -n {namespace} rollout restart deployment/scout"),
    });
    ensure!(here == [&expected], "{here:?}");
    Ok(())
}

/// A pod that was created while memgate is paused in its namespace, and has no controller.
fn paused(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let namespace = fixture.namespace("lifted", &[])?;
    let client = cluster.client();
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&client, &namespace, &object, ""))?.object()?;
    }
    let administrator = cluster.admin_kubeconfig();
    let memgate = |args: &[&str]| -> Result<String> {
        let mut command = Command::new(MEMGATE);
        command.args(args).arg("--kubeconfig").arg(administrator).env_clear();
        let output = command.output()?;
        ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    memgate(&["pause", "-n", &namespace, "--for", "1h", "--reason", "INC-123"])?;
    // Bindings reach the authorizer by a watch.
    wait::until("a pod without its memory", || {
        let made =
            cluster.block_on(create(&client, &namespace, &pod("scout", "scout", &[]), "?dryRun=All"))?;
        Ok(made.object()?["metadata"]["annotations"]["memgate.dev/injected"].is_null().then_some(()))
    })?;
    cluster.block_on(create(&client, &namespace, &pod("scout", "scout", &[]), ""))?.object()?;
    let status = json(administrator, &["-n", "memgate", "--webhook-configuration", "memgate"])?;
    let owner = list(&status, "podsWithoutMemory").find(|owner| owner["namespace"] == namespace.as_str());
    let owner = owner.context("an owner")?;
    let cause = owner["cause"].as_str().unwrap_or_default();
    ensure!(cause.starts_with("memgate is paused here since 20"), "{owner}");
    ensure!(owner["owner"] == "Pod/scout" && owner["restart"].is_null(), "{owner}");
    let help = owner["help"].as_str().unwrap_or_default();
    ensure!(help.starts_with("when the pause has ended: make the Pod anew from its manifest: "), "{owner}");
    let explained = memgate(&["explain-pod", &format!("{namespace}/scout")])?;
    ensure!(explained.contains(cause), "{explained}");
    memgate(&["pause", "end", "-n", &namespace])?;
    Ok(())
}

/// A Deployment whose pods require a memory that they do not have: its controller writes Events.
fn refused(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("refusing", &[])?;
    let labels = json!({"app": "shop", "memgate.dev/inject": "required"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "shop"}},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
        },
    });
    cluster.admin().apply(&deployment.to_string())?;
    let found = wait::until("a refusal to be told", || {
        let status = json(cluster.admin_kubeconfig(), &["-n", "memgate"])?;
        Ok(list(&status, "refused").find(|refused| refused["namespace"] == namespace.as_str()).cloned())
    })?;
    ensure!(found["code"] == "memgate/pod-not-recognised", "{found}");
    ensure!(found["count"].as_u64().is_some_and(|count| count > 0), "{found}");
    cluster.kubectl(&["delete", "deployment", "shop", "-n", &namespace])?.ok()?;
    Ok(())
}

/// Each section says what its reader lacks, and nothing fails.
fn rights(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let kubeconfig = cluster.user_kubeconfig("may-see-no-status", &[])?;
    let status = json(&kubeconfig, &[])?;
    for (section, right) in [
        ("replicas", "you may not get deployments: this right is needed"),
        ("paused", "you may not list rolebindings: this right is needed"),
        ("podsWithoutMemory", "you may not list pods: this right is needed"),
        ("refused", "you may not list events: this right is needed"),
    ] {
        let told = list(&status["unknown"], section);
        ensure!(told.into_iter().any(|why| why == right), "{section}: {status:#}");
    }
    let (text, code) = run(&kubeconfig, &[])?;
    ensure!(code == Some(0) && text.starts_with("Whether memgate answers is not known\n"), "{text}");
    ensure!(text.contains("\nWithout memory: not known\n") && text.lines().count() <= 60, "{text}");
    Ok(())
}
