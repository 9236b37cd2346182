//! What pods of Sympozium get by the settings of an installation and the version of its apiserver.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use memgate_core::patch::apply::apply;
use memgate_model::decision::Decision;
use memgate_model::finding::Finding;
use memgate_model::platform_settings::{AddedResources, Sympozium, Waits, WriterTokens};
use memgate_model::settings::Settings;
use serde_json::{Value, json};

use super::pod_events::{decided_in, state_with};

const VARIABLE: &str = "MEMORY_WRITER_TOKEN";

/// The codes of the findings about a pod, and the pod with its memory.
fn decided(pod: &Value, objects: &[Value], setting: WriterTokens) -> (Vec<&'static str>, Value) {
    let decision = decision(pod, objects, setting);
    assert!(decision.allowed());
    let text = pod.to_string();
    let patched = apply(&text, &decision.edits).expect("a patch that applies");
    let codes = decision.findings.iter().map(|finding| finding.code.name).collect();
    (codes, serde_json::from_str(&patched).expect("JSON"))
}

/// The places where other containers hold a token.
fn exposed(pod: &Value, objects: &[Value]) -> Vec<String> {
    let findings = decision(pod, objects, WriterTokens::Auto).findings;
    let exposed = findings.iter().filter(|finding| finding.code.name == "sympozium/pod-token-exposed");
    exposed.map(|finding| finding.pointer.as_str().to_owned()).collect()
}

fn decision(pod: &Value, objects: &[Value], setting: WriterTokens) -> Decision {
    let mut settings = memgate_platforms::default_settings();
    settings.platforms.sympozium.writer_tokens = setting;
    decision_with(pod, objects, settings)
}

fn decision_with(pod: &Value, objects: &[Value], settings: Settings) -> Decision {
    decided_in("ops", pod, &state_with(settings, objects))
}

fn pod(env: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "p", "namespace": "ops",
            "labels": {"sympozium.ai/component": "agent-run", "sympozium.ai/instance": "triage"},
        },
        "spec": {"containers": [{"name": "agent", "image": "i", "env": env}]},
    })
}

fn state_of(sidecar: bool, deployment: Option<Value>) -> Vec<Value> {
    let spec = if sidecar { json!({"sidecar": {"image": "m"}}) } else { json!({"skills": []}) };
    let of = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "sympozium.ai/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": "ops"}, "spec": spec,
        })
    };
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "triage-memory-db", "namespace": "ops"}, "spec": {},
    });
    let agent = of("Agent", "triage", json!({"skills": [{"skillPackRef": "memory"}]}));
    let mut objects = vec![agent, of("SkillPack", "memory", spec), claim];
    objects.extend(deployment.map(|entry| {
        let container = json!({"name": "memory-server", "env": [entry]});
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "triage-memory", "namespace": "ops"},
            "spec": {"template": {"spec": {"containers": [container]}}},
        })
    }));
    objects
}

fn token(container: &Value) -> Option<&Value> {
    let mut env = container["env"].as_array()?.iter();
    Some(&env.find(|entry| entry["name"] == VARIABLE)?["valueFrom"]["secretKeyRef"])
}

#[test]
fn the_setting_says_which_pods_wait_for_a_token() {
    let secret = |name: &str| json!({"name": name, "key": "token"});
    let usual = secret("triage-memory-writer-token");
    let optional = json!({"name": "triage-memory-writer-token", "key": "token", "optional": true});
    let known = json!({"name": VARIABLE, "valueFrom": {"secretKeyRef": secret("own")}});
    for (setting, deployment, expected) in [
        (WriterTokens::Auto, None, Some(&optional)),
        (WriterTokens::Auto, Some(&known), Some(&secret("own"))),
        (WriterTokens::Always, None, Some(&usual)),
        (WriterTokens::Always, Some(&known), Some(&usual)),
        (WriterTokens::Never, None, None),
        (WriterTokens::Never, Some(&known), None),
    ] {
        let objects = state_of(false, deployment.cloned());
        let (codes, with_memory) = decided(&pod(&json!([])), &objects, setting);
        let agent = &with_memory["spec"]["containers"][0];
        assert_eq!(token(agent), expected, "{setting:?} {deployment:?}");
        assert_eq!(codes, Vec::<&str>::new());
        let (_, again) = decided(&with_memory, &objects, setting);
        assert_eq!(again, with_memory, "a second pass");
        let objects = state_of(true, None);
        let (_, with_memory) = decided(&pod(&json!([])), &objects, setting);
        let (agent, server) =
            (&with_memory["spec"]["containers"][0], &with_memory["spec"]["initContainers"][0]);
        assert_eq!(token(agent), token(server), "{setting:?}");
        assert_eq!(token(agent).is_some(), setting != WriterTokens::Never);
        let (_, again) = decided(&with_memory, &objects, setting);
        assert_eq!(again, with_memory, "a second pass");
    }
}

