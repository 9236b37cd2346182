//! That no pod is valid without memgate and refused with it: generated pods of agents, sent as dry runs where memgate is
//! not asked and where it is.

use anyhow::{Result, ensure};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    request::create,
    samples::{agent, memory},
};

const PODS: usize = 5_000;
const AT_ONCE: usize = 16;
const SEED: u64 = 28;

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::new("valid::no_pod_is_refused_for_its_memory", no_pod_is_refused)]
}

fn no_pod_is_refused(fixture: &Fixture) -> Result<()> {
    let cluster = fixture.cluster()?;
    let bare = fixture.namespace("valid-bare", &[("memgate.dev/inject", "disabled")])?;
    let full = fixture.namespace("valid-full", &[])?;
    let client = cluster.client();
    let sympozium = json!({
        "apiVersion": "sympozium.ai/v1alpha1", "kind": "Agent", "metadata": {"name": "triage"},
        "spec": {"agents": {"default": {"model": "m"}}, "skills": [{"skillPackRef": "memory"}]},
    });
    let pack = json!({
        "apiVersion": "sympozium.ai/v1alpha1", "kind": "SkillPack", "metadata": {"name": "memory"},
        "spec": {"skills": [{"name": "memory", "content": "m"}], "sidecar": {"image": "m"}},
    });
    for object in [memory("notes"), agent("scout", "notes"), sympozium, pack] {
        cluster.block_on(create(&client, &full, &object, ""))?.object()?;
    }
    let mut random = Random(SEED);
    let pods: Vec<Value> = (0..PODS).map(|number| random.pod(number)).collect();
    let tried = stream::iter(&pods).map(|pod| {
        let (client, bare, full) = (&client, &bare, &full);
        async move {
            if !create(client, bare, pod, "?dryRun=All").await?.granted() {
                return Ok((false, false, None));
            }
            let answer = create(client, full, pod, "?dryRun=All").await?;
            let refused = (!answer.granted()).then(|| format!("{}\n{pod}", answer.body["message"]));
            let changed = answer.body["metadata"]["annotations"]["memgate.dev/injected"].is_string();
            anyhow::Ok((true, changed, refused))
        }
    });
    let tried: Vec<_> = cluster.block_on(tried.buffer_unordered(AT_ONCE).collect::<Vec<_>>());
    let tried = tried.into_iter().collect::<Result<Vec<_>>>()?;
    let (valid, changed) = (tried.iter().filter(|it| it.0).count(), tried.iter().filter(|it| it.1).count());
    let refused: Vec<&String> = tried.iter().filter_map(|it| it.2.as_ref()).collect();
    println!("{PODS} pods: {valid} valid, {changed} with memory, {} refused with it", refused.len());
    ensure!(refused.is_empty(), "{} refused, such as {}", refused.len(), refused[0]);
    ensure!(valid > PODS / 2 && changed > PODS / 4, "{valid} of {PODS} are valid, {changed} get memory");
    Ok(())
}

/// Xorshift, so that each run has the same pods.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap_or(0)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of(&mut self, values: &[Value]) -> Value {
        values[self.below(values.len())].clone()
    }

    fn resources(&mut self) -> Value {
        let (cpu, memory) =
            ([json!("10m"), json!("60m"), json!(1)], [json!("16Mi"), json!("70Mi"), json!("1Gi")]);
        let mut resources = json!({});
        for field in ["requests", "limits"] {
            if self.one_in(2) {
                resources[field]["cpu"] = self.of(&cpu);
            }
            if self.one_in(2) {
                resources[field]["memory"] = self.of(&memory);
            }
        }
        resources
    }

    fn container(&mut self, name: &str) -> Value {
        let mut container = json!({"name": name, "image": "a"});
        if self.one_in(3) {
            container["resources"] = self.resources();
        }
        if self.one_in(4) {
            container["env"] =
                json!([{"name": "MEMORY_SERVER_URL", "value": "http://x"}, {"name": "INSTANCE_NAME"}]);
        }
        if self.one_in(6) {
            container["ports"] = json!([{"name": "http", "containerPort": 8080}]);
        }
        if self.one_in(12) {
            container["securityContext"] = json!({"windowsOptions": {"hostProcess": true}});
        }
        container
    }

    fn pod(&mut self, number: usize) -> Value {
        let labels = if self.one_in(4) {
            json!({"arkonis.dev/deployment": "scout"})
        } else {
            json!({"sympozium.ai/component": "agent-run", "sympozium.ai/instance": "triage"})
        };
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("pod-{number}"), "labels": labels},
            "spec": {"containers": [self.container("agent")]},
        });
        let spec = &mut pod["spec"];
        if self.one_in(4) {
            let sidecar = self.container("second");
            spec["containers"].as_array_mut().expect("a list").push(sidecar);
        }
        if self.one_in(3) {
            let name = ["first", "memory-server", "wait-for-memory"][self.below(3)];
            let mut init = self.container(name);
            if self.one_in(2) {
                init["restartPolicy"] = json!("Always");
            }
            spec["initContainers"] = json!([init]);
        }
        if self.one_in(2) {
            spec["resources"] = self.resources();
        }
        if self.one_in(5) {
            let system = ["linux", "windows"][self.below(2)];
            spec["os"] = json!({"name": system});
        }
        if self.one_in(5) {
            let contexts = [
                json!({"runAsUser": 0}),
                json!({"fsGroup": 7}),
                json!({"runAsNonRoot": true, "runAsUser": 5}),
                json!({"windowsOptions": {"runAsUserName": "x"}}),
                json!({"windowsOptions": {"hostProcess": true}}),
            ];
            spec["securityContext"] = self.of(&contexts);
        }
        if self.one_in(6) {
            spec["hostNetwork"] = json!(true);
        }
        if self.one_in(5) {
            let volumes = [
                json!([{"name": "ipc", "emptyDir": {}}]),
                json!([{"name": "memory-db", "emptyDir": {}}]),
                json!([{"name": "harness-home", "emptyDir": {}}]),
                json!([]),
            ];
            spec["volumes"] = self.of(&volumes);
        }
        if self.one_in(20) {
            // The limit of all annotations is 262,144 bytes.
            let length = 262_144 - 3 - self.below(700);
            pod["metadata"]["annotations"] = json!({"a/b": "x".repeat(length)});
        }
        if self.one_in(15) {
            pod["metadata"]["annotations"] = json!({"memgate.dev/injected": "{\"family\":\"sympozium\",\"memory\":\"x\",\"env\":{\"a\":[\"B\"]}}"});
        }
        pod
    }
}
