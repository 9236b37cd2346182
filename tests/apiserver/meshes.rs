//! Pods of Sympozium that a mesh changes, with its webhook called before memgate's and behind it, as a real apiserver calls
//! them: the pod that is stored has its init containers in an order in which it starts.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Trial},
    request::{create, path, send},
    stub::Stub,
    support::wait,
};

/// The annotation of a pod that the mesh has changed.
const SEEN: &str = "mesh.example.com/seen";
/// Names by which a configuration is called before `memgate` and behind it.
const BEFORE: &str = "a-mesh";
const BEHIND: &str = "the-mesh";

/// What the webhook of a mesh does to a pod.
type Change = fn(&mut Value);

/// The memories of the agent.
#[derive(Clone, Copy)]
enum Memories {
    /// Private and shared memory, both services.
    Services,
    /// The private one in a sidecar, and the shared one.
    Sidecar,
}
use Memories::{Services, Sidecar};

/// A mesh, when it is called, the memories of the agent, and the init containers that are stored.
type Row = (&'static str, Change, &'static str, Memories, &'static [&'static str]);

const ROWS: [Row; 10] = [
    (
        "classic-first",
        classic,
        BEFORE,
        Services,
        &["wait-for-memory", "own", "wait-for-shared-memory", "istio-init"],
    ),
    (
        "classic-last",
        classic,
        BEHIND,
        Services,
        &["wait-for-memory", "own", "wait-for-shared-memory", "istio-init"],
    ),
    (
        "native-first",
        native,
        BEFORE,
        Services,
        &["istio-init", "istio-proxy", "wait-for-memory", "own", "wait-for-shared-memory"],
    ),
    (
        "native-last",
        native,
        BEHIND,
        Services,
        &["istio-init", "istio-proxy", "wait-for-memory", "own", "wait-for-shared-memory"],
    ),
    (
        "classic-sidecar",
        classic,
        BEFORE,
        Sidecar,
        &["memory-server", "own", "wait-for-shared-memory", "istio-init"],
    ),
    (
        "classic-dropped",
        classic,
        BEHIND,
        Sidecar,
        &["memory-server", "own", "wait-for-shared-memory", "istio-init"],
    ),
    (
        "native-sidecar",
        native,
        BEFORE,
        Sidecar,
        &["istio-init", "istio-proxy", "memory-server", "own", "wait-for-shared-memory"],
    ),
    (
        "native-dropped",
        native,
        BEHIND,
        Sidecar,
        &["istio-init", "istio-proxy", "memory-server", "own", "wait-for-shared-memory"],
    ),
    ("plugin-first", plugin, BEFORE, Services, &["istio-validation", "own"]),
    ("plugin-last", plugin, BEHIND, Services, &["istio-validation", "own"]),
];

pub(crate) fn trials() -> Vec<Trial> {
    // Native sidecars.
    let trial = |row: Row| Trial::new(format!("meshes::{}", row.0), move |fixture| stored(fixture, row));
    ROWS.into_iter().map(|row| trial(row).since((1, 29))).collect()
}

/// The list of init containers of a pod, for a change.
fn inits(pod: &mut Value) -> &mut Vec<Value> {
    let list = &mut pod["spec"]["initContainers"];
    if !list.is_array() {
        *list = json!([]);
    }
    list.as_array_mut().expect("a list")
}

fn add_proxy(pod: &mut Value) {
    let containers = pod["spec"]["containers"].as_array_mut().expect("a pod has containers");
    containers.push(json!({"name": "istio-proxy", "image": "proxy"}));
}

/// Puts what redirects last. It knows no field `restartPolicy` of containers, as webhooks with older types.
fn classic(pod: &mut Value) {
    drop_restart_policies(pod);
    let redirector = json!({"name": "istio-init", "image": "proxy",
        "securityContext": {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}}});
    inits(pod).push(redirector);
    add_proxy(pod);
}

/// Puts its proxy in front.
fn native(pod: &mut Value) {
    drop_restart_policies(pod);
    let proxy = json!({"name": "istio-proxy", "image": "proxy", "restartPolicy": "Always"});
    inits(pod).splice(..0, [json!({"name": "istio-init", "image": "proxy"}), proxy]);
}

/// Has a CNI plugin redirect.
fn plugin(pod: &mut Value) {
    inits(pod).insert(0, json!({"name": "istio-validation", "image": "proxy"}));
    add_proxy(pod);
}

