//! Changing the way of installing on a running cluster: with another way nothing changes but the labels of Helm, and who
//! conflicts over a field.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::{
    fixture::{Fixture, Trial},
    installed::memgate,
    support::{control_plane::ControlPlane, tools},
};

const KUSTOMIZE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/kustomize/default");

/// The image that is named there.
const IMAGE: [&str; 3] =
    ["manifests", "--image", concat!("ghcr.io/memgate/memgate:", env!("CARGO_PKG_VERSION"))];

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::new("deploy::another_way_changes_nothing", changes_nothing)]
}

fn changes_nothing(_: &Fixture) -> Result<()> {
    let cluster = &ControlPlane::start()?;
    let apply =
        |flags: &[&str], text: &str| cluster.admin().run_with_input(&[&["apply"], flags].concat(), text);
    let manifests = memgate(&IMAGE)?;
    apply(&["-f", "-"], &manifests)?.ok()?;
    let generations = || -> Result<String> {
        let kinds =
            "deployments,poddisruptionbudgets,mutatingwebhookconfigurations,validatingwebhookconfigurations";
        let columns = "-o=jsonpath={range .items[*]}{.kind} {.metadata.generation}\n{end}";
        Ok(cluster.kubectl(&["get", kinds, "-n", "memgate-system", columns])?.ok()?.stdout)
    };
    let before = generations()?;
    let (same, server_side) = (["-k", KUSTOMIZE], ["--server-side", "-k", KUSTOMIZE]);
    apply(&same, "")?.ok()?;
    ensure!(generations()? == before, "kustomize changes: {before}");
    let tool = [&server_side[..], &["--field-manager=argocd-controller"]].concat();
    apply(&tool, "")?.ok()?;
    apply(&server_side, "")?.ok()?;
    ensure!(generations()? == before, "server-side apply changes: {before}");

    // Another value of a field is a conflict for the tool, but not for kubectl.
    let other = memgate(&[&IMAGE[..], &["--component", "ha"]].concat())?;
    apply(&["-f", "-"], &other)?.ok()?;
    let refusal = apply(&tool, "")?.refusal()?;
    ensure!(refusal.contains("conflict with \"kubectl"), "{refusal}");
    apply(&[&tool[..], &["--force-conflicts"]].concat(), "")?.ok()?;

    let configurations =
        || Ok::<_, anyhow::Error>(generations()?.lines().skip(2).collect::<Vec<_>>().join("\n"));
    let before = configurations()?;
    let helm = |flags: &[&str]| -> Result<String> {
        let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/memgate");
        let mut command = Command::new(tools::helm()?);
        command.args(["upgrade", "--install", "memgate", chart, "--namespace", "memgate-system"]);
        command.args(["--set", "image.repository=ghcr.io/memgate/memgate"]).args(flags);
        command.arg("--kubeconfig").arg(cluster.admin_kubeconfig());
        let output = command.env_clear().env("HOME", cluster.scratch().path()).output()?;
        Ok(if output.status.success() {
            String::new()
        } else {
            String::from_utf8_lossy(&output.stderr).into()
        })
    };
    let refusal = helm(&[])?;
    ensure!(refusal.contains("invalid ownership metadata"), "{refusal}");
    let refusal = helm(&["--take-ownership"])?;
    ensure!(refusal.is_empty(), "{refusal}");
    ensure!(configurations()? == before, "Helm changes: {before}");
    Ok(())
}
