//! That workloads of every platform get their memory: as its controller makes them, applied in one
//! go with everything they refer to, and with webhooks of others around memgate.
//!
//! ```text
//! ark, orloj, orka, sympozium   what each platform has in a cluster, and what its pods get
//! other_webhooks                two webhooks of others, around memgate
//! ```

pub(crate) mod ark;
mod orka;
pub(crate) mod orloj;
mod other_webhooks;
pub(crate) mod sympozium;

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};
use axum::http::Method;
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    installed::GUARDED,
    request::{path, send},
    support::{control_plane::ControlPlane, wait},
};

/// How often everything is applied in one go.
const RACES: usize = 20;

/// The label by which Pod Security refuses what is not restricted.
const RESTRICTED: (&str, &str) = ("pod-security.kubernetes.io/enforce", "restricted");

static NAMESPACES: AtomicUsize = AtomicUsize::new(0);

/// The objects of a cluster in which a platform runs one agent.
pub(crate) struct Scene {
    /// Namespaces first, and then what the platform's users wrote.
    pub(crate) objects: Vec<Value>,
    /// What the platform's controller makes of it.
    pub(crate) workload: Value,
    /// The container that gets the variables.
    pub(crate) container: &'static str,
    /// The variables that are added, whole, before all others.
    pub(crate) env: Vec<Value>,
    /// The names of all init containers.
    pub(crate) init_containers: Vec<&'static str>,
    /// The names of all volumes.
    pub(crate) volumes: Vec<&'static str>,
    /// The paths of all mounts of the container.
    pub(crate) mounts: Vec<&'static str>,
}

/// Makes a scene in a namespace that does not exist yet.
type Setting = fn(&str) -> Scene;

pub(crate) fn trials() -> Vec<Trial> {
    let settings: [(&str, Setting); 6] = [
        ("ark", ark::scene),
        ("orloj", orloj::scene),
        ("orloj_elsewhere", orloj::scene_elsewhere),
        ("orka", orka::scene),
        ("sympozium_team", sympozium::team),
        ("sympozium_sidecar", sympozium::sidecar),
    ];
    let of_setting = |(name, setting): (&str, Setting)| {
        let races = format!("families::{name}::gets_its_memory_when_applied_in_one_go");
        let beside = format!("families::{name}::keeps_its_memory_beside_other_webhooks");
        [
            Trial::new(races, move |fixture| applied_in_one_go(fixture, setting)),
            Trial::new(beside, move |fixture| other_webhooks::others(fixture, setting)),
        ]
    };
    settings.into_iter().flat_map(of_setting).chain(ark::trials()).collect()
}

/// Objects and workload in one file, time and again: the watches of memgate cannot have shown it.
fn applied_in_one_go(fixture: &Fixture, setting: Setting) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let scenes: Vec<Scene> = (0..RACES).map(|_| setting(&fresh_name("applied"))).collect();
    for scene in &scenes {
        let documents: Vec<String> =
            scene.objects.iter().chain([&scene.workload]).map(Value::to_string).collect();
        cluster.admin().apply(&documents.join("\n---\n"))?;
    }
    let failed =
        scenes.iter().filter_map(|scene| pod_of(cluster, scene).and_then(|pod| check(scene, &pod)).err());
    let failed: Vec<String> = failed.map(|error| format!("{error:#}")).collect();
    ensure!(
        failed.is_empty(),
        "{} of {RACES} pods have not got it all:\n{}",
        failed.len(),
        failed.join("\n")
    );
    // Only pods are changed: the workload is its controller's.
    for scene in &scenes {
        let stored = stored(cluster, &scene.workload)?;
        let template = &stored["spec"]["template"];
        holds(template, &scene.workload["spec"]["template"]).context("the workload lost something")?;
        ensure!(
            template["spec"]["initContainers"].as_array().map(Vec::len) == own_inits(scene),
            "{template}"
        );
        let env = container(&template["spec"], scene.container)?["env"].as_array().map(Vec::len);
        let own = container(&scene.workload["spec"]["template"]["spec"], scene.container)?;
        ensure!(env == own["env"].as_array().map(Vec::len), "the workload was changed: {template}");
    }
    scenes.iter().try_for_each(|scene| clear(fixture, scene))
}

fn own_inits(scene: &Scene) -> Option<usize> {
    scene.workload["spec"]["template"]["spec"]["initContainers"].as_array().map(Vec::len)
}

/// Takes a scene away: it counts in every namespace who uses what.
fn clear(fixture: &Fixture, scene: &Scene) -> Result<()> {
    let (cluster, client) = (fixture.cluster()?, fixture.memgate()?.exempt_client());
    for object in scene.objects.iter().filter(|object| object["kind"] != "Namespace") {
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().context("an object has no namespace")?;
        let path = path(object, namespace, metadata["name"].as_str())?;
        cluster.block_on(send(&client, Method::DELETE, &path, None))?.object()?;
    }
    Ok(())
}

