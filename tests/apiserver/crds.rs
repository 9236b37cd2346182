//! That CRDs may come and go while memgate runs. On a cluster of its own: others need the CRDs.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{
    installed::{
        MEMGATE, install_account, install_crds, known_objects, register, wait_until_asked_about_pods,
    },
    request::{Answer, create},
    scene::{COMPLETE, agent, env_names, memory, pod},
    support::{
        control_plane::ControlPlane,
        wait,
        webhook::{Serve, Webhook},
    },
    world::{Case, World},
};

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::new("crds::come_and_go_while_memgate_runs", come_and_go)]
}

fn come_and_go(_: &World) -> Result<()> {
    let cluster = ControlPlane::start()?;
    let namespace = cluster.fresh_namespace("agents")?;
    // There is no CRD yet, and memgate is ready nonetheless.
    let memgate = Serve::new(MEMGATE).kubeconfig(&install_account(&cluster)?).ready()?;
    let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]});
    register(&cluster, &memgate.endpoint(), "memgate", &only)?;
    wait_until_asked_about_pods(&cluster, &namespace)?;
    let lonely = dry_pod(&cluster, &namespace)?;
    // Namespaces need no CRD.
    let others = known_objects(&memgate)?;
    let not_found =
        format!("ArkAgent \"scout\" not found in namespace \"{namespace}\" [arkonis/pod-agent-not-found]");
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

fn knows(memgate: &Webhook, objects: u64) -> Result<()> {
    let what = format!("memgate to know {objects} objects");
    let known = wait::until(&what, || Ok((known_objects(memgate)? == objects).then_some(())));
    known.map_err(|error| anyhow::anyhow!("{error:#}\n{}", memgate.log()))
}

fn dry_pod(cluster: &ControlPlane, namespace: &str) -> Result<Answer> {
    let pod = pod("scout", "scout", &[]);
    cluster.block_on(create(&cluster.client(), namespace, &pod, "?dryRun=All"))
}
