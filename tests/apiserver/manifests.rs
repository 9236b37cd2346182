//! That what `memgate manifests` and `memgate crds` print is what a cluster needs, and no less.

use anyhow::{Result, ensure};

use crate::{
    fixture::{Fixture, Trial},
    installed::{MANIFESTS, memgate},
    support::control_plane::ControlPlane,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("manifests::are_accepted", are_accepted),
        Trial::new("manifests::let_memgate_serve", let_memgate_serve),
    ]
}

fn are_accepted(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let strict = [("pod-security.kubernetes.io/warn", "restricted")];
    let namespace = cluster.labelled_namespace("installed", &strict)?;
    let parts = ["--only", "rbac", "--only", "workload", "--only", "webhooks"];
    for text in [
        memgate(&["manifests", "-n", "not-there-yet", "--only", "namespace"])?,
        memgate(&[&MANIFESTS[..], &["-n", &namespace], &parts].concat())?,
    ] {
        // Not for good: other trials would be asked to wait for a memgate that does not run.
        let apply = ["apply", "--dry-run=server", "-f", "-"];
        let output = cluster.admin().run_with_input(&apply, &text)?.ok()?;
        ensure!(output.stderr.is_empty(), "the apiserver warns: {}", output.stderr);
    }
    Ok(())
}

/// memgate runs as its own service account, with its own role and nothing else.
fn let_memgate_serve(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let memgate = fixture.memgate()?;
    let namespace = fixture.namespace("agents", &[])?;
    let apply = |text: &str| cluster.admin().apply_in(&namespace, text);
    let refusal = apply(BAD)?.refusal()?;
    ensure!(refusal.contains("spec.redis is required when backend is"), "{refusal}");

    apply(GOOD)?.ok()?;
    let names = env_names(cluster, &namespace)?;
    let log = memgate.webhook.log();
    ensure!(names.starts_with("AGENT_MEMORY_BACKEND AGENT_MEMORY_REDIS_URL"), "{names}\n{log}");
    Ok(())
}

fn env_names(cluster: &ControlPlane, namespace: &str) -> Result<String> {
    let path = "--output=jsonpath={.spec.containers[0].env[*].name}";
    Ok(cluster.kubectl(&["get", "pod", "scout", "-n", namespace, path])?.ok()?.stdout)
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
