//! That what `memgate manifests` and `memgate crds` print is what a cluster needs, and no less.

use std::{process::Command, sync::Arc};

use anyhow::{Context, Result, ensure};
use memgate::manifest::{document::parse, source::Source};
use serde_json::Value;

use crate::{
    support::{control_plane::ControlPlane, wait, webhook::Serve},
    world::{Case, World},
};

const MEMGATE: &str = env!("CARGO_BIN_EXE_memgate");

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("manifests::are_accepted", are_accepted),
        Case::new("manifests::let_memgate_serve", let_memgate_serve),
    ]
}

fn are_accepted(world: &World) -> Result<()> {
    let cluster = world.cluster()?;
    let strict = [("pod-security.kubernetes.io/warn", "restricted")];
    let namespace = cluster.labelled_namespace("installed", &strict)?;
    let parts = ["--only", "rbac", "--only", "workload", "--only", "webhooks"];
    for text in [
        memgate(&["manifests", "-n", "not-there-yet", "--only", "namespace"])?,
        memgate(&[&["manifests", "-n", &namespace], &parts[..]].concat())?,
    ] {
        // Not for good: other trials would be asked to wait for a memgate that does not run.
        let apply = ["apply", "--dry-run=server", "-f", "-"];
        let output = cluster.admin().run_with_input(&apply, &text)?.ok()?;
        ensure!(output.stderr.is_empty(), "the apiserver warns: {}", output.stderr);
    }
    Ok(())
}

/// memgate runs as its own service account, with its own role and nothing else.
fn let_memgate_serve(world: &World) -> Result<()> {
    let cluster = world.cluster()?;
    let home = cluster.fresh_namespace("memgate")?;
    let namespace = cluster.fresh_namespace("agents")?;
    let kubectl = cluster.admin();
    kubectl.apply(&memgate(&["crds"])?)?;
    kubectl.run(&["wait", "--for=condition=Established", "crd", "--all"])?.ok()?;
    kubectl.apply(&memgate(&["manifests", "-n", &home, "--only", "rbac"])?)?;
    let kubeconfig = cluster.service_account_kubeconfig(&home, "memgate")?;
    let webhook = Serve::new(MEMGATE).kubeconfig(&kubeconfig).ready()?;

    for mut configuration in documents(&memgate(&["manifests", "-n", &home, "--only", "webhooks"])?) {
        webhook.endpoint().adopt(&mut configuration, &namespace)?;
        kubectl.apply(&configuration.to_string())?;
    }
    let apply = |text: &str| kubectl.run_with_input(&["apply", "-n", &namespace, "-f", "-"], text);
    let refusal = wait::until("a bad ArkMemory to be refused", || {
        let output = apply(BAD)?;
        Ok((!output.status.success()).then_some(output.stderr))
    })?;
    ensure!(refusal.contains("spec.redis is required when backend is"), "{refusal}");

    apply(GOOD)?.ok()?;
    let names = env_names(cluster, &namespace)?;
    ensure!(names.starts_with("AGENT_MEMORY_BACKEND AGENT_MEMORY_REDIS_URL"), "{names}\n{}", webhook.log());
    Ok(())
}

fn env_names(cluster: &ControlPlane, namespace: &str) -> Result<String> {
    let path = "--output=jsonpath={.spec.containers[0].env[*].name}";
    Ok(cluster.kubectl(&["get", "pod", "scout", "-n", namespace, path])?.ok()?.stdout)
}

fn memgate(args: &[&str]) -> Result<String> {
    let output = Command::new(MEMGATE).args(args).env_clear().output().context("memgate does not start")?;
    ensure!(output.status.success(), "memgate {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).context("memgate prints no text")
}

fn documents(text: &str) -> Vec<Value> {
    let parsed = parse(&Arc::new(Source::new("memgate manifests", text)));
    parsed.documents.iter().map(|document| document.value().clone()).collect()
}

const BAD: &str = "\
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: bad}
spec: {backend: redis}
";

/// Memory, agent and pod at once, as users apply them.
const GOOD: &str = "\
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes}
spec: {backend: redis, redis: {secretRef: {name: notes-redis}}}
---
apiVersion: arkonis.dev/v1alpha1
kind: ArkAgent
metadata: {name: scout}
spec: {model: llama3.2, systemPrompt: You scout for facts., memoryRef: {name: notes}}
---
apiVersion: v1
kind: Pod
metadata: {name: scout, labels: {arkonis.dev/deployment: scout}}
spec:
  automountServiceAccountToken: false
  containers: [{name: agent, image: agent}]
";
