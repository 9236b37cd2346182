//! Invalid policies and exemptions that were stored while the apiserver did not call memgate. They are not in force,
//! and their status says so.

use anyhow::{Context, Result, ensure};
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use super::{
    asked::{Asked, delete, store},
    object, refusal_of,
};
use crate::{
    fixture::{Fixture, Trial},
    installed::MEMGATE,
    request::create,
    samples::{agent, memory, memory_of, pod},
    support::{
        control_plane::ControlPlane,
        wait,
        webhook::{Serve, Webhook},
    },
};

pub(crate) fn trials() -> Vec<Trial> {
    // Each counts all that is invalid in the cluster.
    vec![
        Trial::alone("policies::that_got_in_invalid_are_not_in_force", policies),
        Trial::alone("policies::exemptions_that_got_in_invalid_exempt_nothing", exemptions),
    ]
}

/// A fault that no schema knows, as what is laid over the specification of a policy, and the words for it.
fn faults() -> [(Value, &'static str); 4] {
    let rule = |rule: Value| json!({"rules": [{"id": "durable", "backends": {"durable": true}}, rule]});
    [
        (rule(json!({"id": "it", "endpoint": {"hosts": ["a.**.example.com"]}})), "fits no host"),
        (rule(json!({"id": "it", "references": {"mustExist": ["ArkMemry"]}})), "memory refers to no kind"),
        (
            json!({"defaults": [{"family": "ark", "kind": "Query", "field": "/spec/memory", "value": "notes"}]}),
            "spec.defaults[0].value",
        ),
        (json!({"match": {"kinds": ["ArkMemory", "Pod", "ArkMemry"]}}), r#"there is no kind "ArkMemry""#),
    ]
}

fn policies(fixture: &Fixture) -> Result<()> {
    let (cluster, memgate) = (fixture.cluster()?, fixture.memgate()?);
    let namespace = fixture.namespace("judged", &[])?;
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&cluster.client(), &namespace, &object, ""))?.object()?;
    }
    let good = policy(&namespace, &json!({}));
    store(cluster, &cluster.client(), &good)?.object()?;
    until_denied(cluster, &namespace, true)?;
    for (fault, words) in faults() {
        let bad = policy(&namespace, &fault);
        let refused = store(cluster, &cluster.client(), &bad)?;
        ensure!(refused.webhook_message().is_some_and(|it| it.contains(words)), "{words}: {}", refused.body);
        store(cluster, &memgate.exempt_client(), &bad)?.object()?;
        until_denied(cluster, &namespace, false)?;
        says_so(cluster, &namespace, words)?;
        ensure!(invalid(&memgate.webhook)? == 1, "the invalid one is not counted");
        ensure!(memgate.webhook.log().contains("it is not in force"), "{}", memgate.webhook.log());

        // One that starts now knows no good version of it, and judges alike.
        let new = Serve::new(MEMGATE).kubeconfig(&memgate.kubeconfig).ready()?;
        let said = Asked::new(cluster, &new, &namespace)?.about(cluster, "arkmemories", &scratch())?;
        ensure!(said.allowed && said.codes.contains("policy/invalid"), "{said:?}");
        ensure!(invalid(&new)? == 1, "a new replica does not count the invalid one");

        can_be_touched(cluster, &namespace, words)?;
        store(cluster, &cluster.client(), &good)?.object()?;
        until_denied(cluster, &namespace, true)?;
        ensure!(invalid(&memgate.webhook)? == 0, "what was mended is still counted");
    }
    delete(cluster, &cluster.client(), &good)
}

/// A user who repairs it step by step, or only labels it, gets a warning about each older fault.
fn can_be_touched(cluster: &ControlPlane, name: &str, words: &str) -> Result<()> {
    let output = cluster.kubectl(&["label", "--overwrite", "memorypolicy", name, "seen=1"])?.ok()?;
    ensure!(output.stderr.contains("Warning: ") && output.stderr.contains(words), "{}", output.stderr);
    Ok(())
}

