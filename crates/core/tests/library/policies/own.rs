//! Ways to hide what a pod uses: behind a second variable, in `envFrom`, in another container, behind an annotation.

use memgate_model::finding::Finding;
use serde_json::{Value, json};

use super::{denies, denying, messages, reported};

/// A value of a variable, and how a rule about hosts takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    Allowed,
    Unknown,
    Denied,
}

/// The entries of a variable, and how the value that counts is taken; `good` is an allowed value.
fn entries(name: &str, good: &str) -> Vec<(Vec<Value>, Taken)> {
    let value = |value: &str| json!({"name": name, "value": value});
    let scheme = good.split("://").next().expect("a scheme");
    let evil = value(&format!("{scheme}://evil.com/x"));
    let from = |field: &str, key: Value| json!({"name": name, "valueFrom": {field: key}});
    let reference = json!({"name": "s", "key": "k"});
    vec![
        (vec![], Taken::Allowed),
        (vec![value("")], Taken::Allowed),
        (vec![value(good)], Taken::Allowed),
        (vec![evil.clone(), value(good)], Taken::Allowed),
        (vec![evil.clone(), value("")], Taken::Allowed),
        (vec![evil.clone()], Taken::Denied),
        (vec![value(good), evil], Taken::Denied),
        (vec![value(&format!("{scheme}://EVIL.com"))], Taken::Denied),
        (vec![value(&format!("{scheme}://evil.com\\@good.example.com"))], Taken::Denied),
        (vec![value("$(X)")], Taken::Unknown),
        (vec![value(&format!("{scheme}://$(X).example.com"))], Taken::Unknown),
        (vec![from("secretKeyRef", reference.clone())], Taken::Unknown),
        (vec![from("configMapKeyRef", reference)], Taken::Unknown),
        (vec![from("fieldRef", json!({"fieldPath": "metadata.name"}))], Taken::Unknown),
    ]
}

/// Policies that allow one host to pods: one that denies what it cannot judge, and one that does not.
fn policies() -> [(Value, Taken); 2] {
    let of = |on_unknown: &str| {
        let endpoint = json!({"hosts": ["good.example.com"]});
        denying(&json!([{"id": "it", "roles": ["pod"], "onUnknown": on_unknown, "endpoint": endpoint}]))
    };
    [(of("deny"), Taken::Unknown), (of("note"), Taken::Denied)]
}

/// An agent of a platform with this memory.
fn declared(group: &str, memory: &Value) -> Vec<Value> {
    let metadata = |name: &str| json!({"name": name, "namespace": "team"});
    let [kind, agent] =
        if group == "kubeswarm.io" { ["SwarmMemory", "SwarmAgent"] } else { ["ArkMemory", "ArkAgent"] };
    let spec = if group == "kubeswarm.io" {
        json!({"model": "m", "prompt": {"inline": "p"}, "runtime": {"loop": {"memory": {"ref": {"name": "notes"}}}}})
    } else {
        json!({"model": "m", "systemPrompt": "p", "memoryRef": {"name": "notes"}})
    };
    let version = format!("{group}/v1alpha1");
    vec![
        json!({"apiVersion": version, "kind": kind, "metadata": metadata("notes"), "spec": memory}),
        json!({"apiVersion": version, "kind": agent, "metadata": metadata("scout"), "spec": spec}),
    ]
}

fn pod(labels: &Value, container: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team", "labels": labels},
        "spec": {"containers": [container]},
    })
}

fn is_denied(findings: &[Finding]) -> bool {
    findings.iter().any(denies)
}

const ENDPOINT: &str = "AGENT_MEMORY_VECTOR_STORE_ENDPOINT";
const REDIS_URL: &str = "AGENT_MEMORY_REDIS_URL";

fn store() -> Value {
    json!({"backend": "vector-store", "vectorStore":
        {"provider": "qdrant", "endpoint": "https://good.example.com", "collection": "c"}})
}

