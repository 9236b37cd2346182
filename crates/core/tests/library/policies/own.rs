//! Ways to hide what a pod uses: behind a second variable, in `envFrom`, in another container, behind an annotation. The
//! tests combine the rows of `tests/policies/own.yaml`; `tests/cases/policy/own.yaml` has single pods.

use std::slice;
use std::sync::LazyLock;

use memgate_model::finding::Finding;
use serde_json::{Value, json};

use super::{data, denies, denying, messages, reported};

static ROWS: LazyLock<Value> = LazyLock::new(|| data("own"));

fn rows(name: &str) -> &'static [Value] {
    ROWS[name].as_array().expect(name)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// A value of a variable, and how a rule about hosts takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    Allowed,
    Unknown,
    Denied,
}

/// The entries of a variable, and how the value that counts is taken; `good` is an allowed value.
fn entries(name: &str, good: &str) -> Vec<(Vec<Value>, Taken)> {
    let scheme = good.split("://").next().expect("a scheme");
    let written = Value::from(rows("entries")).to_string();
    let written = written.replace("NAME", name).replace("GOOD", good).replace("SCHEME", scheme);
    let rows: Vec<Value> = serde_json::from_str(&written).expect("JSON");
    let entry = |row: &Value| {
        let taken = match text(&row["taken"]) {
            "allowed" => Taken::Allowed,
            "unknown" => Taken::Unknown,
            _ => Taken::Denied,
        };
        (row["env"].as_array().expect("a list").clone(), taken)
    };
    rows.iter().map(entry).collect()
}

/// Policies that allow one host to pods: one that denies what it cannot judge, and one that does not.
fn policies() -> [(Value, Taken); 2] {
    let of = |on_unknown: &str| {
        let endpoint = json!({"hosts": ["good.example.com"]});
        denying(&json!([{"id": "it", "roles": ["pod"], "onUnknown": on_unknown, "endpoint": endpoint}]))
    };
    [(of("deny"), Taken::Unknown), (of("note"), Taken::Denied)]
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

/// Whether a pod is denied is what was expected.
#[track_caller]
fn expect(state: &[Value], pod: &Value, denied: bool) -> Vec<Finding> {
    let findings = reported(state, pod);
    assert_eq!(is_denied(&findings), denied, "{pod}: {:?}", messages(&findings));
    findings
}

const ENDPOINT: &str = "AGENT_MEMORY_VECTOR_STORE_ENDPOINT";
const REDIS_URL: &str = "AGENT_MEMORY_REDIS_URL";

#[test]
fn no_address_hides_another_one() {
    for (policy, least) in policies() {
        let state = [rows("kubeswarm"), &[policy]].concat();
        for (endpoint, of_endpoint) in entries(ENDPOINT, "https://good.example.com") {
            for (url, of_url) in entries("AGENT_VECTOR_STORE_URL", "qdrant://good.example.com/x") {
                for inject in ["enabled", "disabled"] {
                    let labels = json!({"kubeswarm/deployment": "scout", "memgate.dev/inject": inject});
                    for env in [[&endpoint[..], &url].concat(), [&url[..], &endpoint].concat()] {
                        let container = json!({"name": "agent", "image": "a", "env": env});
                        expect(&state, &pod(&labels, &container), of_endpoint.max(of_url) >= least);
                    }
                }
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

/// How a variable of arkonis is taken that `envFrom` may set as well.
struct Combined<'c> {
    declares: &'c str,
    backend: Option<&'c str>,
    taken: Taken,
    has_address: bool,
    may_set: bool,
    inject: &'c str,
}

impl Combined<'_> {
    fn taken(&self) -> Taken {
        let Self { declares, backend, taken, has_address, may_set, inject } = *self;
        let used = backend.unwrap_or(declares);
        let is_injected = inject == "enabled" && used == declares;
        let of_address = match used {
            "redis" | "vector-store" if has_address => taken,
            // The address of redis is in a Secret.
            "redis" if declares == "redis" => Taken::Unknown,
            "redis" | "vector-store" if may_set && !is_injected => Taken::Unknown,
            "in-context" | "redis" | "vector-store" => Taken::Allowed,
            // The program may take the backend for another one.
            _ => taken.max(Taken::Unknown),
        };
        // `envFrom` may even set the backend.
        match may_set && inject == "disabled" && backend.is_none() {
            true if has_address => of_address.max(Taken::Unknown).max(taken),
            true => of_address.max(Taken::Unknown),
            false => of_address,
        }
    }
}

#[test]
fn what_env_from_may_set_is_unknown() {
    const BACKENDS: [Option<&str>; 6] =
        [None, Some("in-context"), Some("redis"), Some("vector-store"), Some("Redis"), Some("")];
    for (memory, (policy, least)) in
        rows("memories").iter().flat_map(|memory| policies().map(|policy| (memory, policy)))
    {
        let declares = text(&memory["spec"]["backend"]);
        let state = [slice::from_ref(memory), rows("agents"), &[policy]].concat();
        for backend in BACKENDS {
            let (name, good) = match backend.unwrap_or(declares) {
                "redis" => (REDIS_URL, "redis://good.example.com"),
                _ => (ENDPOINT, "https://good.example.com"),
            };
            let own = backend.map(|backend| json!({"name": "AGENT_MEMORY_BACKEND", "value": backend}));
            for ((address, taken), (env_from, may_set)) in
                entries(name, good).iter().flat_map(|entry| env_froms().map(|from| (entry, from)))
            {
                for inject in ["enabled", "disabled"] {
                    let env: Vec<&Value> = own.iter().chain(address).collect();
                    let container = json!({"name": "agent", "image": "a", "env": env, "envFrom": env_from});
                    let labels = json!({"arkonis.dev/deployment": "scout", "memgate.dev/inject": inject});
                    let (taken, has_address) = (*taken, !address.is_empty());
                    let combined = Combined { declares, backend, taken, has_address, may_set, inject };
                    expect(&state, &pod(&labels, &container), combined.taken() >= least);
                }
            }
        }
    }
}

#[test]
fn no_annotation_and_no_container_hides_a_variable_of_ark() {
    let memory = &ROWS["platforms"][1]["state"][0];
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
                            let expected = taken.max(of_env_from) >= least;
                            let findings = expect(&[memory.clone(), policy], &pod, expected);
                            let here = |it: &&Finding| it.pointer.as_str().starts_with(place);
                            assert_eq!(findings.iter().filter(here).any(denies), expected, "{pod}");
                        }
                        let last = env.last().and_then(|it| it["value"].as_str());
                        let differs = !env.is_empty() && last != Some("https://good.example.com");
                        expect(&[memory.clone(), forbids.clone()], &pod, differs || may_set);
                    }
                }
            }
        }
    }
}

