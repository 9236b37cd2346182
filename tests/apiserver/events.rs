//! Events on agents whose pods are admitted without their memory. Each trial has a memgate of its
//! own, so that its metrics and its log are about nothing else.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::{MEMGATE, documents, memgate, register, wait_until_asked_about_pods},
    request::{create, send},
    samples::{agent, env_names, pod, pod_spec},
    support::{
        control_plane::ControlPlane,
        wait,
        webhook::{Serve, Webhook},
    },
};

/// How many pods of one agent are admitted without their memory.
const REPLICAS: usize = 100;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("events::tell_of_pods_without_their_memory", tell),
        Trial::new("events::that_may_not_be_written_hold_up_nothing", may_not),
        Trial::new("events::can_be_switched_off", switched_off),
    ]
}

fn tell(fixture: &Fixture) -> Result<()> {
    let scene = Scene::new(fixture, "events", true, &["--reference-grace", "0"])?;
    let Scene { cluster, namespace, memgate } = &scene;
    // An event about this one would be written first.
    let dry = scene.create(&pod("ranger", "ranger", &[]), "?dryRun=All")?;
    ensure!(env_names(&dry) == ["AGENT_MODEL"], "{dry}");

    let labels = json!({"arkonis.dev/deployment": "scout"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "scout-agent"},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
        },
    });
    scene.create(&deployment, "")?;
    let reviews = REPLICAS as u64;
    wait::until("an event of each pod", || {
        let all = ["written", "duplicate", "dropped", "failed"].map(|result| count(memgate, result));
        Ok((all.iter().sum::<u64>() >= reviews && count(memgate, "written") > 0).then_some(()))
    })?;
    ensure!((count(memgate, "written"), count(memgate, "dropped")) == (1, 0), "{}", memgate.log());

    let events = scene.events()?;
    ensure!(events.len() == 1, "one Event of {REPLICAS} pods: {events:?}");
    let event = &events[0];
    let agent = scene.get("arkagents", "scout")?;
    ensure!(event["regarding"]["kind"] == "ArkAgent", "{event}");
    ensure!(event["regarding"]["uid"] == agent["metadata"]["uid"], "{event}");
    let note = format!(
        "a pod starts without its memory: metadata.labels[arkonis.dev/deployment]: ArkMemory \"notes\" not found in namespace \"{namespace}\" \
         [arkonis/pod-memory-not-found]; see \"memgate explain arkonis/pod-memory-not-found\""
    );
    ensure!(event["note"].as_str().is_some_and(|text| text.starts_with(&note)), "{event}");
    // Where people look.
    for show in [
        &["describe", "arkagent", "scout", "-n", namespace][..],
        &["events", "--for", "arkagent/scout", "-n", namespace],
    ] {
        let shown = cluster.kubectl(show)?.ok()?.stdout;
        ensure!(shown.contains("MemoryNotInjected") && shown.contains(&note), "{show:?}: {shown}");
    }
    Ok(())
}

fn may_not(fixture: &Fixture) -> Result<()> {
    let scene = Scene::new(fixture, "unheard", false, &[])?;
    for name in ["scout", "ranger"] {
        scene.create(&pod(name, name, &[]), "")?;
    }
    wait::until("both Events to fail", || Ok((count(&scene.memgate, "failed") == 2).then_some(())))?;
    let log = scene.memgate.log();
    ensure!(log.matches("an Event could not be written").count() == 1, "{log}");
    ensure!(log.contains("events.events.k8s.io is forbidden"), "{log}");
    // It goes on, and says so to the creator of the pod.
    scene.create(&pod("another", "scout", &[]), "")?;
    ensure!(scene.memgate.probe("/readyz").is_some_and(|(status, _)| status == 200), "{log}");
    ensure!(scene.events()?.is_empty());
    Ok(())
}

fn switched_off(fixture: &Fixture) -> Result<()> {
    let scene = Scene::new(fixture, "silent", true, &["--no-events"])?;
    scene.create(&pod("scout", "scout", &[]), "")?;
    let (_, metrics) = scene.memgate.probe("/metrics").context("no metrics")?;
    let mut events = metrics.lines().filter(|line| line.starts_with("memgate_events_total{"));
    ensure!(events.all(|line| line.ends_with(" 0")), "{metrics}");
    ensure!(scene.events()?.is_empty());
    Ok(())
}

/// A namespace with two agents without their memory, and a memgate of its own.
struct Scene<'w> {
    cluster: &'w ControlPlane,
    namespace: String,
    memgate: Webhook,
}

impl<'w> Scene<'w> {
    fn new(fixture: &'w Fixture, prefix: &str, may_write: bool, flags: &[&str]) -> Result<Self> {
        let cluster = fixture.cluster()?;
        // Another one, which is asked about other namespaces, has brought the CRDs.
        fixture.memgate()?;
        let namespace = cluster.fresh_namespace(prefix)?;
        let serve = Serve::new(MEMGATE).kubeconfig(&account(cluster, &namespace, may_write)?);
        let serve = flags.iter().fold(serve, Serve::arg);
        let memgate = serve.ready()?;
        let only = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]});
        register(cluster, &memgate.endpoint(), &namespace, &only)?;
        wait_until_asked_about_pods(cluster, &namespace)?;
        let scene = Self { cluster, namespace, memgate };
        for name in ["scout", "ranger"] {
            scene.create(&agent(name, "notes"), "")?;
        }
        Ok(scene)
    }

    fn create(&self, object: &Value, query: &str) -> Result<Value> {
        self.cluster.block_on(create(&self.cluster.client(), &self.namespace, object, query))?.object()
    }

    fn get(&self, plural: &str, name: &str) -> Result<Value> {
        let path = format!("/apis/arkonis.dev/v1alpha1/namespaces/{}/{plural}/{name}", self.namespace);
        self.cluster.block_on(send(&self.cluster.client(), Method::GET, &path, None))?.object()
    }

    /// The Events that memgate wrote.
    fn events(&self) -> Result<Vec<Value>> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", self.namespace);
        let list = self.cluster.block_on(send(&self.cluster.client(), Method::GET, &path, None))?.object()?;
        let all = list["items"].as_array().context("a list has items")?.iter();
        Ok(all.filter(|event| event["reportingController"] == "memgate").cloned().collect())
    }
}

/// What memgate may do, for a user of this name, with or without Events.
fn account(cluster: &ControlPlane, name: &str, may_write: bool) -> Result<PathBuf> {
    let printed = documents(&memgate(&["manifests", "--only", "rbac"])?);
    let role = printed.into_iter().find(|object| object["kind"] == "ClusterRole");
    let mut role = role.context("there is no role")?;
    role["metadata"]["name"] = json!(name);
    let rules = role["rules"].as_array_mut().context("the role has no rules")?;
    rules.retain(|rule| rule["apiGroups"] != json!(["events.k8s.io"]));
    if may_write {
        let events = json!({"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]});
        rules.push(events);
    }
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    });
    for object in [role, binding] {
        cluster.admin().apply(&object.to_string())?;
    }
    cluster.user_kubeconfig(name, &[])
}

/// How many events ended so.
fn count(memgate: &Webhook, result: &str) -> u64 {
    let start = format!("memgate_events_total{{result=\"{result}\"}} ");
    let (_, metrics) = memgate.probe("/metrics").unwrap_or_default();
    metrics.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok()).unwrap_or_default()
}