/// A name that no other namespace has.
fn fresh_name(prefix: &str) -> String {
    format!("{prefix}-{}-own", NAMESPACES.fetch_add(1, Ordering::Relaxed))
}

/// A namespace about which memgate is asked.
fn namespace(name: &str, labels: &[(&str, &str)], annotations: &Value) -> Value {
    let mut namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {GUARDED.0: GUARDED.1}, "annotations": annotations},
    });
    for (key, value) in labels {
        namespace["metadata"]["labels"][key] = json!(value);
    }
    namespace
}

pub(crate) fn literal(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

fn stored(cluster: &ControlPlane, object: &Value) -> Result<Value> {
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().context("an object has no namespace")?;
    let path = path(object, namespace, metadata["name"].as_str())?;
    cluster.block_on(send(&cluster.client(), Method::GET, &path, None))?.object()
}

/// The pod that controllers made of the workload.
fn pod_of(cluster: &ControlPlane, scene: &Scene) -> Result<Value> {
    let metadata = &scene.workload["metadata"];
    let namespace = metadata["namespace"].as_str().context("a workload has no namespace")?;
    let name = metadata["name"].as_str().context("a workload has no name")?;
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    wait::until(&format!("the pod of {name} in {namespace}"), || {
        let list = cluster.block_on(send(&cluster.client(), Method::GET, &path, None))?.object()?;
        let pods = list["items"].as_array().context("a list has items")?;
        // The pods of a Deployment are those of its ReplicaSet, whose name begins with its own.
        let owner = |pod: &&Value| {
            let owner = pod["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default();
            owner.starts_with(name)
        };
        Ok(pods.iter().find(owner).cloned())
    })
}

/// What the pod has to be: everything that its template says, what memgate adds, and nothing more.
pub(crate) fn check(scene: &Scene, pod: &Value) -> Result<()> {
    let template = &scene.workload["spec"]["template"];
    holds(&pod["spec"], &template["spec"]).with_context(|| format!("the pod lost something: {pod}"))?;
    holds(&pod["metadata"]["labels"], &template["metadata"]["labels"]).context("the pod lost a label")?;

    let container = container(&pod["spec"], scene.container)?;
    let own = self::container(&template["spec"], scene.container)?["env"].as_array();
    let env: Vec<&Value> = scene.env.iter().chain(own.into_iter().flatten()).collect();
    let got: Vec<&Value> = container["env"].as_array().into_iter().flatten().collect();
    ensure!(got == env, "the variables are {}, not {}", json!(got), json!(env));
    let rows = [
        ("init containers", names(&pod["spec"]["initContainers"], "name"), &scene.init_containers),
        ("volumes", names(&pod["spec"]["volumes"], "name"), &scene.volumes),
        ("mounts", names(&container["volumeMounts"], "mountPath"), &scene.mounts),
    ];
    for (what, got, wanted) in rows {
        ensure!(got == *wanted, "the {what} are {got:?}, not {wanted:?}");
    }
    let note = pod["metadata"]["annotations"]["memgate.dev/injected"].as_str().context("no note")?;
    let note: Value = serde_json::from_str(note)?;
    ensure!(note["family"].is_string(), "{note}");
    for variable in &scene.env {
        let name = variable["name"].as_str().unwrap_or_default();
        ensure!(
            note.to_string().matches(&format!("\"{name}\"")).count() == 1,
            "{name} is not once in {note}"
        );
    }
    Ok(())
}

fn container<'v>(spec: &'v Value, name: &str) -> Result<&'v Value> {
    let containers = spec["containers"].as_array().into_iter().flatten();
    containers.into_iter().find(|container| container["name"] == name).context("the container is missing")
}

fn names<'v>(list: &'v Value, field: &str) -> Vec<&'v str> {
    list.as_array().into_iter().flatten().filter_map(|item| item[field].as_str()).collect()
}

/// That a value holds everything that another one does; lists may have more elements in between.
fn holds(got: &Value, wanted: &Value) -> Result<()> {
    match (got, wanted) {
        (Value::Object(got), Value::Object(wanted)) => wanted.iter().try_for_each(|(key, wanted)| {
            let got = got.get(key).with_context(|| format!("{key} is missing"))?;
            holds(got, wanted).context(key.clone())
        }),
        (Value::Array(got), Value::Array(wanted)) => {
            let mut rest = got.iter();
            wanted.iter().try_for_each(|wanted| {
                let found = rest.any(|got| holds(got, wanted).is_ok());
                ensure!(found, "{wanted} is missing, or stands elsewhere");
                Ok(())
            })
        }
        (got, wanted) if got == wanted => Ok(()),
        (got, wanted) => bail!("it is {got}, not {wanted}"),
    }
}
