//! What never comes, what comes to a rollout, and who does not wait at all.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{created, held};
use crate::{
    fixture::{Fixture, Trial},
    order_cluster::{OrderCluster, SHORT_GRACE},
    request::create,
    samples::{COMPLETE, agent, env_names, memory, pod, pod_spec},
    support::wait,
};

pub(super) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("order::what_never_comes_is_waited_for_once", never_comes),
        Trial::new("order::a_job_goes_without_what_never_comes", never_comes_to_a_job),
        Trial::new("order::stateful_sets_and_daemon_sets_wait_too", other_controllers),
        Trial::new("order::a_rollout_waits_for_its_new_memory", rollout),
        Trial::new("order::two_replicas_let_wait_and_go", two_replicas),
        Trial::new("order::nothing_waits_when_it_is_switched_off", switched_off),
        Trial::new("order::only_pods_of_controllers_wait", only_controllers),
    ]
}

/// A workload whose pods are those of the agent "scout".
fn workload(api_version: &str, kind: &str) -> Value {
    let labels = json!({"arkonis.dev/deployment": "scout"});
    let mut workload = json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": "scout-agent"},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": pod_spec()}},
    });
    // No kubelet says that the node of a DaemonSet is ready.
    workload["spec"]["template"]["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    if kind == "Job" {
        workload["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    } else {
        workload["spec"]["selector"] = json!({"matchLabels": labels});
    }
    workload
}

fn deployment() -> Value {
    workload("apps/v1", "Deployment")
}

/// How many seconds after its workload a pod came.
fn delay(pod: &Value, workload: &Value) -> Result<i64> {
    Ok(created(pod)? - created(workload)?)
}

fn never_comes(fixture: &Fixture) -> Result<()> {
    let order = fixture.order()?;
    let namespace = order.namespace("short")?;
    order.create(&namespace, &agent("scout", "notes"))?;
    let deployment = order.create(&namespace, &deployment())?;
    wait::until("an Event of the ReplicaSet", || {
        let waits = format!("waits for ArkMemory \"{namespace}/notes\"; it will be admitted without in ");
        let events = order.list(&format!("/api/v1/namespaces/{namespace}/events"))?;
        let is_reported = |event: &Value| {
            let message = event["message"].as_str().unwrap_or_default();
            event["involvedObject"]["kind"] == "ReplicaSet"
                && event["reason"] == "FailedCreate"
                && message.contains("admission webhook \"arkonis.pods.memgate.dev\" denied the request: ")
                && message.contains(&waits)
        };
        Ok(events.iter().any(is_reported).then_some(()))
    })?;
    let pods = order.wait_for_pods(&namespace, 1)?;
    ensure!(env_names(&pods[0]) == ["AGENT_MODEL"], "{}", pods[0]);
    let seconds = delay(&pods[0], &deployment)?;
    // Timestamps are cut to whole seconds.
    ensure!(seconds >= SHORT_GRACE - 1, "the pod came after {seconds} s");
    println!("with a grace time of {SHORT_GRACE} s and a memory that never comes: a pod after {seconds} s");
    event_on_the_agent(order, &namespace)?;
    let log = order.short.log();
    let waits_for = format!("ArkMemory \\\"{namespace}/notes\\\"");
    ensure!(log.contains("reason=\"reference-pending\"") && log.contains(&waits_for), "{log}");

    // Neither more pods of this Deployment nor those of another one wait for it again.
    let line = format!("namespace=\"{namespace}\"");
    let held_here = || {
        let log = order.short.log();
        log.lines().filter(|text| text.contains(&line) && text.contains("reference-pending")).count()
    };
    let before = held_here();
    order.patch(&namespace, &deployment, &json!({"spec": {"replicas": 3}}))?;
    let mut other = self::deployment();
    other["metadata"]["name"] = json!("other");
    order.create(&namespace, &other)?;
    order.wait_for_pods(&namespace, 4)?;
    ensure!(held_here() == before, "a pod was held again: {}", order.short.log());
    ensure!(held(&order.short, "arkonis")? >= before as u64, "{before}");
    let created = order.answer(&namespace, &owned_pod("later"))?;
    let warning = format!("ArkMemory \"notes\" not found in namespace \"{namespace}\"");
    ensure!(created.warnings.iter().any(|text| text.contains(&warning)), "{:?}", created.warnings);

    // It was there in between, so pods wait for it anew.
    let memory = order.create(&namespace, &memory("notes"))?;
    let with = order.answer(&namespace, &owned_pod("with"))?.object()?;
    ensure!(env_names(&with) == COMPLETE, "{with}");
    order.delete(&namespace, &memory)?;
    wait::until("a pod to wait anew", || {
        let answer = order.answer(&namespace, &owned_pod("anew"))?;
        let waits = answer.status == 403 && answer.message().contains("waits for ArkMemory");
        Ok(waits.then_some(()))
    })
}

