//! That `memgate explain-pod NAMESPACE/NAME` says where what a pod was given comes from.

use std::{
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    fixture::{Fixture, Trial},
    installed::MEMGATE,
    request::create,
    samples::{agent, memory, memory_of, pod},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("explain_pod::names_the_field_of_each_variable", names_fields),
        Trial::new("explain_pod::says_why_a_pod_has_no_memory", reasons),
        Trial::new("explain_pod::says_what_may_not_be_read", rights),
    ]
}

fn explain(kubeconfig: &Path, pod: &str) -> Result<(String, Output)> {
    let mut command = Command::new(MEMGATE);
    command.arg("explain-pod").arg(pod).arg("--kubeconfig").arg(kubeconfig).env_clear();
    let output = command.output().context("memgate does not start")?;
    let all = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    Ok((String::from_utf8(all)?, output))
}

/// A namespace with the pod of an agent that was given its memory.
fn scout(fixture: &Fixture) -> Result<String> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("explained", &[])?;
    for mut object in [memory("notes"), agent("scout", "notes"), pod("scout-0", "scout", &[])] {
        object["metadata"]["namespace"] = json!(namespace);
        cluster.admin().apply(&object.to_string())?;
    }
    Ok(namespace)
}

fn names_fields(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = scout(fixture)?;
    let name = format!("{namespace}/scout-0");
    let (text, output) = explain(cluster.admin_kubeconfig(), &name)?;
    ensure!(output.status.success() && output.stderr.is_empty(), "{text}");
    let origin = format!("AGENT_MEMORY_BACKEND=redis  ← ArkMemory {namespace}/notes spec.backend\n");
    ensure!(text.contains(&origin), "{text}");
    ensure!(text.contains("AGENT_MEMORY_REDIS_TTL=3600  ← "), "{text}");

    let spec = json!({"backend": "redis", "redis": {"secretRef": {"name": "notes-redis"}, "ttlSeconds": 90}});
    let mut changed = memory_of("notes", &spec);
    changed["metadata"]["namespace"] = json!(namespace);
    cluster.admin().apply(&changed.to_string())?;
    let (text, _) = explain(cluster.admin_kubeconfig(), &name)?;
    let origin = format!("ArkMemory {namespace}/notes spec.redis.ttlSeconds, by now 90\n");
    ensure!(text.contains(&format!("AGENT_MEMORY_REDIS_TTL=3600  ← {origin}")), "{text}");

    let (text, output) = explain(cluster.admin_kubeconfig(), &format!("{namespace}/absent"))?;
    ensure!(output.status.code() == Some(2), "{text}");
    ensure!(text == format!("error: there is no Pod {namespace}/absent\n"), "{text}");
    Ok(())
}

/// Pods without memory, each for another reason.
fn reasons(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("unexplained", &[])?;
    let exempt = fixture.memgate()?.exempt_client();
    let mut alone = agent("alone", "notes");
    alone["spec"].as_object_mut().context("a spec")?.remove("memoryRef");
    let mut stranger = pod("stranger", "scout", &[]);
    stranger["metadata"]["labels"] = json!({"app": "shop"});
    let objects = [
        memory("notes"),
        agent("scout", "notes"),
        agent("lost", "nowhere"),
        alone,
        stranger,
        pod("missed", "scout", &[]),
        pod("out", "scout", &[("memgate.dev/inject", "disabled")]),
        pod("none", "alone", &[]),
        pod("lost", "lost", &[]),
    ];
    for object in objects {
        cluster.block_on(create(&exempt, &namespace, &object, ""))?.object()?;
    }
    for (name, why) in [
        ("stranger", "it does not have the labels or annotations of an agent pod of any platform\n"),
        (
            "missed",
            "without the memory ArkMemory/notes of its agent (platform arkonis): memgate did not answer\n",
        ),
        ("missed", "\n  help: make the Pod anew from its manifest: kubectl -n "),
        ("out", "it opted out, by its label memgate.dev/inject or that of its namespace\n"),
        ("none", "its agent refers to no memory\n"),
        ("lost", "it runs without its memory: "),
        ("lost", "\n  help: memgate explain arkonis/"),
    ] {
        let (text, output) = explain(cluster.admin_kubeconfig(), &format!("{namespace}/{name}"))?;
        let head = format!("Pod {namespace}/{name}: memgate added nothing\n  why: ");
        ensure!(output.status.success() && text.starts_with(&head) && text.contains(why), "{name}: {text}");
    }
    let kubeconfig = cluster.account_that_may("get,list", "pods,arkagents,arkmemories", &namespace)?;
    let (text, _) = explain(&kubeconfig, &format!("{namespace}/missed"))?;
    ensure!(text.contains("why is not known (you may not list mutatingwebhookconfigurations"), "{text}");
    Ok(())
}

fn rights(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = scout(fixture)?;
    let kubeconfig = cluster.account_that_may("get", "pods", &namespace)?;
    let (text, output) = explain(&kubeconfig, &format!("{namespace}/scout-0"))?;
    ensure!(output.status.success(), "{text}");
    ensure!(text.contains("AGENT_MEMORY_BACKEND=redis\n"), "{text}");
    ensure!(text.contains("note: you may not get arkagents: this right is needed"), "{text}");
    Ok(())
}
