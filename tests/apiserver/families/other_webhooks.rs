//! Two webhooks of others, one before and one after memgate, which add to every list of a pod and
//! turn the containers and the variables round. So memgate is asked again about a pod in which all
//! stands elsewhere.

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{Scene, Setting, clear, container, fresh_name, names};
use crate::{
    fixture::Fixture,
    request::{Answer, create},
    stub::Stub,
    support::{control_plane::ControlPlane, wait},
};

/// As configurations are called: in the order of these names, with `memgate` in between.
const OTHERS: [&str; 2] = ["before", "the-other"];

pub(super) fn others(fixture: &Fixture, setting: Setting) -> Result<()> {
    let cluster = fixture.cluster()?;
    fixture.memgate()?;
    let home = fresh_name("other-webhooks");
    let scene = setting(&home);
    for object in &scene.objects {
        cluster.admin().apply(&object.to_string())?;
    }
    let metadata = &scene.workload["metadata"];
    let namespace = metadata["namespace"].as_str().context("a workload has no namespace")?;
    let stubs = OTHERS.map(|name| other(cluster, namespace, name, &home));
    let _stubs = stubs.into_iter().collect::<Result<Vec<Stub>>>()?;

    let mut pod = scene.workload["spec"]["template"].clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["generateName"] = json!("disturbed-");
    // By this the two know whom to disturb.
    pod["metadata"]["labels"]["disturb"] = json!(home);
    let answer = wait::until("both others to be called", || {
        let answer = cluster.block_on(create(&cluster.client(), namespace, &pod, "?dryRun=All"))?;
        let seen = OTHERS.iter().all(|name| seen(&answer.body, name));
        Ok((seen || !answer.granted()).then_some(answer))
    })?;
    asked_again(cluster, &answer)?;
    check(&scene, &answer.object()?)?;
    clear(fixture, &scene)
}

/// Registers another webhook, which disturbs the pods of this trial once.
fn other(cluster: &ControlPlane, namespace: &str, name: &'static str, trial: &str) -> Result<Stub> {
    let only = trial.to_owned();
    let stub = Stub::start(move |request| {
        let pod = &request["object"];
        if pod["metadata"]["labels"]["disturb"] != only || seen(pod, name) {
            return json!({"allowed": true});
        }
        let patch = BASE64_STANDARD.encode(disturb(pod, name).to_string());
        json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
    })?;
    let labels = json!({"matchLabels": {"disturb": trial}});
    let fields = json!({"objectSelector": labels, "reinvocationPolicy": "IfNeeded"});
    stub.register(cluster, namespace, &format!("{name}-{trial}"), &fields)?;
    Ok(stub)
}

fn seen(pod: &Value, name: &str) -> bool {
    pod["metadata"]["annotations"][name].is_string()
}

/// The edits of another webhook.
fn disturb(pod: &Value, name: &str) -> Value {
    let mut metadata = pod["metadata"].clone();
    metadata["annotations"][name] = json!("seen");
    let mut spec = pod["spec"].clone();
    let confined = json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    for list in ["containers", "initContainers"] {
        let mut containers = spec[list].as_array().cloned().unwrap_or_default();
        for container in &mut containers {
            let mut env = container["env"].as_array().cloned().unwrap_or_default();
            env.push(json!({"name": format!("BY_{name}"), "value": "1"}));
            env.reverse();
            container["env"] = json!(env);
        }
        containers.push(json!({"name": format!("{name}-{}", list.to_lowercase()), "image": "other",
            "securityContext": confined}));
        containers.reverse();
        spec[list] = json!(containers);
    }
    let mut volumes = spec["volumes"].as_array().cloned().unwrap_or_default();
    volumes.insert(0, json!({"name": name, "emptyDir": {}}));
    spec["volumes"] = json!(volumes);
    json!([
        {"op": "replace", "path": "/metadata", "value": metadata},
        {"op": "replace", "path": "/spec", "value": spec},
    ])
}

fn asked_again(cluster: &ControlPlane, answer: &Answer) -> Result<()> {
    let annotations = cluster.annotations(&answer.audit_id)?;
    let again = annotations
        .iter()
        .any(|(key, value)| key.contains("/round_1_index_") && value.contains(".pods.memgate.dev"));
    ensure!(again, "memgate was not asked a second time: {} {annotations:?}", answer.message());
    Ok(())
}

/// All is there, once, wherever it stands.
fn check(scene: &Scene, pod: &Value) -> Result<()> {
    let template = &scene.workload["spec"]["template"]["spec"];
    let by = |suffix: &str| OTHERS.map(|name| format!("{name}{suffix}")).to_vec();
    let got = container(&pod["spec"], scene.container)?;
    let own = container(template, scene.container)?;
    let mut env = names(&own["env"], "name");
    env.extend(scene.env.iter().filter_map(|variable| variable["name"].as_str()));
    let rows = [
        ("variables", names(&got["env"], "name"), env, OTHERS.map(|name| format!("BY_{name}")).to_vec()),
        (
            "containers",
            names(&pod["spec"]["containers"], "name"),
            names(&template["containers"], "name"),
            by("-containers"),
        ),
        (
            "init containers",
            names(&pod["spec"]["initContainers"], "name"),
            scene.init_containers.clone(),
            by("-initcontainers"),
        ),
        ("volumes", names(&pod["spec"]["volumes"], "name"), scene.volumes.clone(), by("")),
        ("mounts", names(&got["volumeMounts"], "mountPath"), scene.mounts.clone(), Vec::new()),
    ];
    for (what, mut got, mut wanted, added) in rows {
        wanted.extend(added.iter().map(String::as_str));
        got.sort_unstable();
        wanted.sort_unstable();
        ensure!(got == wanted, "the {what} are {got:?}, not {wanted:?}: {pod}");
    }
    for variable in &scene.env {
        let entries = got["env"].as_array().into_iter().flatten();
        ensure!(entries.into_iter().any(|entry| entry == variable), "{variable} is changed in {got}");
    }
    Ok(())
}
