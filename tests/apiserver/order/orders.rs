//! Agent, memory and workload in every order, two seconds apart.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Delays, created};
use crate::{
    families::{self, Scene, literal, orloj, sympozium},
    fixture::{Fixture, Trial},
    order_cluster::OrderCluster,
    samples::{agent, memory, pod_spec},
};

/// How long after each other they are applied.
const STEP: Duration = Duration::from_secs(2);

/// What is applied first, second and third.
const ORDERS: [[Part; 3]; 6] = {
    use Part::{Agent, Memory, Workload};
    [
        [Agent, Memory, Workload],
        [Agent, Workload, Memory],
        [Memory, Agent, Workload],
        [Memory, Workload, Agent],
        [Workload, Agent, Memory],
        [Workload, Memory, Agent],
    ]
};

/// A part of what belongs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// What the pod names.
    Agent,
    /// What that leads to.
    Memory,
    /// What makes the pod.
    Workload,
}

/// A family, its scene, and the kinds that are its agent.
type Family = (&'static str, fn(&str) -> Scene, &'static [&'static str]);

/// One family in one order.
struct Try {
    what: String,
    order: [Part; 3],
    scene: Scene,
    /// The kinds that are its agent; all others are its memory.
    agents: &'static [&'static str],
}

pub(super) fn trials() -> Vec<Trial> {
    vec![Trial::new("order::every_order_of_agent_memory_and_workload_works", every_order)]
}

fn every_order(fixture: &Fixture) -> Result<()> {
    let order = fixture.order()?;
    let mut tries = Vec::new();
    for parts in ORDERS {
        let families: [Family; 4] = [
            ("arkonis", arkonis_scene, &["ArkAgent"]),
            // There is no agent: a Memory leads to a Service.
            ("ark", ark_scene, &["Memory"]),
            ("orloj", orloj::scene, &["Agent"]),
            ("sympozium", sympozium::team, &["Agent", "AgentRun"]),
        ];
        for (family, scene, agents) in families {
            let scene = scene(&order.namespace("")?);
            tries.push(Try { what: format!("{family} {parts:?}"), order: parts, scene, agents });
        }
    }
    let start = Instant::now();
    for step in 0..3 {
        thread::sleep((STEP * step).saturating_sub(start.elapsed()));
        for one in &tries {
            one.apply(order, one.order[step as usize])?;
        }
    }
    let mut delays = Delays::default();
    for one in &tries {
        one.check(order, &mut delays)?;
    }
    delays.finish("agent, memory and workload in every order")
}

impl Try {
    fn namespace(&self) -> &str {
        self.scene.workload["metadata"]["namespace"].as_str().unwrap_or_default()
    }

    /// The objects of a part; the namespace is there already.
    fn objects(&self, part: Part) -> Vec<&Value> {
        let is_of = |object: &&Value| {
            let kind = object["kind"].as_str().unwrap_or_default();
            kind != "Namespace" && self.agents.contains(&kind) == (part == Part::Agent)
        };
        match part {
            Part::Workload => vec![&self.scene.workload],
            Part::Agent | Part::Memory => self.scene.objects.iter().filter(is_of).collect(),
        }
    }

    fn apply(&self, order: &OrderCluster, part: Part) -> Result<()> {
        self.objects(part).into_iter().try_for_each(|object| {
            order.create(self.namespace(), object)?;
            Ok(())
        })
    }

    /// That the pod is the only one and has it all, and how long after the last object it came.
    fn check(&self, order: &OrderCluster, delays: &mut Delays) -> Result<()> {
        let pods = order.wait_for_pods(self.namespace(), 1)?;
        ensure!(pods.len() == 1, "{}: {} pods", self.what, pods.len());
        families::check(&self.scene, &pods[0]).map_err(|error| error.context(self.what.clone()))?;
        let mut last = i64::MIN;
        for part in self.order {
            for object in self.objects(part) {
                last = last.max(created(&order.get(self.namespace(), object)?)?);
            }
        }
        delays.add(created(&pods[0])? - last);
        Ok(())
    }
}

fn deployment(home: &str, labels: &Value, annotations: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "scout-agent", "namespace": home},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod_spec()},
        },
    })
}

fn arkonis_scene(home: &str) -> Scene {
    let url = json!({"secretKeyRef": {"name": "notes-redis", "key": "REDIS_URL"}});
    Scene {
        objects: vec![agent("scout", "notes"), memory("notes")],
        workload: deployment(home, &json!({"arkonis.dev/deployment": "scout"}), &json!({})),
        container: "agent",
        env: vec![
            literal("AGENT_MEMORY_BACKEND", "redis"),
            json!({"name": "AGENT_MEMORY_REDIS_URL", "valueFrom": url}),
            literal("AGENT_MEMORY_REDIS_TTL", "3600"),
        ],
        init_containers: vec![],
        volumes: vec![],
        mounts: vec![],
    }
}

fn ark_scene(home: &str) -> Scene {
    let spec = json!({"address": {"valueFrom": {"serviceRef": {"name": "ark-broker", "port": "http"}}}});
    let objects = vec![
        json!({
            "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory", "metadata": {"name": "default"},
            "spec": spec,
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "ark-broker"},
            "spec": {"clusterIP": "None", "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        }),
    ];
    Scene {
        objects,
        workload: deployment(home, &json!({"app": "engine"}), &json!({"memgate.dev/ark-memory": "default"})),
        container: "agent",
        env: vec![
            literal("ARK_MEMORY_NAME", "default"),
            literal("ARK_MEMORY_NAMESPACE", home),
            literal("ARK_MEMORY_URL", &format!("http://ark-broker.{home}.svc.cluster.local:80")),
        ],
        init_containers: vec![],
        volumes: vec![],
        mounts: vec![],
    }
}