fn drop_restart_policies(pod: &mut Value) {
    for init in inits(pod).iter_mut().filter_map(Value::as_object_mut) {
        init.remove("restartPolicy");
    }
}

/// The objects of the agent.
fn objects(memories: Memories) -> [Value; 3] {
    let object = |kind: &str, name: &str, labels: Value, spec: Value| {
        json!({"apiVersion": "sympozium.ai/v1alpha1", "kind": kind,
            "metadata": {"name": name, "labels": labels}, "spec": spec})
    };
    let labels = json!({"sympozium.ai/ensemble": "newsroom", "sympozium.ai/agent-config": "scout"});
    let mut pack = json!({"skills": [{"name": "memory", "content": "Use memory_search."}]});
    if matches!(memories, Sidecar) {
        pack["sidecar"] = json!({"image": "server"});
    }
    let agent = json!({"agents": {"default": {"model": "m"}}, "skills": [{"skillPackRef": "memory"}],
        "memory": {"enabled": false}});
    let ensemble = json!({"agentConfigs": [{"name": "scout", "systemPrompt": "p"}],
        "sharedMemory": {"enabled": true}});
    [
        object("SkillPack", "memory", json!({}), pack),
        object("Ensemble", "newsroom", json!({}), ensemble),
        object("Agent", "scout", labels, agent),
    ]
}

/// Registers the mesh for a namespace.
fn register(fixture: &Fixture, namespace: &str, name: &str, change: Change) -> Result<Stub> {
    let stub = Stub::start(move |request| {
        let mut pod = request["object"].clone();
        if pod["metadata"]["annotations"][SEEN].is_string() {
            return json!({"allowed": true});
        }
        pod["metadata"]["annotations"][SEEN] = json!("yes");
        change(&mut pod);
        let patch = json!([
            {"op": "add", "path": "/metadata/annotations", "value": pod["metadata"]["annotations"]},
            {"op": "replace", "path": "/spec", "value": pod["spec"]},
        ]);
        json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64_STANDARD.encode(patch.to_string())})
    })?;
    // As the webhook of Istio: what is added behind it is not reordered.
    let fields = json!({"reinvocationPolicy": "Never"});
    stub.register(fixture.cluster()?, namespace, &format!("{name}-{namespace}"), &fields)?;
    Ok(stub)
}

fn stored(fixture: &Fixture, (row, change, order, memories, expected): Row) -> Result<()> {
    let cluster = fixture.cluster()?;
    let namespace = fixture.namespace(row, &[])?;
    let client = cluster.client();
    for object in objects(memories) {
        cluster.block_on(create(&client, &namespace, &object, ""))?.object()?;
    }
    let _stub = register(fixture, &namespace, order, change)?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "scout-1",
            "labels": {"sympozium.ai/component": "agent-run", "sympozium.ai/instance": "scout"}},
        "spec": {
            "initContainers": [{"name": "own", "image": "own"}],
            "containers": [{"name": "agent", "image": "agent"}],
        },
    });
    wait::until("the mesh to be called", || {
        let answer = cluster.block_on(create(&client, &namespace, &pod, "?dryRun=All"))?;
        let seen = answer.body["metadata"]["annotations"][SEEN].is_string();
        Ok((seen || !answer.granted()).then_some(()))
    })?;
    cluster.block_on(create(&client, &namespace, &pod, ""))?.object()?;
    let path = path(&pod, &namespace, Some("scout-1"))?;
    let stored = cluster.block_on(send(&client, Method::GET, &path, None))?.object()?;
    let inits = stored["spec"]["initContainers"].as_array().context("no init containers")?;
    let names: Vec<_> = inits.iter().filter_map(|init| init["name"].as_str()).collect();
    ensure!(names == expected, "the init containers are {names:?}, not {expected:?}: {stored}");
    for init in inits {
        let is_native = ["istio-proxy", "memory-server"].iter().any(|name| init["name"] == *name);
        ensure!((init["restartPolicy"] == "Always") == is_native, "{init}");
        let probe = &init["startupProbe"];
        ensure!(
            init["name"] != "memory-server" || order == BEHIND || probe["tcpSocket"]["port"] == 8080,
            "{init}"
        );
    }
    Ok(())
}