#[test]
fn no_address_hides_another_one() {
    let state = declared("kubeswarm.io", &store());
    for (policy, least) in policies() {
        let state = [&state[..], &[policy]].concat();
        for (endpoint, of_endpoint) in entries(ENDPOINT, "https://good.example.com") {
            for (url, of_url) in entries("AGENT_VECTOR_STORE_URL", "qdrant://good.example.com/x") {
                for inject in ["enabled", "disabled"] {
                    let labels = json!({"kubeswarm/deployment": "scout", "memgate.dev/inject": inject});
                    for env in [[&endpoint[..], &url].concat(), [&url[..], &endpoint].concat()] {
                        let container = json!({"name": "agent", "image": "a", "env": env});
                        let findings = reported(&state, &pod(&labels, &container));
                        let expected = of_endpoint.max(of_url) >= least;
                        let shown = messages(&findings);
                        assert_eq!(is_denied(&findings), expected, "{inject} {container}: {shown:?}");
                    }
                }
            }
        }
    }
}

/// A declared memory that is not allowed stays in use where a pod sets only one of two addresses.
#[test]
fn an_allowed_address_does_not_hide_the_declared_one() {
    let mut spec = store();
    spec["vectorStore"]["endpoint"] = json!("https://evil.com");
    for (policy, _) in policies() {
        let state = [&declared("kubeswarm.io", &spec)[..], &[policy]].concat();
        for (name, good) in [
            (ENDPOINT, "https://good.example.com"),
            ("AGENT_VECTOR_STORE_URL", "qdrant://good.example.com/c"),
        ] {
            for value in [good, ""] {
                let container =
                    json!({"name": "agent", "image": "a", "env": [{"name": name, "value": value}]});
                let findings = reported(&state, &pod(&json!({"kubeswarm/deployment": "scout"}), &container));
                assert!(is_denied(&findings), "{container}: {:?}", messages(&findings));
            }
        }
    }
}

/// The `envFrom` of a container, and whether something may come from it.
fn env_froms() -> [(Value, bool); 3] {
    [
        (Value::Null, false),
        (json!([]), false),
        (json!([{"secretRef": {"name": "x", "optional": true}}]), true),
    ]
}

