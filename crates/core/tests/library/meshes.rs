//! Pods that a mesh changes before and behind memgate, in every form and for every memory: what is decided again about what
//! came out moves nothing, and a third decision changes nothing.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use memgate_core::decide::decide;
use memgate_core::patch::apply::apply;
use memgate_core::state;
use memgate_model::decision::Decision;
use memgate_model::platform_settings::Waits;
use memgate_model::request::Request;
use serde_json::{Value, json};

/// The annotation of memgate.
const INJECTED: &str = "memgate.dev/injected";
/// What memgate may add to the init containers.
const OWN: [&str; 3] = ["wait-for-memory", "memory-server", "wait-for-shared-memory"];

/// The memories of the agent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Memories {
    Private,
    Shared,
    Both,
    Sidecar,
    SidecarAndShared,
}

const MEMORIES: [Memories; 5] =
    [Memories::Private, Memories::Shared, Memories::Both, Memories::Sidecar, Memories::SidecarAndShared];

/// A form of a mesh, by its init containers in front and at the end of others, and its proxy.
#[derive(Debug, Clone, Copy)]
struct Mesh {
    front: &'static [&'static str],
    /// Native sidecars behind those in front, or at the end.
    native: Option<&'static str>,
    end: &'static [&'static str],
    proxy: Option<&'static str>,
    annotation: (&'static str, &'static str),
    /// Whether init containers have no network, wherever they are.
    cuts_off: bool,
}

const NONE: (&str, &str) = ("seen", "by the mesh");
const KUMA: (&str, &str) = ("kuma.io/sidecar-injected", "true");
const CONSUL: (&str, &str) = ("consul.hashicorp.com/transparent-proxy-status", "enabled");

/// As their webhooks leave pods.
const MESHES: [Mesh; 11] = [
    classic(&[], &["istio-init"], "istio-proxy"),
    Mesh { native: Some("istio-proxy"), front: &["istio-init"], ..EMPTY },
    cni(&["istio-validation"], "istio-proxy", NONE),
    Mesh { native: Some("istio-proxy"), front: &["istio-validation"], ..EMPTY },
    classic(&[], &["linkerd-init"], "linkerd-proxy"),
    Mesh { native: Some("linkerd-proxy"), end: &["linkerd-init"], ..EMPTY },
    cni(&["linkerd-network-validator"], "linkerd-proxy", NONE),
    classic(&[], &["kuma-init"], "kuma-sidecar"),
    cni(&[], "kuma-sidecar", KUMA),
    cni(&["consul-connect-inject-init"], "consul-dataplane-web", CONSUL),
    classic(&[], &["proxyinit"], "envoy"),
];

const EMPTY: Mesh =
    Mesh { front: &[], native: None, end: &[], proxy: None, annotation: NONE, cuts_off: false };

const fn classic(front: &'static [&'static str], end: &'static [&'static str], proxy: &'static str) -> Mesh {
    Mesh { front, end, proxy: Some(proxy), ..EMPTY }
}

const fn cni(
    front: &'static [&'static str],
    proxy: &'static str,
    annotation: (&'static str, &'static str),
) -> Mesh {
    Mesh { front, proxy: Some(proxy), annotation, cuts_off: true, ..EMPTY }
}