/// Memory and pods that it would judge are admitted with a note for the audit log, and without a warning.
fn says_so(cluster: &ControlPlane, namespace: &str, words: &str) -> Result<()> {
    let client = cluster.client();
    for (object, entry) in
        [(scratch(), "resources.memgate.dev"), (pod("scout", "scout", &[]), "arkonis.pods.memgate.dev")]
    {
        let answer = cluster.block_on(create(&client, namespace, &object, "?dryRun=All"))?;
        ensure!(answer.granted() && answer.warnings.is_empty(), "{words}: {answer:?}");
        let annotations = cluster.annotations(&answer.audit_id)?;
        let codes = annotations.get(&format!("{entry}/codes")).context("there are no codes")?;
        ensure!(codes.split(',').any(|code| code == "policy/invalid"), "{words}: {annotations:?}");
    }
    Ok(())
}

fn exemptions(fixture: &Fixture) -> Result<()> {
    let (cluster, memgate) = (fixture.cluster()?, fixture.memgate()?);
    let namespace = fixture.namespace("judged", &[])?;
    let policy = policy(&namespace, &json!({"exemptions": {"namespaces": [namespace], "maxAge": "1d"}}));
    store(cluster, &cluster.client(), &policy)?.object()?;
    until_denied(cluster, &namespace, true)?;
    let good = exemption(&namespace, &json!(["ArkMemory"]));
    store(cluster, &cluster.client(), &good)?.object()?;
    until_denied(cluster, &namespace, false)?;

    let bad = exemption(&namespace, &json!(["ArkMemory", "ArkMemry"]));
    let refused = store(cluster, &cluster.client(), &bad)?;
    ensure!(refused.webhook_message().is_some_and(|it| it.contains("ArkMemry")), "{}", refused.body);
    store(cluster, &memgate.exempt_client(), &bad)?.object()?;
    until_denied(cluster, &namespace, true)?;
    ensure!(invalid(&memgate.webhook)? == 0, "an exemption is counted as a policy");
    delete(cluster, &cluster.client(), &policy)
}

/// How many policies a memgate counts that are not in force.
fn invalid(memgate: &Webhook) -> Result<u64> {
    let (_, metrics) = memgate.probe("/metrics").context("memgate has no metrics")?;
    let series = "memgate_policies{state=\"invalid\"} ";
    let count = metrics.lines().find_map(|line| line.strip_prefix(series));
    Ok(count.context("policies are not counted")?.parse()?)
}

/// Waits until a memory that loses everything is refused, or admitted.
fn until_denied(cluster: &ControlPlane, namespace: &str, expected: bool) -> Result<()> {
    let arguments = ["create", "--dry-run=server", "-n", namespace, "-f", "-"];
    wait::until("the policy to count, or not to", || {
        let output = cluster.admin().run_with_input(&arguments, &scratch().to_string())?;
        let refusal = refusal_of(output);
        if let Some(refusal) = &refusal {
            ensure!(refusal.contains("loses its memory with its process"), "{refusal}");
        }
        Ok((refusal.is_some() == expected).then_some(()))
    })
}

fn scratch() -> Value {
    memory_of("scratch", &json!({"backend": "in-context"}))
}

/// A policy for one namespace that denies, with fields laid over it.
fn policy(namespace: &str, fields: &Value) -> Value {
    let mut spec = json!({
        "match": {}, "actions": {"admission": "deny"},
        "rules": [{"id": "durable", "backends": {"durable": true}}],
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    spec["match"]["namespaces"] = json!([namespace]);
    object("MemoryPolicy", &json!({"name": namespace}), &spec)
}

fn exemption(namespace: &str, kinds: &Value) -> Value {
    let now = Timestamp::now();
    let spec = json!({
        "policy": namespace, "rules": ["durable"], "target": {"namespaces": [namespace], "kinds": kinds},
        "reason": "it moves to redis soon", "from": (now - 1.hour()).to_string(),
        "expiresAt": (now + 1.hour()).to_string(),
    });
    object("MemoryPolicyExemption", &json!({"name": "scratch", "namespace": namespace}), &spec)
}
