//! The ways out for users whom a policy locks out. Each is tried alone, without the others before it.

use anyhow::{Context, Result, bail};

use crate::cluster::Cluster;
use crate::document::{Section, commands};
use crate::support::wait;

/// A policy whose day has come.
const POLICY: &str = r#"
apiVersion: policy.memgate.dev/v1alpha1
kind: MemoryPolicy
metadata: {name: baseline}
spec:
  match: {namespaces: [team-a]}
  promote: {at: "2026-01-15T00:00:00Z", to: deny}
  exemptions: {namespaces: [platform-exemptions], maxAge: 1d}
  rules:
    - {id: durable, backends: {durable: true}}
"#;

/// What it denies.
const MEMORY: &str = "
apiVersion: arkonis.dev/v1alpha1
kind: ArkMemory
metadata: {name: notes, namespace: team-a}
spec: {backend: in-context}
";

/// What is denied where a namespace is strict and memgate is away.
const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: scout, namespace: team-a, labels: {arkonis.dev/deployment: scout}}
spec: {automountServiceAccountToken: false, containers: [{name: agent, image: example.org/none}]}
";

/// How people are locked out.
#[derive(Clone, Copy, Debug)]
enum Lock {
    ByPolicy,
    ByStrictness,
}

/// What each block of the section helps against, in order.
const LOCKS: [Lock; 6] =
    [Lock::ByPolicy, Lock::ByPolicy, Lock::ByPolicy, Lock::ByPolicy, Lock::ByPolicy, Lock::ByStrictness];

/// Every way out, each behind closed doors.
pub(crate) fn run(cluster: &Cluster, section: &Section) -> Result<()> {
    if section.blocks.len() != LOCKS.len() {
        bail!(
            "there are {} ways out, of which tests/operate/lockout.rs knows {}",
            section.blocks.len(),
            LOCKS.len()
        );
    }
    cluster.sh("kubectl create namespace team-a; kubectl create namespace platform-exemptions")?;
    for (block, lock) in section.blocks.iter().zip(LOCKS) {
        close(cluster, lock)?;
        for (command, _) in commands(block) {
            eprintln!("$ {command}");
            cluster.sh(&command)?.ok().with_context(|| command.clone())?;
        }
        let open =
            wait::until("a request to be allowed", || Ok(refusal(cluster, lock)?.is_none().then_some(())));
        open.with_context(|| block.clone())?;
    }
    cluster.sh("kubectl delete namespace team-a platform-exemptions --wait=false")?.ok()?;
    Ok(())
}

/// Locks people out, whatever let them through before.
fn close(cluster: &Cluster, lock: Lock) -> Result<()> {
    cluster.sh("kubectl delete memorypolicyexemptions --all -n platform-exemptions")?.ok()?;
    let (script, words) = match lock {
        Lock::ByPolicy => (
            format!(
                "memgate manifests --only workload --image registry.example.com/memgate:0.1.0 | kubectl apply -f -\nkubectl replace --force -f - <<'EOF'{POLICY}EOF"
            ),
            "(memgate policy baseline/durable)",
        ),
        Lock::ByStrictness => (
            "kubectl label namespace team-a memgate.dev/policy=strict\n\
             kubectl scale deployment memgate -n memgate-system --replicas=0"
                .to_owned(),
            "failed calling webhook \"strict.arkonis.pods.memgate.dev\"",
        ),
    };
    cluster.sh(&script)?.ok()?;
    wait::until(words, || {
        let refusal = refusal(cluster, lock)?;
        Ok(refusal.is_some_and(|refusal| refusal.contains(words)).then_some(()))
    })
}

/// The words of a refusal, if what is locked out is refused.
fn refusal(cluster: &Cluster, lock: Lock) -> Result<Option<String>> {
    let object = match lock {
        Lock::ByPolicy => MEMORY,
        Lock::ByStrictness => POD,
    };
    let output = cluster.sh(&format!("kubectl create --dry-run=server -f - <<'EOF'{object}EOF"))?;
    Ok((!output.status.success()).then_some(output.stderr))
}