#[test]
fn what_env_from_may_set_is_unknown() {
    let redis = json!({"backend": "redis", "redis": {"secretRef": {"name": "s"}, "ttlSeconds": 60}});
    let memories =
        [("in-context", json!({"backend": "in-context"})), ("redis", redis), ("vector-store", store())];
    for ((declares, spec), (policy, least)) in
        memories.iter().flat_map(|memory| policies().map(|policy| (memory.clone(), policy)))
    {
        let state = [&declared("arkonis.dev", &spec)[..], &[policy]].concat();
        for backend in
            [None, Some("in-context"), Some("redis"), Some("vector-store"), Some("Redis"), Some("")]
        {
            let used = backend.unwrap_or(declares);
            let (address, good) = match used {
                "redis" => (REDIS_URL, "redis://good.example.com"),
                _ => (ENDPOINT, "https://good.example.com"),
            };
            for (address, taken) in entries(address, good) {
                for (env_from, may_set) in env_froms() {
                    for inject in ["enabled", "disabled"] {
                        let own =
                            backend.map(|backend| json!({"name": "AGENT_MEMORY_BACKEND", "value": backend}));
                        let env: Vec<Value> = own.into_iter().chain(address.clone()).collect();
                        let container =
                            json!({"name": "agent", "image": "a", "env": env, "envFrom": env_from});
                        let labels = json!({"arkonis.dev/deployment": "scout", "memgate.dev/inject": inject});
                        let findings = reported(&state, &pod(&labels, &container));
                        let is_injected = inject == "enabled" && used == declares;
                        let of_address = match used {
                            "redis" | "vector-store" if !address.is_empty() => taken,
                            // The address of redis is in a Secret.
                            "redis" if declares == "redis" => Taken::Unknown,
                            "redis" | "vector-store" if may_set && !is_injected => Taken::Unknown,
                            "in-context" | "redis" | "vector-store" => Taken::Allowed,
                            // The program may take the backend for another one.
                            _ => taken.max(Taken::Unknown),
                        };
                        // `envFrom` may even set the backend.
                        let is_open = may_set && inject == "disabled" && backend.is_none();
                        let least_taken = if is_open { Taken::Unknown } else { Taken::Allowed };
                        let of_unknown = if is_open && !address.is_empty() { taken } else { Taken::Allowed };
                        let expected = of_address.max(least_taken).max(of_unknown) >= least;
                        let shown = messages(&findings);
                        assert_eq!(
                            is_denied(&findings),
                            expected,
                            "{inject} {container} for {spec}: {shown:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn no_limit_passes_because_env_from_may_set_it() {
    let spec =
        json!({"backend": "vector-store", "vectorStore": {"provider": "qdrant", "endpoint": "https://q"}});
    let rules = json!([{"id": "it", "roles": ["pod"], "retention": {"max": "1h"}}]);
    let state = [&declared("arkonis.dev", &spec)[..], &[denying(&rules)]].concat();
    for (env_from, _) in env_froms() {
        for backend in ["vector-store", "redis"] {
            for inject in ["enabled", "disabled"] {
                let env = json!([{"name": "AGENT_MEMORY_BACKEND", "value": backend}]);
                let container = json!({"name": "agent", "image": "a", "env": env, "envFrom": env_from});
                let labels = json!({"arkonis.dev/deployment": "scout", "memgate.dev/inject": inject});
                let findings = reported(&state, &pod(&labels, &container));
                assert!(is_denied(&findings), "{container}: {:?}", messages(&findings));
            }
        }
    }
}

#[test]
fn the_provider_of_an_orloj_pod_hides_no_address() {
    let metadata = |name: &str| {
        json!({"name": name, "namespace": "team",
        "annotations": {"orloj.dev/target-namespace": "team"}})
    };
    let spec = json!({"type": "vector", "provider": "http", "endpoint": "https://good.example.com"});
    let agent = json!({"model_ref": "m", "prompt": "p", "memory": {"ref": "notes", "allow": ["read"]}});
    let memory =
        json!({"apiVersion": "orloj.dev/v1", "kind": "Memory", "metadata": metadata("notes"), "spec": spec});
    let agent =
        json!({"apiVersion": "orloj.dev/v1", "kind": "Agent", "metadata": metadata("scout"), "spec": agent});
    for (policy, least) in policies() {
        let state = [memory.clone(), agent.clone(), policy];
        for provider in [
            None,
            Some("http"),
            Some("HTTP"),
            Some("custom"),
            Some("PGVector"),
            Some("in-memory"),
            Some("$(P)"),
        ] {
            let used = provider.unwrap_or("http").to_lowercase();
            for name in ["ORLOJ_MEMORY_ENDPOINT", "ORLOJ_MEMORY_DSN"] {
                let good = if name == "ORLOJ_MEMORY_DSN" {
                    "postgresql://good.example.com/n"
                } else {
                    "https://good.example.com"
                };
                let is_read = match used.as_str() {
                    "pgvector" => name == "ORLOJ_MEMORY_DSN",
                    "http" => name == "ORLOJ_MEMORY_ENDPOINT",
                    "in-memory" => false,
                    _ => true,
                };
                for (address, taken) in entries(name, good) {
                    for (env_from, may_set) in env_froms() {
                        let own = provider.map(|it| json!({"name": "ORLOJ_MEMORY_PROVIDER", "value": it}));
                        let env: Vec<Value> = own.into_iter().chain(address.clone()).collect();
                        let args = json!(["--single-agent", "--agent-name", "scout", "--task-id", "team/t"]);
                        let container = json!({"name": "agent", "image": "a", "args": args, "env": env, "envFrom": env_from});
                        let pod = pod(&json!({"orloj.dev/component": "agent-job"}), &container);
                        let findings = reported(&state, &pod);
                        let is_set = is_read && !address.is_empty();
                        let of_address = if is_set { taken } else { Taken::Allowed };
                        // Of the declared provider's variables, memgate adds those that are left out.
                        let may_be_set = may_set && used == "pgvector" && !is_set;
                        let is_unknown = used == "$(p)" || may_be_set;
                        let of_unknown = if is_unknown { Taken::Unknown } else { Taken::Allowed };
                        let expected = of_address.max(of_unknown) >= least;
                        let shown = messages(&findings);
                        assert_eq!(is_denied(&findings), expected, "{container}: {shown:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn no_annotation_and_no_container_hides_a_variable_of_ark() {
    let spec = json!({"address": {"value": "https://good.example.com"}});
    let memory = json!({"apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory",
        "metadata": {"name": "notes", "namespace": "team"}, "spec": spec});
    let forbids =
        denying(&json!([{"id": "env", "onUnknown": "deny", "environment": {"overrides": "forbid"}}]));
    for annotation in [None, Some("a"), Some("b"), Some("zz"), Some("a, b, zz"), Some(" , ")] {
        for place in ["/spec/containers/0", "/spec/containers/1", "/spec/initContainers/0"] {
            for (env, taken) in entries("ARK_MEMORY_URL", "https://good.example.com") {
                for (env_from, may_set) in env_froms() {
                    for inject in ["enabled", "disabled"] {
                        let labels = json!({"memgate.dev/inject": inject});
                        let mut pod = pod(&labels, &json!({"name": "a", "image": "a"}));
                        pod["spec"]["containers"] =
                            json!([{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]);
                        pod["spec"]["initContainers"] =
                            json!([{"name": "i", "image": "i", "restartPolicy": "Always"}]);
                        pod["metadata"]["annotations"] = json!({"memgate.dev/ark-memory": "notes"});
                        if let Some(annotation) = annotation {
                            pod["metadata"]["annotations"]["memgate.dev/ark-containers"] = json!(annotation);
                        }
                        let container = pod.pointer_mut(place).expect("a container");
                        container["env"] = json!(env);
                        container["envFrom"] = env_from.clone();
                        let named = annotation.is_none_or(|it| {
                            it == " , " || it.contains(if place.ends_with("s/0") { "a" } else { "b" })
                        });
                        let is_injected = inject == "enabled" && named && !place.contains("init");
                        let is_open = may_set && env.is_empty() && !is_injected;
                        let of_env_from = if is_open { Taken::Unknown } else { Taken::Allowed };
                        for (policy, least) in policies() {
                            let findings = reported(&[memory.clone(), policy], &pod);
                            let expected = taken.max(of_env_from) >= least;
                            assert_eq!(is_denied(&findings), expected, "{pod}: {:?}", messages(&findings));
                            let here = |it: &&Finding| it.pointer.as_str().starts_with(place);
                            assert_eq!(findings.iter().filter(here).any(denies), expected, "{pod}");
                        }
                        let last = env.last().and_then(|it| it["value"].as_str());
                        let differs = !env.is_empty() && last != Some("https://good.example.com");
                        let findings = reported(&[memory.clone(), forbids.clone()], &pod);
                        assert_eq!(
                            is_denied(&findings),
                            differs || may_set,
                            "{pod}: {:?}",
                            messages(&findings)
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_server_of_sympozium_may_come_from_env_from() {
    let metadata = |name: &str| json!({"name": name, "namespace": "team"});
    let spec = json!({"agents": {"default": {"model": "m"}}, "skills": [{"skillPackRef": "memory"}]});
    let agent = json!({"apiVersion": "sympozium.ai/v1alpha1", "kind": "Agent",
        "metadata": metadata("scout"), "spec": spec});
    let endpoint = json!({"inCluster": "require"});
    let policy = denying(&json!([{"id": "it", "roles": ["pod"], "onUnknown": "deny", "endpoint": endpoint}]));
    let good = "http://good.team.svc";
    let both = |url: &str| {
        ["MEMORY_SERVER_URL", "WORKFLOW_MEMORY_SERVER_URL"].map(|name| json!({"name": name, "value": url}))
    };
    for (env_from, may_set) in env_froms() {
        for inject in ["enabled", "disabled"] {
            for (env, expected) in [
                (json!([]), may_set),
                (json!(both(good)), false),
                (json!(both(good)[..1]), may_set),
                (json!(both(good)[1..]), may_set && inject == "disabled"),
                (json!(both("http://evil.com")), true),
                (json!(both("http://evil.com")[1..]), true),
            ] {
                let labels = json!({"sympozium.ai/instance": "scout", "sympozium.ai/component": "agent-run",
                    "memgate.dev/inject": inject});
                let container = json!({"name": "agent", "image": "a", "env": env, "envFrom": env_from});
                let findings = reported(&[agent.clone(), policy.clone()], &pod(&labels, &container));
                assert_eq!(is_denied(&findings), expected, "{inject} {container}: {:?}", messages(&findings));
            }
        }
    }
}

/// What a thousand containers set alike is judged once, at the first of them.
#[test]
fn equal_variables_of_many_containers_are_one_memory() {
    let spec = json!({"address": {"value": "https://good.example.com"}});
    let memory = json!({"apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory",
        "metadata": {"name": "notes", "namespace": "team"}, "spec": spec});
    for (policy, _) in policies() {
        let mut pod = pod(&json!({}), &Value::Null);
        pod["metadata"]["annotations"] = json!({"memgate.dev/ark-memory": "notes"});
        let container = |at: usize| {
            let url = ["https://evil.com", "https://worse.com"][at % 2];
            json!({"name": format!("c{at}"), "image": "a", "env": [{"name": "ARK_MEMORY_URL", "value": url}]})
        };
        pod["spec"]["containers"] = (0..1_000).map(container).collect();
        let findings = reported(&[memory.clone(), policy], &pod);
        let places: Vec<&str> = findings.iter().map(|it| it.pointer.as_str()).collect();
        assert_eq!(places, ["/spec/containers/0/env/0", "/spec/containers/1/env/0"]);
    }
}

/// How agent pods of a platform name their memory.
struct Platform {
    state: Vec<Value>,
    /// The metadata and the arguments of pods whose memory is not found, and then of one whose memory is.
    pods: Vec<(Value, Value)>,
    found: Option<(Value, Value)>,
    /// What a program reads to know which of the addresses to use.
    chooser: Option<Value>,
    address: &'static str,
}

fn platforms() -> [Platform; 4] {
    [of_arkonis(), of_ark(), of_orloj(), of_sympozium()]
}

fn named(name: &str) -> Value {
    json!({"name": name, "namespace": "team"})
}

fn labelled(labels: &Value) -> (Value, Value) {
    (json!({"labels": labels}), Value::Null)
}

fn of_arkonis() -> Platform {
    let agent = |name: &str, spec: Value| json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkAgent", "metadata": named(name), "spec": spec});
    let mut arkonis = [declared("arkonis.dev", &store()), declared("kubeswarm.io", &store())].concat();
    arkonis.push(agent("bare", json!({"model": "m", "systemPrompt": "p"})));
    arkonis.push(agent("lost", json!({"model": "m", "systemPrompt": "p", "memoryRef": {"name": "nope"}})));
    let mut of_arkonis: Vec<_> = ["", "nope", "bare", "lost"]
        .into_iter()
        .flat_map(|name| {
            ["arkonis.dev/deployment", "agentops.io/deployment"].map(|key| labelled(&json!({key: name})))
        })
        .collect();
    of_arkonis.push(labelled(&json!({"arkonis.dev/deployment": "nope", "kubeswarm/deployment": "scout"})));
    Platform {
        state: arkonis,
        pods: of_arkonis,
        found: Some(labelled(&json!({"arkonis.dev/deployment": "scout"}))),
        chooser: Some(json!({"name": "AGENT_MEMORY_BACKEND", "value": "vector-store"})),
        address: ENDPOINT,
    }
}

fn of_ark() -> Platform {
    let memory = json!({"apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory", "metadata": named("notes"),
        "spec": {"address": {"value": "https://good.example.com"}}});
    let annotated = |name: &str, label: &str| {
        let (annotations, labels) =
            (json!({"memgate.dev/ark-memory": name}), json!({"app.kubernetes.io/name": label}));
        (json!({"annotations": annotations, "labels": labels}), Value::Null)
    };
    let of_ark = [
        ("nope", "a"),
        ("a/b/c", "a"),
        ("Notes", "a"),
        ("team/", "a"),
        ("notes", "ark-broker"),
        ("notes", "memgate"),
    ];
    Platform {
        state: vec![memory],
        pods: of_ark.map(|(name, label)| annotated(name, label)).to_vec(),
        found: Some(annotated("notes", "a")),
        chooser: None,
        address: "ARK_MEMORY_URL",
    }
}

fn of_orloj() -> Platform {
    let orloj = |kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": "orloj.dev/v1", "kind": kind, "metadata": {"name": name, "namespace": "team",
            "annotations": {"orloj.dev/target-namespace": "team"}}, "spec": spec})
    };
    let job = |args: Value| (json!({"labels": {"orloj.dev/component": "agent-job"}}), args);
    let of_orloj = [
        Value::Null,
        json!(["--task-id", "team/t"]),
        json!(["--task-id", "team/t", "--agent-name", "nope"]),
        json!(["--task-id", "team/t", "--agent-name", "$(X)"]),
        json!(["--task-id", "team/t", "--agent-name", "scout", "--agent-name", "nope"]),
        json!(["--task-id", "other/t", "--agent-name", "scout"]),
    ];
    Platform {
        state: vec![
            orloj(
                "Memory",
                "notes",
                json!({"type": "vector", "provider": "http", "endpoint": "https://good.example.com"}),
            ),
            orloj(
                "Agent",
                "scout",
                json!({"model_ref": "m", "prompt": "p", "memory": {"ref": "notes", "allow": ["read"]}}),
            ),
        ],
        pods: of_orloj.map(job).to_vec(),
        found: Some(job(json!(["--task-id", "team/t", "--agent-name", "scout"]))),
        chooser: Some(json!({"name": "ORLOJ_MEMORY_PROVIDER", "value": "http"})),
        address: "ORLOJ_MEMORY_ENDPOINT",
    }
}

fn of_sympozium() -> Platform {
    let run = |labels: &[(&str, &str)]| {
        let labels = labels.iter().chain(&[("sympozium.ai/component", "agent-run")]);
        labelled(&labels.map(|(key, value)| ((*key).to_owned(), json!(value))).collect())
    };
    let sympozium = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "sympozium.ai/v1alpha1", "kind": kind, "metadata": named(name), "spec": spec});
    let bare = json!({"agents": {"default": {"model": "m"}}});
    let instance = "sympozium.ai/instance";
    Platform {
        state: vec![
            sympozium("Agent", "bare", bare),
            sympozium(
                "AgentRun",
                "run",
                json!({"agentRef": "other", "agentId": "default", "sessionKey": "s", "task": "x"}),
            ),
        ],
        pods: vec![
            run(&[(instance, "")]),
            run(&[(instance, "nope")]),
            run(&[(instance, "bare")]),
            run(&[(instance, "bare"), ("sympozium.ai/agent-run", "run")]),
        ],
        found: None,
        chooser: None,
        address: "MEMORY_SERVER_URL",
    }
}

/// The places of a container that sets variables, with the pod around it.
fn placed(container: &Value, (metadata, args): &(Value, Value)) -> Vec<(&'static str, Value)> {
    let of = |name: &str| {
        let mut named = container.clone();
        named["name"] = json!(name);
        named
    };
    let agent = json!({"name": "agent", "image": "a", "args": args});
    let mut with_args = of("agent");
    with_args["args"] = args.clone();
    let mut sidecar = of("agent");
    sidecar["restartPolicy"] = json!("Always");
    let main = json!({"name": "main", "image": "a"});
    let specs = [
        ("/spec/containers/0", json!({"containers": [with_args]})),
        ("/spec/containers/0", json!({"containers": [of("runner")]})),
        ("/spec/containers/1", json!({"containers": [agent.clone(), of("runner")]})),
        ("/spec/initContainers/0", json!({"containers": [agent], "initContainers": [of("first")]})),
        ("/spec/initContainers/0", json!({"containers": [main], "initContainers": [sidecar]})),
    ];
    let pod = |(place, spec)| {
        let mut metadata = metadata.clone();
        metadata["name"] = json!("p");
        metadata["namespace"] = json!("team");
        (place, json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
    };
    specs.map(pod).to_vec()
}

/// Whatever is missing, malformed or named otherwise, a pod is judged by what it sets itself.
#[test]
fn no_missing_memory_hides_what_a_pod_sets() {
    for Platform { state, pods, found, chooser, address } in platforms() {
        let all = pods.iter().map(|pod| (pod, false)).chain(found.iter().map(|pod| (pod, true)));
        for ((named, is_found), (policy, least)) in all.flat_map(|pod| policies().map(|policy| (pod, policy)))
        {
            let state = [&state[..], &[policy]].concat();
            let chosen = [chooser.clone()].into_iter().chain(chooser.as_ref().map(|_| None));
            let entries = entries(address, "https://good.example.com");
            for ((value, taken), chosen) in
                chosen.flat_map(|chosen| entries.iter().map(move |entry| (entry.clone(), chosen.clone())))
            {
                let env: Vec<Value> = chosen.iter().cloned().chain(value.clone()).collect();
                let container = json!({"image": "a", "env": env});
                for (place, pod) in placed(&container, named) {
                    let findings = reported(&state, &pod);
                    let args = pod.pointer("/spec/containers/0/args");
                    let is_found = is_found && (named.1.is_null() || args == Some(&named.1));
                    let is_open = !is_found && chooser.is_some() && chosen.is_none() && !value.is_empty();
                    let taken = if is_open { taken.max(Taken::Unknown) } else { taken };
                    let shown = messages(&findings);
                    assert_eq!(is_denied(&findings), taken >= least, "{pod}: {shown:?}");
                    for finding in &findings {
                        assert!(finding.pointer.as_str().starts_with(place), "{}: {pod}", finding.pointer);
                        let names_memory = finding.message().contains("notes\")");
                        assert!(is_found || !names_memory, "{shown:?} {pod}");
                    }
                }
            }
        }
    }
}

/// A pod that sets nothing and whose memory is not found has no memory, whatever is asked of it.
#[test]
fn a_pod_that_sets_nothing_is_not_judged() {
    let rules = json!([
        {"id": "a", "roles": ["pod"], "onUnknown": "deny", "backends": {"durable": true, "allow": ["none"]}},
        {"id": "b", "roles": ["pod"], "onUnknown": "deny", "providers": {"allow": ["none"]}},
        {"id": "c", "roles": ["pod"], "onUnknown": "deny", "retention": {"max": "1h"}},
        {"id": "d", "onUnknown": "deny", "environment": {"overrides": "forbid"}},
    ]);
    for Platform { state, pods, .. } in platforms() {
        let state = [&state[..], &[denying(&rules)]].concat();
        for named in &pods {
            for (_, pod) in placed(&json!({"image": "a", "env": [{"name": "OTHER", "value": "x"}]}), named) {
                assert_eq!(messages(&reported(&state, &pod)), Vec::<&str>::new(), "{pod}");
            }
        }
    }
}

#[test]
fn the_url_of_kubeswarm_names_provider_and_collection() {
    let labels = |name: &str| json!({"kubeswarm/deployment": name, "owner": "a"});
    let mut spec = store();
    spec["vectorStore"]["collection"] = json!("a-notes");
    let mut state = declared("kubeswarm.io", &spec);
    state[0]["metadata"]["labels"] = json!({"owner": "a"});
    for (url, wrong) in [
        ("qdrant://good.example.com/a-notes", None),
        ("qdrant://good.example.com:6333/a-other", None),
        ("QDRANT://good.example.com/a-notes?x=/b", None),
        ("qdrant://good.example.com/b-notes", Some("ten")),
        ("qdrant://good.example.com", Some("ten")),
        ("qdrant://good.example.com\\b-notes", Some("ten")),
        ("qdrant://good.example.com/?a-notes", Some("ten")),
        ("weaviate://good.example.com/a-notes", Some("prov")),
        ("postgres://good.example.com/b", Some("prov")),
        ("good.example.com/a-notes", Some("prov")),
        ("$(X)", Some("prov")),
    ] {
        for name in ["scout", "nope"] {
            for (id, rule) in [
                ("ten", json!({"tenancy": {"from": {"objectLabel": "owner"}, "collection": "{tenant}-*"}})),
                ("prov", json!({"providers": {"allow": ["qdrant"]}})),
            ] {
                let mut rule = rule;
                rule["id"] = json!(id);
                rule["roles"] = json!(["pod"]);
                rule["onUnknown"] = json!("deny");
                let state = [&state[..], &[denying(&json!([rule]))]].concat();
                let mut env = vec![json!({"name": "AGENT_VECTOR_STORE_URL", "value": url})];
                if name == "nope" {
                    env.push(json!({"name": "AGENT_MEMORY_BACKEND", "value": "vector-store"}));
                    env.push(json!({"name": "AGENT_MEMORY_VECTOR_STORE_PROVIDER", "value": "qdrant"}));
                    env.push(json!({"name": "AGENT_MEMORY_VECTOR_STORE_COLLECTION", "value": "a-notes"}));
                }
                let findings = reported(
                    &state,
                    &pod(&labels(name), &json!({"name": "agent", "image": "a", "env": env})),
                );
                let is_unknown = matches!(url, "$(X)" | "good.example.com/a-notes");
                let expected = wrong == Some(id) || is_unknown;
                assert_eq!(is_denied(&findings), expected, "{id} {name} {url}: {:?}", messages(&findings));
            }
        }
    }
}

#[test]
fn a_server_that_a_pod_brings_is_judged_by_its_volume() {
    let metadata = |name: &str| json!({"name": name, "namespace": "team"});
    let spec = json!({"agents": {"default": {"model": "m"}}, "skills": [{"skillPackRef": "memory"}]});
    let agent = json!({"apiVersion": "sympozium.ai/v1alpha1", "kind": "Agent", "metadata": metadata("scout"), "spec": spec});
    let durable = json!([{"id": "it", "roles": ["pod"], "onUnknown": "deny", "backends": {"durable": true}}]);
    let state = [agent, denying(&durable)];
    let volumes = [
        (json!({"persistentVolumeClaim": {"claimName": "scout-memory-db"}}), true),
        (json!({"emptyDir": {}}), false),
        (json!({"hostPath": {"path": "/x"}}), false),
    ];
    let paths = [
        (None, true),
        (Some(json!({"value": "/data/memory.db"})), true),
        (Some(json!({"value": "/data/a/../memory.db"})), true),
        (Some(json!({"value": ":memory:"})), false),
        (Some(json!({"value": "/tmp/memory.db"})), false),
        (Some(json!({"value": "/data/../tmp/memory.db"})), false),
        (Some(json!({"value": "/database/memory.db"})), false),
        (Some(json!({"value": "file::memory:"})), false),
        (Some(json!({"value": "memory.db"})), false),
        (Some(json!({"value": "$(X)"})), false),
        (Some(json!({"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}})), false),
    ];
    for ((volume, lasts), (path, is_kept)) in
        volumes.iter().flat_map(|it| paths.iter().map(move |path| (it, path)))
    {
        for name in ["memory-server", "skill-memory", "other"] {
            for list in ["containers", "initContainers"] {
                for url in [None, Some("http://127.0.0.1:8080"), Some("http://scout-memory.team.svc:8080")] {
                    let env = path.iter().map(|path| {
                        let mut entry = path.clone();
                        entry["name"] = json!("MEMORY_DB_PATH");
                        entry
                    });
                    let server = json!({"name": name, "image": "a", "env": env.collect::<Vec<_>>(), "restartPolicy": "Always",
                        "volumeMounts": [{"name": "memory-db", "mountPath": "/data/"}]});
                    let of_url = url.iter().map(|url| json!({"name": "MEMORY_SERVER_URL", "value": url}));
                    let container = json!({"name": "agent", "image": "a", "env": of_url.collect::<Vec<_>>()});
                    let labels =
                        json!({"sympozium.ai/component": "agent-run", "sympozium.ai/instance": "scout"});
                    let mut pod = pod(&labels, &container);
                    let mut volume = volume.clone();
                    volume["name"] = json!("memory-db");
                    pod["spec"]["volumes"] = json!([volume]);
                    match list {
                        "containers" => pod["spec"]["containers"] = json!([container, server]),
                        _ => pod["spec"]["initContainers"] = json!([server]),
                    }
                    let findings = reported(&state, &pod);
                    let is_used = name != "other" && !url.is_some_and(|url| url.contains("svc"));
                    let expected = is_used && !(*lasts && *is_kept);
                    assert_eq!(is_denied(&findings), expected, "{pod}: {:?}", messages(&findings));
                }
            }
        }
    }
}
