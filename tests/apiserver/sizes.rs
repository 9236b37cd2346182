//! An apiserver writes one byte of an object in up to six, so the review of a large pod is several times larger. Entries that
//! fail open would admit what gets an error, with no word to anyone.

use anyhow::{Result, ensure};
use kube::Client;
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::{MEMGATE, register, wait_until_asked_about_pods},
    request::{Answer, create},
    samples::pod,
    support::{
        control_plane::ControlPlane,
        https::{Caller, post},
        wait,
        webhook::Serve,
    },
};

/// What is judged, and what etcd stores.
const LARGE: usize = 1_430_000;

/// What the apiserver takes, and does not store.
const LARGEST: usize = 2_900_000;

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::new("sizes::no_size_is_a_way_past_what_denies", no_way_past)]
}

/// A pod of an agent with so many signs that the apiserver writes as six.
fn large(bytes: usize, labels: &[(&str, &str)]) -> Value {
    let mut pod = pod("scout", "scout", labels);
    pod["spec"]["containers"][0]["args"] = json!(["<".repeat(bytes)]);
    pod
}

fn no_way_past(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let kubeconfig = &fixture.memgate()?.kubeconfig;
    let namespace = cluster.fresh_namespace("sizes")?;
    let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]});
    let serve = |settings: Value| Serve::new(MEMGATE).arg("--settings").arg(settings.to_string());
    let memgate = serve(json!({"timeoutBody": "1m"})).kubeconfig(kubeconfig).ready()?;
    register(cluster, &memgate.endpoint(), &namespace, &only)?;
    wait_until_asked_about_pods(cluster, &namespace)?;
    fail_open(cluster, &namespace)?;
    // A client tries again by itself after a 429.
    let mut config = cluster.config(cluster.admin_kubeconfig())?;
    config.default_retry = false;
    let client = cluster.block_on(async { Client::try_from(config) })?;
    let create =
        |pod: &Value| -> Result<Answer> { cluster.block_on(create(&client, &namespace, pod, "?dryRun=All")) };

    let policy = json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy", "metadata": {"name": namespace},
        "spec": {
            "match": {"namespaces": [namespace]}, "actions": {"admission": "deny"},
            "rules": [{"id": "owner", "labels": {"required": ["team"]}, "roles": ["pod"]}],
        },
    });
    cluster.admin().apply(&policy.to_string())?;
    let denial = format!("label \"team\" is required (memgate policy {namespace}/owner)");
    wait::until("the policy to count", || {
        let answer = create(&large(1, &[]))?;
        Ok(answer.webhook_message().is_some_and(|message| message.contains(&denial)).then_some(()))
    })?;
    for bytes in [LARGE, LARGEST] {
        let answer = create(&large(bytes, &[]))?;
        let message = answer.webhook_message().unwrap_or_default();
        ensure!(message.contains(&denial), "{bytes}: {} {}", answer.status, answer.message());
    }
    ensure!(create(&large(LARGE, &[("team", "a")]))?.granted());

    // Two others that are announced take all room of large ones.
    let announced = String::from_utf8(post("/mutate?timeout=30s", ""))?;
    let announced = announced.replace("content-length: 0", "content-length: 10000000");
    let caller = Caller::new(memgate.addresses().listen, memgate.ca())?;
    let announce = async {
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut connection = caller.connect().await?;
            connection.try_send(announced.as_bytes()).await?;
            held.push(connection);
        }
        anyhow::Ok(held)
    };
    let held = cluster.block_on(announce)?;
    let no_room = "too many large reviews at once: try again (memgate)";
    wait::until("no room to be left", || {
        Ok((create(&large(LARGE, &[]))?.webhook_message() == Some(no_room)).then_some(()))
    })?;
    let answer = create(&large(LARGE, &[]))?;
    ensure!(answer.webhook_message() == Some(no_room) && answer.status == 429, "{}", answer.message());
    ensure!(answer.body["details"]["retryAfterSeconds"] == 1, "{}", answer.body);
    ensure!(create(&large(1, &[("team", "a")]))?.granted(), "a small one is judged");
    ensure!(memgate.log().lines().any(|line| line.contains(no_room.trim_end_matches(" (memgate)"))));
    drop(held);

    // Beyond what it reads, which is less here: an object that may be updated makes a review of up to 27 MiB.
    let less = serve(json!({"maxBodyBytes": "4Mi"})).kubeconfig(kubeconfig).ready()?;
    register(cluster, &less.endpoint(), &namespace, &only)?;
    let sentence = "too large to be judged: the body is larger than 4194304 bytes (memgate)";
    wait::until("the other one to be asked", || {
        let answer = create(&large(LARGE, &[("team", "a")]))?;
        Ok(answer.webhook_message().is_some_and(|message| message == sentence).then_some(()))
    })?;
    fail_open(cluster, &namespace)?;
    for bytes in [LARGE, LARGEST] {
        let answer = create(&large(bytes, &[]))?;
        ensure!(
            answer.webhook_message() == Some(sentence),
            "{bytes}: {} {}",
            answer.status,
            answer.message()
        );
        ensure!(answer.status == 413, "{}", answer.status);
    }
    ensure!(create(&large(1, &[("team", "a")]))?.granted(), "a small one is judged");
    let log = less.log();
    let line = log.lines().find(|line| line.contains("too large to be judged")).unwrap_or_default();
    for part in [&*namespace, "test-admin", "denied", "over-limit"] {
        ensure!(line.contains(part), "{part}: {line}");
    }
    let kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
    cluster.kubectl(&["delete", kinds, &namespace])?.ok()?;
    cluster.kubectl(&["delete", "memorypolicy", &namespace])?.ok().map(|_| ())
}

/// Lets each entry fail open.
fn fail_open(cluster: &ControlPlane, name: &str) -> Result<()> {
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        let text = cluster.kubectl(&["get", kind, name, "-o", "json"])?.ok()?.stdout;
        let mut configuration: Value = serde_json::from_str(&text)?;
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            webhook["failurePolicy"] = json!("Ignore");
        }
        configuration["metadata"] = json!({"name": name});
        cluster.admin().apply(&configuration.to_string())?;
    }
    Ok(())
}
