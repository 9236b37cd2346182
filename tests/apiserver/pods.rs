//! That agent pods get their memory, however they come into being, and other pods are let be.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::{MEMGATE, register, wait_until_asked},
    request::{Answer, create, path, send},
    samples::{COMPLETE, INJECTED, agent, deployment, env_names, memory, pod, pod_spec},
    stub::Stub,
    support::{
        control_plane::ControlPlane,
        wait,
        webhook::{Serve, Webhook, push},
    },
};

/// How often the race between objects that are applied together is run.
const RACES: usize = 100;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("pods::of_a_deployment_get_their_memory", of_a_deployment),
        Trial::new("pods::get_a_memory_that_was_made_a_moment_before", made_a_moment_before),
        Trial::new("pods::keep_their_memory_when_another_webhook_reorders", another_webhook_reorders),
        Trial::new("pods::get_their_memory_back_when_another_webhook_drops_it", another_webhook_drops),
        Trial::new("pods::can_be_applied_again", applied_again),
        Trial::new("pods::opt_out", opt_out),
        Trial::new("pods::that_require_memory_are_refused_without_it", refused_without_it),
        Trial::new("pods::of_other_workloads_are_left_alone", of_other_workloads),
    ]
}

fn of_a_deployment(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("deployed", &[])?;
    let list = json!({
        "apiVersion": "v1", "kind": "List",
        "items": [memory("notes"), agent("scout", "notes"), deployment(2)],
    });
    let kubectl = cluster.admin();
    kubectl.apply_in(&namespace, &list.to_string())?.ok()?;

    let path = path(&pod("", "", &[]), &namespace, None)?;
    let pods = wait::until("the pods of the Deployment", || {
        let list = cluster.block_on(send(&cluster.client(), Method::GET, &path, None))?.object()?;
        let pods = list["items"].as_array().context("a list has items")?;
        Ok((pods.len() == 2).then(|| pods.clone()))
    })?;
    for pod in &pods {
        ensure!(pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet", "{pod}");
        ensure!(env_names(pod) == COMPLETE, "{pod}");
    }
    // Only the pods are changed: the operator owns the Deployment.
    let template = ["get", "deployment,replicaset", "-n", &namespace, "--output=json"];
    let owners: Value = serde_json::from_str(&kubectl.run(&template)?.ok()?.stdout)?;
    ensure!(!owners.to_string().contains("AGENT_MEMORY"), "{owners}");
    Ok(())
}

/// The watches of memgate cannot have shown it yet.
fn made_a_moment_before(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace("raced", &[])?;
    let client = cluster.client();
    let mut lost = Vec::new();
    for number in 0..RACES {
        let name = format!("scout-{number}");
        let memory_name = format!("notes-{number}");
        let created = cluster.block_on(async {
            create(&client, &namespace, &memory(&memory_name), "").await?.object()?;
            create(&client, &namespace, &agent(&name, &memory_name), "").await?.object()?;
            create(&client, &namespace, &pod(&name, &name, &[]), "").await
        })?;
        let warnings = created.warnings.clone();
        let created = created.object()?;
        if env_names(&created) != COMPLETE {
            lost.push(format!("{name}: {:?} {warnings:?}", env_names(&created)));
        }
    }
    ensure!(lost.is_empty(), "{} of {RACES} pods have not got it all:\n{}", lost.len(), lost.join("\n"));
    Ok(())
}

/// As an injector of a service mesh does, and worse: memgate is asked a second time about a pod
/// whose containers and variables stand elsewhere.
fn another_webhook_reorders(fixture: &Fixture) -> Result<()> {
    let pod = with_another_webhook(fixture, "reordered", |pod| {
        let mut env = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
        env.reverse();
        env.push(json!({"name": "BY_ANOTHER", "value": "1"}));
        json!([
            {"op": "add", "path": "/metadata/annotations/seen", "value": "by another"},
            {"op": "replace", "path": "/spec/containers/0/env", "value": env},
            {"op": "add", "path": "/spec/containers/0", "value": {"name": "proxy", "image": "proxy"}},
        ])
    })?;
    let mut expected = COMPLETE.to_vec();
    expected.reverse();
    expected.push("BY_ANOTHER");
    ensure!(env_names(&pod) == expected, "{pod}");
    ensure!(pod["spec"]["containers"][0]["name"] == "proxy", "{pod}");
    ensure!(pod["spec"]["containers"][0]["env"].is_null(), "{pod}");
    Ok(())
}

/// As an operator does that writes the containers it knows over those that are there.
fn another_webhook_drops(fixture: &Fixture) -> Result<()> {
    let pod = with_another_webhook(fixture, "restored", |_| {
        json!([
            {"op": "add", "path": "/metadata/annotations/seen", "value": "by another"},
            {"op": "replace", "path": "/spec/containers", "value": [
                {"name": "proxy", "image": "proxy"},
                {"name": "agent", "image": "agent", "env": [{"name": "AGENT_MODEL", "value": "other"}]},
            ]},
        ])
    })?;
    ensure!(env_names(&pod) == COMPLETE, "{pod}");
    ensure!(pod["spec"]["containers"][1]["env"][3]["value"] == "other", "{pod}");
    let note = pod["metadata"]["annotations"]["memgate.dev/injected"].as_str().context("no note")?;
    for name in INJECTED {
        ensure!(note.matches(name).count() == 1, "{name} is not once in {note}");
    }
    Ok(())
}

/// The pod that comes out when another webhook runs after memgate, and memgate once more after it.
/// `patch` makes from the pod what the other one does to it.
fn with_another_webhook(fixture: &Fixture, prefix: &str, patch: fn(&Value) -> Value) -> Result<Value> {
    let cluster = fixture.cluster()?;
    let memgate = fixture.memgate()?;
    let namespace = fixture.namespace(prefix, &[])?;
    let client = cluster.client();
    for object in [memory("notes"), agent("scout", "notes")] {
        cluster.block_on(create(&client, &namespace, &object, ""))?.object()?;
    }
    let stub = Stub::start(move |request| {
        let pod = &request["object"];
        if pod["metadata"]["annotations"]["seen"].is_string() {
            return json!({"allowed": true});
        }
        let mut patch = patch(pod);
        if pod["metadata"]["annotations"].is_null()
            && let Some(patch) = patch.as_array_mut()
        {
            patch.insert(0, json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
        }
        json!({
            "allowed": true, "patchType": "JSONPatch", "patch": BASE64_STANDARD.encode(patch.to_string()),
        })
    })?;
    // Configurations are called in the order of their names; this one comes after memgate's.
    stub.register(cluster, &namespace, &namespace, &json!({"reinvocationPolicy": "IfNeeded"}))?;
    let answer = wait::until("the other webhook to be called", || {
        let answer =
            cluster.block_on(create(&client, &namespace, &pod("scout", "scout", &[]), "?dryRun=All"))?;
        let seen = answer.body["metadata"]["annotations"]["seen"].is_string();
        Ok((seen || !answer.granted()).then_some(answer))
    })?;
    let annotations = cluster.annotations(&answer.audit_id)?;
    let again = annotations
        .iter()
        .any(|(key, value)| key.contains("/round_1_index_") && value.contains("arkonis.pods.memgate.dev"));
    ensure!(again, "memgate was not asked a second time: {annotations:?}\n{}", memgate.webhook.log());
    answer.object()
}

/// What was added is not the user's, so applying the same manifest again leaves it where it is;
/// were it to move, the apiserver would refuse, since a pod's variables cannot change.
fn applied_again(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let kubectl = cluster.admin();
    let rows: [(&str, &[&str]); 2] = [("applied", &[]), ("merged", &["--server-side"])];
    for (prefix, flags) in rows {
        let namespace = fixture.namespace(prefix, &[])?;
        let mut pod = pod("scout", "scout", &[]);
        push(&mut pod["spec"]["containers"][0]["env"], json!({"name": "AGENT_TIMEOUT", "value": "60"}));
        let items = json!([memory("notes"), agent("scout", "notes"), pod]);
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let apply = [&["apply", "-n", &namespace, "-f", "-"], flags].concat();
        let spec = || -> Result<Value> {
            let output = kubectl.run_with_input(&apply, &list)?.ok()?;
            ensure!(output.stderr.is_empty(), "{prefix}: {}", output.stderr);
            let get = ["get", "pod", "scout", "-n", &namespace, "--output=json"];
            let pod: Value = serde_json::from_str(&kubectl.run(&get)?.ok()?.stdout)?;
            ensure!(env_names(&pod) == [&COMPLETE[..], &["AGENT_TIMEOUT"]].concat(), "{prefix}: {pod}");
            Ok(pod["spec"].clone())
        };
        let first = spec()?;
        ensure!(spec()? == first, "{prefix}: the second time was not like {first}");
    }
    Ok(())
}

fn opt_out(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let client = cluster.client();
    let inject = |value| [("memgate.dev/inject", value)];
    let rows: [(&str, &[_], &[_], bool); 4] = [
        ("plain", &[], &[], true),
        ("pod-out", &[], &inject("disabled"), false),
        ("namespace-out", &inject("disabled"), &[], false),
        // What a pod says of itself counts more.
        ("insisting", &inject("disabled"), &inject("required"), true),
    ];
    for (prefix, of_namespace, of_pod, injected) in rows {
        let namespace = fixture.namespace(prefix, of_namespace)?;
        for object in [memory("notes"), agent("scout", "notes")] {
            cluster.block_on(create(&client, &namespace, &object, ""))?.object()?;
        }
        let answer = cluster.block_on(create(&client, &namespace, &pod("scout", "scout", of_pod), ""))?;
        ensure!(answer.warnings.is_empty(), "{prefix}: {:?}", answer.warnings);
        let pod = answer.object()?;
        let expected = if injected { &COMPLETE[..] } else { &["AGENT_MODEL"] };
        ensure!(env_names(&pod) == expected, "{prefix}: {pod}");
    }
    Ok(())
}

fn refused_without_it(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let client = cluster.client();
    let namespace = fixture.namespace("required", &[])?;
    let required = pod("scout", "scout", &[("memgate.dev/inject", "required")]);
    let attempt = || -> Result<Answer> { cluster.block_on(create(&client, &namespace, &required, "")) };

    let without_agent = attempt()?;
    ensure!(!without_agent.granted(), "{}", without_agent.body);
    let message = format!("ArkAgent \"scout\" not found in namespace \"{namespace}\"");
    ensure!(without_agent.message().contains(&message), "{}", without_agent.message());
    let cause = json!({
        "reason": "FieldValueNotFound", "field": "spec",
        "message": format!(
            "the pod requires its memory (memgate.dev/inject: required), but {message}; see \
             metadata.labels[arkonis.dev/deployment] \
             (memgate arkonis/pod-agent-not-found)"
        ),
    });
    ensure!(without_agent.body["details"]["causes"] == json!([cause]), "{}", without_agent.body);

    cluster.block_on(create(&client, &namespace, &agent("scout", "notes"), ""))?.object()?;
    let without_memory = attempt()?;
    let message = format!("ArkMemory \"notes\" not found in namespace \"{namespace}\"");
    ensure!(without_memory.message().contains(&message), "{}", without_memory.message());

    cluster.block_on(create(&client, &namespace, &memory("notes"), ""))?.object()?;
    ensure!(env_names(&attempt()?.object()?) == COMPLETE);
    Ok(())
}

/// With a memgate of the trial's own, so that no other trial makes it count.
fn of_other_workloads(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let client = cluster.client();
    let namespace = cluster.fresh_namespace("foreign")?;
    let memgate = Serve::new(MEMGATE).kubeconfig(&fixture.memgate()?.kubeconfig).ready()?;
    let only = json!({
        "key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace],
    });
    register(cluster, &memgate.endpoint(), &namespace, &only)?;
    wait_until_asked(cluster, &namespace)?;

    let before = requests(&memgate)?;
    ensure!(!before.is_empty(), "memgate counts no requests");
    let mut foreign = pod("web", "", &[("app", "web")]);
    foreign["metadata"]["labels"] = json!({"app": "web"});
    let config = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}, "spec": pod_spec()});
    for object in [foreign, config] {
        let created = cluster.block_on(create(&client, &namespace, &object, ""))?.object()?;
        ensure!(env_names(&created) == ["AGENT_MODEL"], "{created}");
    }
    delete_all_pods(cluster, &namespace)?;
    ensure!(requests(&memgate)? == before, "memgate was asked: {:?}", requests(&memgate)?);
    // An opt-out stops injection, but policies are asked.
    let out = pod("out", "scout", &[("memgate.dev/inject", "disabled")]);
    let created = cluster.block_on(create(&client, &namespace, &out, ""))?.object()?;
    ensure!(env_names(&created) == ["AGENT_MODEL"], "{created}");
    let asked = requests(&memgate)?;
    ensure!(asked != before, "a pod that opts out should count");
    cluster.block_on(create(&client, &namespace, &pod("scout", "scout", &[]), ""))?.object()?;
    ensure!(requests(&memgate)? != asked, "a pod of an agent should count");
    Ok(())
}

fn delete_all_pods(cluster: &ControlPlane, namespace: &str) -> Result<()> {
    cluster.kubectl(&["delete", "pods", "--all", "--wait=false", "-n", namespace])?.ok()?;
    Ok(())
}

/// The series that have counted requests.
fn requests(webhook: &Webhook) -> Result<Vec<String>> {
    let (_, metrics) = webhook.probe("/metrics").context("memgate has no metrics")?;
    let lines = metrics.lines().filter(|line| line.starts_with("memgate_admission_requests_total"));
    let lines = lines.filter(|line| !line.ends_with(" 0"));
    Ok(lines.map(str::to_owned).collect())
}