impl Mesh {
    /// Changes a pod as the webhook of the mesh does.
    fn change(&self, mut pod: Value) -> Value {
        let add = |name: &&str| json!({"name": name, "image": "mesh"});
        let native = |name: &str| json!({"name": name, "image": "mesh", "restartPolicy": "Always"});
        let others = pod["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
        let mut inits: Vec<Value> = self.front.iter().map(add).collect();
        inits.extend(self.native.filter(|_| !self.front.is_empty()).map(native));
        inits.extend(others);
        inits.extend(self.end.iter().map(add));
        inits.extend(self.native.filter(|_| self.front.is_empty()).map(native));
        pod["spec"]["initContainers"] = json!(inits);
        if let (Some(proxy), Some(containers)) = (&self.proxy, pod["spec"]["containers"].as_array_mut()) {
            containers.push(add(proxy));
        }
        pod["metadata"]["annotations"][self.annotation.0] = json!(self.annotation.1);
        pod
    }
}

fn decided(pod: &Value, memories: Memories, waits: Waits) -> Decision {
    let mut settings = memgate_platforms::default_settings();
    settings.platforms.sympozium.wait = waits;
    let mut snapshot = state::empty(settings);
    let private = memories != Memories::Shared;
    let shared = !matches!(memories, Memories::Private | Memories::Sidecar);
    let sidecar = matches!(memories, Memories::Sidecar | Memories::SidecarAndShared);
    let object = |kind: &str, name: &str, labels: Value, spec: Value| {
        let metadata = json!({"name": name, "namespace": "media", "labels": labels});
        json!({"apiVersion": "sympozium.ai/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
    };
    let skills = if private { json!([{"skillPackRef": "memory"}]) } else { json!([]) };
    let labels = json!({"sympozium.ai/ensemble": "newsroom", "sympozium.ai/agent-config": "scout"});
    let server = if sidecar { json!({"image": "server"}) } else { Value::Null };
    for object in [
        object("Agent", "scout", labels, json!({"skills": skills, "memory": {"enabled": false}})),
        object("Ensemble", "newsroom", json!({}), json!({"sharedMemory": {"enabled": shared}})),
        object("SkillPack", "memory", json!({}), json!({"skills": [], "sidecar": server})),
    ] {
        state::add(&mut snapshot, &object).expect("an object");
    }
    let text = pod.to_string();
    decide(&Request::to_create_pod("media", "", &text), &snapshot)
}

/// The pod that comes out of memgate.
fn admitted(pod: &Value, memories: Memories) -> Value {
    let decision = decided(pod, memories, Waits::Auto);
    assert!(decision.allowed(), "{:?}", decision.findings);
    serde_json::from_str(&apply(&pod.to_string(), &decision.edits).expect("applies")).expect("JSON")
}

fn pod(inits: Option<Value>) -> Value {
    let labels = json!({"sympozium.ai/component": "agent-run", "sympozium.ai/instance": "scout"});
    let mut spec = json!({"containers": [{"name": "agent", "image": "agent"}]});
    if let Some(inits) = inits {
        spec["initContainers"] = inits;
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}, "spec": spec})
}

fn names(pod: &Value) -> Vec<&str> {
    let inits = pod["spec"]["initContainers"].as_array().map(Vec::as_slice).unwrap_or_default();
    inits.iter().filter_map(|it| it["name"].as_str()).collect()
}

/// The pods that users send: without init containers, and with one.
fn sent() -> [Value; 2] {
    [None, Some(json!([{"name": "mcp-discover", "image": "m"}]))].map(pod)
}

#[test]
fn what_came_out_stays_whichever_is_asked_first() {
    for (mesh, memories) in MESHES.iter().flat_map(|mesh| MEMORIES.map(|memories| (mesh, memories))) {
        for sent in sent() {
            let first = mesh.change(sent.clone());
            let behind = admitted(&first, memories);
            assert_eq!(admitted(&behind, memories), behind, "{mesh:?} {memories:?} {:?}", names(&behind));
            let others: Vec<_> = names(&behind).into_iter().filter(|name| !OWN.contains(name)).collect();
            assert_eq!(others, names(&first), "others are never moved");

            let first = mesh.change(admitted(&sent, memories));
            let again = admitted(&first, memories);
            assert_eq!(admitted(&again, memories), again, "{mesh:?} {memories:?} {:?}", names(&again));
            let stays: Vec<_> = names(&first)
                .into_iter()
                .filter(|it| !mesh.cuts_off || !it.starts_with("wait-for-"))
                .collect();
            assert_eq!(names(&again), stays, "{mesh:?} {memories:?}");
        }
    }
}

/// The annotation names what is in the pod, and nothing else.
#[test]
fn the_annotation_follows_a_wait_that_is_taken_out() {
    for mesh in MESHES.iter().filter(|mesh| mesh.cuts_off) {
        for memories in MEMORIES {
            let [sent, _] = sent();
            let again = admitted(&mesh.change(admitted(&sent, memories)), memories);
            let annotation = again["metadata"]["annotations"][INJECTED].as_str().expect("an annotation");
            let marker: Value = serde_json::from_str(annotation).expect("JSON");
            let is_sidecar = matches!(memories, Memories::Sidecar | Memories::SidecarAndShared);
            let expected = if is_sidecar { json!(["memory-server"]) } else { Value::Null };
            assert_eq!(marker["initContainers"], expected, "{mesh:?} {memories:?}");
            assert!(marker["env"]["agent"].as_array().is_some_and(|env| env.len() > 1), "{annotation}");
        }
    }
}

#[test]
fn a_thousand_init_containers_and_nameless_ones_are_read_once() {
    let named = |name: Value| json!({"name": name, "image": "i", "restartPolicy": "Always"});
    let mut inits: Vec<Value> = (0..998).map(|_| named(json!("envoy"))).collect();
    inits.push(json!({"image": "nameless", "securityContext": {"capabilities": {"add": ["Cap_Net_Admin"]}}}));
    inits.push(named(Value::Null));
    let first = pod(Some(json!(inits)));
    let found = |pod: &Value, name: &str| {
        let inits = pod["spec"]["initContainers"].as_array().expect("a list");
        inits.iter().position(|it| it["name"] == name)
    };
    let after = admitted(&first, Memories::Both);
    assert_eq!(found(&after, OWN[0]), Some(0));
    assert_eq!(found(&after, OWN[2]), Some(999), "in front of the one without a name");
    // Beside osm-init, they are proxies.
    inits.truncate(998);
    inits.push(json!({"name": "osm-init", "image": "i"}));
    let after = admitted(&pod(Some(json!(inits))), Memories::Both);
    assert_eq!(found(&after, OWN[0]), Some(998));
    assert_eq!(found(&after, OWN[2]), Some(1_000));
}

#[test]
fn wrong_security_contexts_redirect_nothing() {
    for context in [
        json!(null),
        json!({}),
        json!({"capabilities": null}),
        json!({"capabilities": {"add": null}}),
        json!({"capabilities": {"add": "NET_ADMIN"}}),
        json!({"capabilities": {"drop": ["ALL"]}}),
        json!({"capabilities": {"add": ["NET_RAW", "CAP_NET_ADMINS", "", "CAP_"]}}),
    ] {
        let inits = json!([{"name": "a", "image": "i", "securityContext": context}]);
        let after = admitted(&pod(Some(inits)), Memories::Both);
        assert_eq!(names(&after), [OWN[0], "a", OWN[2]], "{context}");
    }
}

#[test]
fn no_pod_waits_where_the_setting_says_so() {
    let pods = sent().into_iter().flat_map(|pod| {
        let changed: Vec<Value> = MESHES.iter().map(|mesh| mesh.change(pod.clone())).collect();
        changed.into_iter().chain([pod])
    });
    for pod in pods {
        for memories in MEMORIES {
            let decision = decided(&pod, memories, Waits::Never);
            let after = apply(&pod.to_string(), &decision.edits).expect("applies");
            assert!(!after.contains("wait-for-"), "{after}");
            let codes: Vec<_> = decision.findings.iter().map(|finding| finding.code.name).collect();
            assert!(!codes.contains(&"memgate/pod-wait-no-network"), "{codes:?}");
        }
    }
}

/// The setting was made later than the pod.
#[test]
fn waits_of_before_the_setting_are_not_reported() {
    let [sent, _] = sent();
    for mesh in &MESHES {
        let decision = decided(&mesh.change(admitted(&sent, Memories::Both)), Memories::Both, Waits::Never);
        assert!(decision.findings.is_empty(), "{mesh:?} {:?}", decision.findings);
    }
}

/// Another webhook may add them to every container later.
#[test]
fn waits_ignore_the_variables_of_proxies() {
    let [sent, _] = sent();
    let after = admitted(&sent, Memories::Both);
    for wait in after["spec"]["initContainers"].as_array().expect("a list") {
        let script = wait["command"][2].as_str().expect("a script");
        let unset =
            script.lines().next().and_then(|line| line.strip_prefix("unset ")).expect("unset").split(' ');
        let all = ["http_proxy", "https_proxy", "all_proxy"];
        assert!(all.iter().all(|name| unset.clone().any(|it| it == *name)), "{script}");
        assert!(all.iter().all(|name| unset.clone().any(|it| it == name.to_uppercase())), "{script}");
    }
}
