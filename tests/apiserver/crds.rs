//! That CRDs may come and go while memgate runs. On a cluster of its own: others need the CRDs.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    faults::{
        calls::{BARE, DENIED, required_pods},
        fleet::Fleet,
    },
    fixture::{Fixture, Trial},
    installed::{
        MEMGATE, install_account, install_crds, known_objects, register, wait_until_asked_about_pods,
    },
    request::{Answer, create},
    samples::{COMPLETE, agent, env_names, memory, pod},
    support::{
        control_plane::ControlPlane,
        load::{Load, Pace, Tally},
        wait,
        webhook::{Serve, Webhook, push},
    },
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("crds::come_and_go_while_memgate_runs", come_and_go),
        Trial::new("crds::change_their_versions_while_pods_come_in", change_versions),
    ]
}

fn come_and_go(_: &Fixture) -> Result<()> {
    let cluster = ControlPlane::start()?;
    let namespace = cluster.fresh_namespace("agents")?;
    // There is no CRD yet, and memgate is ready nonetheless.
    let memgate = Serve::new(MEMGATE).kubeconfig(&install_account(&cluster)?).ready()?;
    let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]});
    register(&cluster, &memgate.endpoint(), "memgate", &only)?;
    wait_until_asked_about_pods(&cluster, &namespace)?;
    let lonely = dry_pod(&cluster, &namespace)?;
    // Namespaces do not need a CRD.
    let others = known_objects(&memgate)?;
    let not_found = format!(
        "metadata.labels[arkonis.dev/deployment]: ArkAgent \"scout\" not found in namespace \"{namespace}\" (memgate arkonis/pod-agent-not-found)"
    );
    ensure!(lonely.warnings == [not_found.as_str()], "{:?}", lonely.warnings);

    install_crds(&cluster)?;
    let client = cluster.client();
    let add = |object| cluster.block_on(create(&client, &namespace, &object, ""))?.object();
    add(memory("notes"))?;
    add(agent("scout", "notes"))?;
    knows(&memgate, others + 2)?;
    ensure!(env_names(&dry_pod(&cluster, &namespace)?.object()?) == COMPLETE);

    // With the CRD of a kind its objects go, and with no kind the others.
    cluster.kubectl(&["delete", "crd", "arkagents.arkonis.dev"])?.ok()?;
    knows(&memgate, others + 1)?;
    let lonely = dry_pod(&cluster, &namespace)?;
    ensure!(lonely.warnings == [not_found], "{:?}", lonely.warnings);
    let ready = memgate.probe("/readyz");
    ensure!(ready.as_ref().is_some_and(|(status, _)| *status == 200), "{ready:?}");

    install_crds(&cluster)?;
    add(agent("scout", "notes"))?;
    knows(&memgate, others + 2)?;
    ensure!(env_names(&dry_pod(&cluster, &namespace)?.object()?) == COMPLETE);
    Ok(())
}

/// All the while pods come in that require their memory: each gets it or is refused.
fn change_versions(_: &Fixture) -> Result<()> {
    let cluster = ControlPlane::start()?;
    install_crds(&cluster)?;
    let fleet = Fleet::start(&cluster, &install_account(&cluster)?, 1)?;
    let calls = required_pods(&cluster, &fleet.namespace)?;
    let load = Load::start(cluster.runtime(), Pace { per_second: 20, at_once: 10 }, calls);
    let become_good = || until_any(&load, "pods with their memory", |calls| calls.good() > 0);
    let become_denied = || until_any(&load, "pods that are refused", |calls| calls.failed_as(DENIED) > 0);
    become_good()?;

    // A newer version is what is stored, and the one that memgate knows is still served: whatever
    // has changed since comes in through the watch.
    let mut crd = memory_crd(&cluster)?;
    let mut newer = crd["spec"]["versions"][0].clone();
    newer["name"] = json!("v1");
    crd["spec"]["versions"][0]["storage"] = json!(false);
    push(&mut crd["spec"]["versions"], newer);
    apply_crd(&cluster, &crd)?;
    let secret = json!({"spec": {"redis": {"secretRef": {"name": "newer"}}}}).to_string();
    let patch = ["patch", "arkmemories.v1.arkonis.dev", "notes", "--type=merge", "-p", &secret];
    let patch = [&patch[..], &["-n", &fleet.namespace]].concat();
    wait::until("the newer version to be served", || {
        Ok(cluster.kubectl(&patch)?.status.success().then_some(()))
    })?;
    wait::until("pods that go by what was written as the newer version", || {
        let pod = dry_pod(&cluster, &fleet.namespace)?.object()?;
        Ok(pod.to_string().contains("\"newer\"").then_some(()))
    })?;
    become_good()?;

    crd["spec"]["versions"][0]["served"] = json!(false);
    apply_crd(&cluster, &crd)?;
    become_denied()?;
    crd["spec"]["versions"][0]["served"] = json!(true);
    apply_crd(&cluster, &crd)?;
    become_good()?;

    cluster.kubectl(&["delete", "crd", "arkmemories.arkonis.dev"])?.ok()?;
    become_denied()?;
    install_crds(&cluster)?;
    cluster.block_on(create(&cluster.client(), &fleet.namespace, &memory("notes"), ""))?.object()?;
    become_good()?;

    let ready = fleet.replicas[0].probe("/readyz");
    ensure!(ready.as_ref().is_some_and(|(status, _)| *status == 200), "{ready:?}");
    load.stop()?;
    Ok(())
}

/// Waits until some calls have ended as wanted; none may have ended in a pod without its memory.
fn until_any(load: &Load, what: &str, wanted: fn(&Tally) -> bool) -> Result<()> {
    load.take();
    wait::until(what, || {
        let calls = load.take();
        ensure!(calls.failed_as(BARE) == 0, "{calls}");
        Ok(wanted(&calls).then_some(()))
    })
}

fn memory_crd(cluster: &ControlPlane) -> Result<Value> {
    let get = ["get", "crd", "arkmemories.arkonis.dev", "--output=json"];
    let crd: Value = serde_json::from_str(&cluster.kubectl(&get)?.ok()?.stdout)?;
    let (api_version, kind) = (&crd["apiVersion"], &crd["kind"]);
    let metadata = json!({"name": crd["metadata"]["name"]});
    Ok(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": crd["spec"]}))
}

fn apply_crd(cluster: &ControlPlane, crd: &Value) -> Result<()> {
    cluster.admin().apply(&crd.to_string())?;
    Ok(())
}

fn knows(memgate: &Webhook, objects: u64) -> Result<()> {
    let what = format!("memgate to know {objects} objects");
    let known = wait::until(&what, || Ok((known_objects(memgate)? == objects).then_some(())));
    known.map_err(|error| anyhow::anyhow!("{error:#}\n{}", memgate.log()))
}

fn dry_pod(cluster: &ControlPlane, namespace: &str) -> Result<Answer> {
    let pod = pod("scout", "scout", &[]);
    cluster.block_on(create(&cluster.client(), namespace, &pod, "?dryRun=All"))
}