/// A pod as a ReplicaSet sends it.
fn owned_pod(name: &str) -> Value {
    let mut pod = pod(name, "scout", &[]);
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "made-up", "uid": "made-up", "controller": true,
    }]);
    pod
}

fn event_on_the_agent(order: &OrderCluster, namespace: &str) -> Result<()> {
    wait::until("an Event on the agent", || {
        let events = order.list(&format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"))?;
        let is_reported = |event: &&Value| {
            event["reason"] == "MemoryNotInjected" && event["regarding"]["kind"] == "ArkAgent"
        };
        Ok(events.iter().find(is_reported).map(|_| ()))
    })
}

fn never_comes_to_a_job(fixture: &Fixture) -> Result<()> {
    let order = fixture.order()?;
    let namespace = order.namespace("short")?;
    let job = order.create(&namespace, &workload("batch/v1", "Job"))?;
    let pods = order.wait_for_pods(&namespace, 1)?;
    ensure!(env_names(&pods[0]) == ["AGENT_MODEL"], "{}", pods[0]);
    let seconds = delay(&pods[0], &job)?;
    ensure!(seconds >= SHORT_GRACE - 1, "the pod came after {seconds} s");
    println!("the same of a Job and an agent that never comes: after {seconds} s");
    Ok(())
}

/// A DaemonSet makes pods for nodes.
fn other_controllers(fixture: &Fixture) -> Result<()> {
    let order = fixture.order()?;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "made-up"}});
    order.cluster.admin().apply(&node.to_string())?;
    for kind in ["StatefulSet", "DaemonSet"] {
        let namespace = order.namespace("")?;
        order.create(&namespace, &workload("apps/v1", kind))?;
        wait::until(&format!("the pod of a {kind} to be held"), || {
            let events = order.list(&format!("/api/v1/namespaces/{namespace}/events"))?;
            let waits = |event: &Value| {
                event["message"].as_str().is_some_and(|text| text.contains("waits for ArkAgent"))
                    && event["involvedObject"]["kind"] == kind
            };
            Ok(events.iter().any(waits).then_some(()))
        })?;
        order.create(&namespace, &agent("scout", "notes"))?;
        order.create(&namespace, &memory("notes"))?;
        let pods = order.wait_for_pods(&namespace, 1)?;
        ensure!(env_names(&pods[0]) == COMPLETE, "{kind}: {}", pods[0]);
    }
    Ok(())
}