#[test]
fn a_pod_with_a_server_of_its_own_waits_only_for_the_token_that_the_server_has() {
    let usual = json!({"name": "triage-memory-writer-token", "key": "token", "optional": true});
    let own = json!({"name": "mine", "key": "k"});
    for setting in [WriterTokens::Auto, WriterTokens::Always, WriterTokens::Never] {
        for (name, list) in [
            ("memory-server", "containers"),
            ("memory-server", "initContainers"),
            ("skill-memory", "containers"),
            ("skill-memory", "initContainers"),
        ] {
            for (env, expected) in [
                (json!([]), Some(&usual)),
                (json!([{"name": "OTHER", "value": "x"}]), Some(&usual)),
                (json!([{"name": VARIABLE, "value": ""}]), None),
                (json!([{"name": VARIABLE, "value": "x"}]), None),
                (json!([{"name": VARIABLE, "valueFrom": {"secretKeyRef": own}}]), Some(&own)),
            ] {
                let mut pod = pod(&json!([]));
                let mut containers = pod["spec"][list].as_array().cloned().unwrap_or_default();
                containers.push(json!({"name": name, "image": "m", "env": env, "restartPolicy": "Always"}));
                pod["spec"][list] = json!(containers);
                let objects = state_of(false, None);
                let (codes, with_memory) = decided(&pod, &objects, setting);
                let expected = expected.filter(|_| setting != WriterTokens::Never);
                assert_eq!(token(&with_memory["spec"]["containers"][0]), expected, "{setting:?} {pod}");
                assert_eq!(codes, Vec::<&str>::new(), "{setting:?} {pod}");
                let (_, again) = decided(&with_memory, &objects, setting);
                assert_eq!(again, with_memory, "a second pass");
            }
        }
    }
}

/// A container that mounts several volumes with the Secret is reported once, at the first of them.
#[test]
fn the_volumes_with_a_token_are_found_by_name() {
    let volume = |at: usize| match at % 3 {
        0 => json!({"name": format!("v{at}"), "secret": {"secretName": "triage-memory-writer-token"}}),
        1 => json!({"name": format!("v{at}"), "secret": {"secretName": "other"}}),
        _ => json!({"name": format!("v{at}"), "emptyDir": {}}),
    };
    let mounts = |all: &[usize]| -> Value {
        let mount = |at: &usize| json!({"name": format!("v{at}"), "mountPath": format!("/{at}")});
        all.iter().map(mount).collect()
    };
    for (mounted, expected) in [
        (&[][..], None),
        (&[1, 2, 4], None),
        (&[3], Some("/spec/volumes/3")),
        (&[9, 1, 6, 3], Some("/spec/volumes/3")),
        (&[999_999], None),
    ] {
        let mut pod = pod(&json!([]));
        pod["spec"]["volumes"] = (0..12).map(volume).collect();
        let other = json!({"name": "other", "image": "i", "volumeMounts": mounts(mounted)});
        pod["spec"]["containers"].as_array_mut().expect("a list").push(other);
        let found = exposed(&pod, &state_of(false, None));
        assert_eq!(found, expected.map(str::to_owned).into_iter().collect::<Vec<_>>(), "{mounted:?}");
    }
}

#[test]
fn a_token_of_the_pod_stays_whatever_the_setting() {
    let entry = json!({"name": VARIABLE, "valueFrom": {"secretKeyRef": {"name": "mine", "key": "k"}}});
    for setting in [WriterTokens::Auto, WriterTokens::Always, WriterTokens::Never] {
        let (codes, with_memory) = decided(&pod(&json!([entry])), &state_of(false, None), setting);
        let agent = &with_memory["spec"]["containers"][0];
        assert_eq!(token(agent), Some(&entry["valueFrom"]["secretKeyRef"]));
        let is_known = setting != WriterTokens::Never;
        assert_eq!(codes == ["sympozium/pod-env-conflict"], is_known, "{setting:?}: {codes:?}");
    }
}