/// What makes a container one that gets no memory: its name, an annotation of Istio, memgate's own.
#[test]
fn no_sidecar_and_no_newcomer_hides_a_variable_of_ark() {
    let memory = &ROWS["platforms"][1]["state"][0];
    let marker = json!({"family": "ark", "env": {"a": ["ARK_MEMORY_NAME"]}}).to_string();
    let status = json!({"containers": ["b"]}).to_string();
    let named = json!([{"name": "ARK_MEMORY_NAME", "value": "notes"}]);
    for (name, annotations) in [
        ("istio-proxy", json!({})),
        ("vault-agent", json!({})),
        ("envoy", json!({})),
        ("b", json!({"sidecar.istio.io/status": status})),
        ("b", json!({"memgate.dev/injected": marker})),
    ] {
        for (env, taken) in entries("ARK_MEMORY_URL", "https://good.example.com") {
            for (env_from, may_set) in env_froms() {
                let mut pod = pod(&json!({}), &json!({"name": "a", "image": "a", "env": named}));
                pod["metadata"]["annotations"] = annotations.clone();
                pod["metadata"]["annotations"]["memgate.dev/ark-memory"] = json!("notes");
                pod["spec"]["initContainers"] = json!([{"name": "proxyinit", "image": "i"}]);
                let second = json!({"name": name, "image": "b", "env": env, "envFrom": env_from});
                pod["spec"]["containers"].as_array_mut().expect("containers").push(second);
                let of_env_from = if may_set && env.is_empty() { Taken::Unknown } else { Taken::Allowed };
                for (policy, least) in policies() {
                    expect(&[memory.clone(), policy], &pod, taken.max(of_env_from) >= least);
                }
            }
        }
    }
}

/// The places of a container that sets variables, with the pod around it.
fn placed(container: &Value, named: &Value) -> Vec<(&'static str, Value)> {
    let pod = |row: &'static Value| {
        let mut metadata = named["metadata"].clone();
        (metadata["name"], metadata["namespace"]) = (json!("p"), json!("team"));
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": row["spec"]});
        let here = pod.pointer_mut(text(&row["at"])).and_then(Value::as_object_mut).expect("a container");
        here.extend(container.as_object().expect("a container").clone());
        for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
            if container["args"] == "ARGS" {
                container["args"] = named["args"].clone();
            }
        }
        (text(&row["at"]), pod)
    };
    rows("places").iter().map(pod).collect()
}