fn rollout(fixture: &Fixture) -> Result<()> {
    let order = fixture.order()?;
    let namespace = order.namespace("")?;
    let agent = agent("scout", "notes");
    for object in [&memory("notes"), &agent] {
        order.create(&namespace, object)?;
    }
    let deployment = order.create(&namespace, &deployment())?;
    let first = order.wait_for_pods(&namespace, 1)?;
    ensure!(env_names(&first[0]) == COMPLETE, "{}", first[0]);

    let before = held(&order.usual, "arkonis")?;
    order.patch(&namespace, &agent, &json!({"spec": {"memoryRef": {"name": "archive"}}}))?;
    let rolled = json!({"spec": {"template": {"metadata": {"annotations": {"rolled": "out"}}}}});
    order.patch(&namespace, &deployment, &rolled)?;
    wait::until("the rollout to wait", || Ok((held(&order.usual, "arkonis")? > before).then_some(())))?;
    let mut archive = memory("archive");
    archive["spec"]["redis"]["ttlSeconds"] = json!(77);
    order.create(&namespace, &archive)?;
    let new = wait::until("the new pod", || {
        let pods = order.pods(&namespace)?;
        Ok(pods.into_iter().find(|pod| pod["metadata"]["annotations"]["rolled"] == "out"))
    })?;
    let ttl = new["spec"]["containers"][0]["env"][2]["value"].as_str().context("no third variable")?;
    ensure!(ttl == "77", "{new}");
    Ok(())
}

fn two_replicas(fixture: &Fixture) -> Result<()> {
    let order = fixture.order()?;
    let (late, never) = (order.namespace("two")?, order.namespace("two")?);
    for namespace in [&late, &never] {
        order.create(namespace, &deployment())?;
    }
    order.create(&late, &agent("scout", "notes"))?;
    std::thread::sleep(std::time::Duration::from_secs(1));
    order.create(&late, &memory("notes"))?;
    let pods = order.wait_for_pods(&late, 1)?;
    ensure!(env_names(&pods[0]) == COMPLETE, "{}", pods[0]);
    let pods = order.wait_for_pods(&never, 1)?;
    ensure!(env_names(&pods[0]) == ["AGENT_MODEL"], "{}", pods[0]);
    Ok(())
}

fn switched_off(fixture: &Fixture) -> Result<()> {
    let order = fixture.order()?;
    let namespace = order.namespace("off")?;
    order.create(&namespace, &agent("scout", "notes"))?;
    order.create(&namespace, &deployment())?;
    let pods = order.wait_for_pods(&namespace, 1)?;
    ensure!(env_names(&pods[0]) == ["AGENT_MODEL"], "{}", pods[0]);
    event_on_the_agent(order, &namespace)?;
    let events = order.list(&format!("/api/v1/namespaces/{namespace}/events"))?;
    ensure!(!events.iter().any(|event| event["reason"] == "FailedCreate"), "{events:?}");
    Ok(())
}

fn only_controllers(fixture: &Fixture) -> Result<()> {
    let order = fixture.order()?;
    let namespace = order.namespace("")?;
    let bare = order.answer(&namespace, &pod("bare", "scout", &[]))?;
    ensure!(bare.granted() && bare.warnings.len() == 1, "{}", bare.body);
    let client = order.cluster.client();
    let dry = order.cluster.block_on(create(&client, &namespace, &owned_pod("dry"), "?dryRun=All"))?;
    ensure!(dry.granted() && dry.warnings.len() == 1, "{}", dry.body);
    let mut required = owned_pod("required");
    required["metadata"]["labels"]["memgate.dev/inject"] = json!("required");
    let refused = order.answer(&namespace, &required)?;
    ensure!(refused.status == 422 && refused.message().contains("not found"), "{}", refused.body);

    // It is what a ResourceQuota says, and the audit log has the reason.
    let held = order.answer(&namespace, &owned_pod("owned"))?;
    let message = format!(
        "waits for ArkAgent \"{namespace}/scout\"; it will be admitted without in 30 s \
         (memgate arkonis/pod-agent-not-found)"
    );
    ensure!(held.status == 403 && held.body["reason"] == "Forbidden", "{}", held.body);
    ensure!(held.webhook_message() == Some(&message) && held.warnings.is_empty(), "{}", held.body);
    let annotations = order.cluster.annotations(&held.audit_id)?;
    let is_reason =
        |(key, value): (&String, &String)| key.ends_with("/reason") && value == "reference-pending";
    ensure!(annotations.iter().any(is_reason), "{annotations:?}");
    Ok(())
}