/// The pod with its memory by these settings, which a second pass leaves as it is.
fn with_settings(pod: &Value, objects: &[Value], settings: &Sympozium) -> Value {
    let mut all = memgate_platforms::default_settings();
    all.platforms.sympozium = settings.clone();
    let apply = |pod: &Value| -> Value {
        let decision = decision_with(pod, objects, all.clone());
        assert!(decision.allowed() && decision.findings.is_empty(), "{:?}", decision.findings);
        let patched = apply(&pod.to_string(), &decision.edits).expect("a patch that applies");
        serde_json::from_str(&patched).expect("JSON")
    };
    let with_memory = apply(pod);
    assert_eq!(apply(&with_memory), with_memory, "a second pass");
    with_memory
}

#[test]
fn no_pod_waits_where_the_settings_say_so() {
    let objects = state_of(false, None);
    let settings = |wait| Sympozium { wait, ..Sympozium::default() };
    let waits = |setting: Waits| {
        let pod = with_settings(&pod(&json!([])), &objects, &settings(setting));
        assert_eq!(pod["spec"]["containers"][0]["env"][1]["name"], "MEMORY_SERVER_URL");
        pod["spec"].get("initContainers").is_some()
    };
    assert!(waits(Waits::Auto));
    assert!(!waits(Waits::Never));
}