/// Whatever is missing, malformed or named otherwise, a pod is judged by what it sets itself.
#[test]
fn no_missing_memory_hides_what_a_pod_sets() {
    for (platform, (policy, least)) in
        rows("platforms").iter().flat_map(|platform| policies().map(|policy| (platform, policy)))
    {
        let (chooser, found) = (platform.get("chooser"), platform.get("found"));
        let state = [platform["state"].as_array().expect("a list"), &[policy][..]].concat();
        let entries = entries(text(&platform["address"]), "https://good.example.com");
        for named in platform["lost"].as_array().into_iter().flatten().chain(found) {
            let choices = [chooser, None].into_iter().take(if chooser.is_some() { 2 } else { 1 });
            for (chosen, (value, taken)) in
                choices.flat_map(|chosen| entries.iter().map(move |entry| (chosen, entry)))
            {
                let env: Vec<&Value> = chosen.into_iter().chain(value).collect();
                for (place, pod) in placed(&json!({"image": "a", "env": env}), named) {
                    let args = pod.pointer("/spec/containers/0/args");
                    let is_found =
                        found == Some(named) && (named["args"].is_null() || args == named.get("args"));
                    let is_open = !is_found && chooser.is_some() && chosen.is_none() && !value.is_empty();
                    let taken = if is_open { Taken::Unknown.max(*taken) } else { *taken };
                    for finding in expect(&state, &pod, taken >= least) {
                        assert!(finding.pointer.as_str().starts_with(place), "{}: {pod}", finding.pointer);
                        let names_memory = finding.message().contains("notes\")");
                        assert!(is_found || !names_memory, "{} {pod}", finding.message());
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
    for platform in rows("platforms") {
        let state = [platform["state"].as_array().expect("a list"), &[denying(&rules)][..]].concat();
        for named in platform["lost"].as_array().expect("a list") {
            for (_, pod) in placed(&json!({"image": "a", "env": [{"name": "OTHER", "value": "x"}]}), named) {
                assert_eq!(messages(&reported(&state, &pod)), Vec::<&str>::new(), "{pod}");
            }
        }
    }
}

#[test]
fn the_url_of_kubeswarm_names_provider_and_collection() {
    let others = json!([
        {"name": "AGENT_MEMORY_BACKEND", "value": "vector-store"},
        {"name": "AGENT_MEMORY_VECTOR_STORE_PROVIDER", "value": "qdrant"},
        {"name": "AGENT_MEMORY_VECTOR_STORE_COLLECTION", "value": "a-notes"},
    ]);
    for (row, rule) in rows("urls").iter().flat_map(|row| rows("url_rules").iter().map(move |it| (row, it))) {
        let state = [rows("url_state"), &[denying(&json!([rule]))]].concat();
        let denied = row["denied"].as_array().expect("a list").contains(&rule["id"]);
        for (name, others) in [("scout", &Value::Null), ("nope", &others)] {
            let url = json!({"name": "AGENT_VECTOR_STORE_URL", "value": row["url"]});
            let env: Vec<&Value> =
                [&url].into_iter().chain(others.as_array().into_iter().flatten()).collect();
            let labels = json!({"kubeswarm/deployment": name, "owner": "a"});
            expect(&state, &pod(&labels, &json!({"name": "agent", "image": "a", "env": env})), denied);
        }
    }
}

#[test]
fn a_server_that_a_pod_brings_is_judged_by_its_volume() {
    const URLS: [Option<&str>; 3] =
        [None, Some("http://127.0.0.1:8080"), Some("http://scout-memory.team.svc:8080")];
    let durable = json!([{"id": "it", "roles": ["pod"], "onUnknown": "deny", "backends": {"durable": true}}]);
    let state = [rows("servers"), &[denying(&durable)]].concat();
    for (volume, path) in
        rows("volumes").iter().flat_map(|volume| rows("paths").iter().map(move |path| (volume, path)))
    {
        for (name, url) in
            ["memory-server", "skill-memory", "other"].into_iter().flat_map(|it| URLS.map(|url| (it, url)))
        {
            for list in ["containers", "initContainers"] {
                let server = json!({"name": name, "image": "a", "env": path["env"], "restartPolicy": "Always",
                    "volumeMounts": [{"name": "memory-db", "mountPath": "/data/"}]});
                let of_url = url.map(|url| json!({"name": "MEMORY_SERVER_URL", "value": url}));
                let container = json!({"name": "agent", "image": "a", "env": Vec::from_iter(of_url)});
                let labels = json!({"sympozium.ai/component": "agent-run", "sympozium.ai/instance": "scout"});
                let mut pod = pod(&labels, &container);
                pod["spec"]["volumes"] = json!([volume["volume"]]);
                match list {
                    "containers" => pod["spec"]["containers"] = json!([container, server]),
                    _ => pod["spec"]["initContainers"] = json!([server]),
                }
                let is_used = name != "other" && !url.is_some_and(|url| url.contains("svc"));
                let lasts = volume["lasts"] == true && path["lasts"] == true;
                expect(&state, &pod, is_used && !lasts);
            }
        }
    }
}