#[test]
fn sizes_of_the_settings_go_below_those_of_the_pod_and_its_namespace() {
    let resources: AddedResources = serde_json::from_value(json!({
        "wait": {"requests": {"cpu": 1, "ephemeral-storage": "1Gi"}},
        "server": {"limits": {"memory": "1Gi", "cpu": "300m"}},
    }))
    .expect("sizes");
    let settings = Sympozium { resources, ..Sympozium::default() };
    let in_pod = |sidecar: bool, own: &Value, more: &[Value]| {
        let mut pod = pod(&json!([]));
        pod["spec"]["containers"][0]["resources"] = own.clone();
        let objects = [&state_of(sidecar, None), more].concat();
        with_settings(&pod, &objects, &settings)["spec"]["initContainers"][0]["resources"].take()
    };
    let limit_range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "x", "namespace": "ops"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "200m", "memory": "2Gi"}}]},
    });
    let guaranteed = json!({"limits": {"cpu": 1, "memory": "1Gi"}});
    for (sidecar, own, more, expected) in [
        (
            false,
            &json!({}),
            vec![],
            json!({"requests": {"cpu": "1", "ephemeral-storage": "1Gi", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}}),
        ),
        (
            true,
            &json!({}),
            vec![],
            json!({"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "300m", "memory": "1Gi"}}),
        ),
        (
            true,
            &guaranteed,
            vec![],
            json!({"requests": {"cpu": "300m", "memory": "1Gi"}, "limits": {"cpu": "300m", "memory": "1Gi"}}),
        ),
        (
            true,
            &guaranteed,
            vec![limit_range],
            json!({"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "200m", "memory": "1Gi"}}),
        ),
    ] {
        assert_eq!(in_pod(sidecar, own, &more), expected, "{sidecar} {own} {more:?}");
    }
}

#[test]
fn pull_secrets_of_the_settings_come_behind_those_of_the_pod() {
    let names = |names: &[&str]| names.iter().map(|name| json!({ "name": name })).collect::<Value>();
    let image_pull_secrets = vec!["mirror".to_owned(), "own".to_owned(), "mirror".to_owned()];
    let settings = Sympozium { image_pull_secrets, ..Sympozium::default() };
    for (own, expected) in [
        (None, names(&["mirror", "own"])),
        (Some(Value::Null), names(&["mirror", "own"])),
        (Some(names(&[])), names(&["mirror", "own"])),
        (Some(names(&["own", "more"])), names(&["own", "more", "mirror"])),
        (Some(names(&["own", "mirror"])), names(&["own", "mirror"])),
    ] {
        for sidecar in [false, true] {
            let mut pod = pod(&json!([]));
            let spec = pod["spec"].as_object_mut().expect("a spec");
            spec.extend(own.clone().map(|own| ("imagePullSecrets".to_owned(), own)));
            let before = own.as_ref().and_then(Value::as_array).map_or(0, Vec::len);
            let with_memory = with_settings(&pod, &state_of(sidecar, None), &settings);
            assert_eq!(with_memory["spec"]["imagePullSecrets"], expected, "{own:?}");
            let marker = &with_memory["metadata"]["annotations"]["memgate.dev/injected"];
            let marker: Value = serde_json::from_str(marker.as_str().expect("a text")).expect("JSON");
            let added: Vec<&Value> = expected.as_array().into_iter().flatten().skip(before).collect();
            let listed = marker.get("imagePullSecrets").and_then(Value::as_array);
            assert_eq!(listed.map_or(0, Vec::len), added.len(), "{own:?} {marker}");
        }
    }
    // A pod to which no container is added keeps its own.
    let settings = Sympozium { wait: Waits::Never, ..settings };
    let with_memory = with_settings(&pod(&json!([])), &state_of(false, None), &settings);
    assert_eq!(with_memory["spec"].get("imagePullSecrets"), None);
}

#[test]
fn very_many_containers_and_limit_ranges_have_an_answer() {
    let guaranteed = json!({"limits": {"cpu": "0.1", "memory": "1Gi"}});
    let mut pod = pod(&json!([]));
    pod["spec"]["containers"][0]["resources"] = guaranteed.clone();
    let inits: Value = (0..998)
        .map(|index| json!({"name": format!("i{index}"), "image": "i", "resources": guaranteed}))
        .collect();
    pod["spec"]["initContainers"] = inits;
    let mut objects = state_of(true, None);
    objects.extend((0..2_000).map(|index| {
        json!({
            "apiVersion": "v1", "kind": "LimitRange",
            "metadata": {"name": format!("r{index}"), "namespace": "ops"},
            "spec": {"limits": [{"type": "Container", "max": {"cpu": format!("{}m", 5_000 - index)}}]},
        })
    }));
    let with_memory = with_settings(&pod, &objects, &Sympozium::default());
    let sizes = json!({"cpu": "200m", "memory": "128Mi"});
    assert_eq!(
        with_memory["spec"]["initContainers"][0]["resources"],
        json!({"requests": sizes, "limits": sizes})
    );
}

/// An apiserver before 1.29 drops `restartPolicy` of init containers: the pod would wait for its sidecar forever.
#[test]
fn an_apiserver_without_sidecars_gets_none() {
    const OURS: &str = r#"{"family":"sympozium","initContainers":["memory-server"]}"#;
    let mut damaged = pod(&json!([]));
    damaged["metadata"]["annotations"] = json!({"memgate.dev/injected": OURS});
    damaged["spec"]["initContainers"] = json!([{"name": "memory-server", "image": "m"}]);
    let bare = pod(&json!([]));
    for (version, has_sidecars) in
        [(None, true), (Some((1, 28)), false), (Some((1, 29)), true), (Some((2, 0)), true)]
    {
        for pod in [&bare, &damaged] {
            let mut settings = memgate_platforms::default_settings();
            settings.platforms.apiserver = version;
            let decision = decision_with(pod, &state_of(true, None), settings);
            let patched = apply(&pod.to_string(), &decision.edits).expect("a patch that applies");
            let patched: Value = serde_json::from_str(&patched).expect("JSON");
            let policy = &patched["spec"]["initContainers"][0]["restartPolicy"];
            assert_eq!(policy == "Always", has_sidecars, "{version:?} {pod}");
            let blocks = |finding: &Finding| finding.code.name == "memgate/pod-sidecar-blocks";
            assert_eq!(decision.findings.iter().any(blocks), !has_sidecars, "{version:?} {pod}");
        }
    }
}

/// Lists and names that no apiserver accepts, and an annotation that names all of them.
#[test]
fn many_servers_mounts_and_volumes_are_mended_once() {
    const MANY: usize = 2_000;
    let server = |at: usize| {
        let mounts: Vec<Value> = (0..at % 3).map(|_| json!({"mountPath": "/x"})).collect();
        let name = ["memory-server", "skill-memory"][at % 2];
        json!({"name": name, "image": "m", "volumeMounts": mounts, "ports": [{"containerPort": 1}]})
    };
    let volume = |at: usize| json!({"name": format!("v{at}"), "secret": {}});
    let ours = json!({"family": "sympozium", "initContainers": ["memory-server", "skill-memory"]});
    for lists in [&["containers"][..], &["initContainers"], &["containers", "initContainers"]] {
        let mut pod = pod(&json!([]));
        pod["metadata"]["annotations"] = json!({"memgate.dev/injected": ours.to_string()});
        for list in lists {
            let mut containers = pod["spec"][list].as_array().cloned().unwrap_or_default();
            containers.extend((0..MANY).map(server));
            pod["spec"][list] = json!(containers);
        }
        pod["spec"]["volumes"] = (0..MANY).map(volume).collect();
        let objects = state_of(true, None);
        let (_, mended) = decided(&pod, &objects, WriterTokens::Auto);
        let (_, again) = decided(&mended, &objects, WriterTokens::Auto);
        assert!(again == mended, "a second pass of {lists:?}");
        let volumes = mended["spec"]["volumes"].as_array().expect("a list");
        assert!(volumes.len() <= MANY + 2, "{} volumes", volumes.len());
    }
}
