//! Pods that set the variables of their memory themselves, and pods that are too large to be judged.

use memgate_model::finding::Finding;
use memgate_primitives::budget::{MAX_CONTAINERS, MAX_ENTRIES, MAX_VARIABLES, MAX_VOLUMES};
use serde_json::{Value, json};

use super::{admitted, case, denies, denying, messages, of_policies, policy, reported};

const PREFIX: &str = "AGENT_MEMORY_";

fn memory(name: &str, spec: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": "team"});
    json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory", "metadata": metadata, "spec": spec})
}

fn agent() -> Value {
    let spec = json!({"model": "m", "systemPrompt": "p", "memoryRef": {"name": "notes"}});
    let metadata = json!({"name": "scout", "namespace": "team"});
    json!({"apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkAgent", "metadata": metadata, "spec": spec})
}

fn pod(labels: &Value, env: &Value) -> Value {
    let containers = json!([{"name": "agent", "image": "a", "env": env}]);
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team", "labels": labels},
        "spec": {"containers": containers},
    })
}

/// Memories with the variables that each wants, as `name=value`; a value of `@` is a reference to a Secret.
fn memories() -> [(Value, Vec<(&'static str, &'static str)>); 3] {
    let redis = json!({"secretRef": {"name": "s"}, "ttlSeconds": 60, "maxEntries": 5});
    let store = json!({
        "provider": "qdrant", "endpoint": "http://q", "collection": "c", "secretRef": {"name": "s"}, "ttlSeconds": 60,
    });
    [
        (json!({"backend": "in-context"}), vec![("BACKEND", "in-context")]),
        (
            json!({"backend": "redis", "redis": redis}),
            vec![("BACKEND", "redis"), ("REDIS_URL", "@"), ("REDIS_TTL", "60"), ("REDIS_MAX_ENTRIES", "5")],
        ),
        (
            json!({"backend": "vector-store", "vectorStore": store}),
            vec![
                ("BACKEND", "vector-store"),
                ("VECTOR_STORE_PROVIDER", "qdrant"),
                ("VECTOR_STORE_ENDPOINT", "http://q"),
                ("VECTOR_STORE_COLLECTION", "c"),
                ("VECTOR_STORE_API_KEY", "@"),
                ("VECTOR_STORE_TTL", "60"),
            ],
        ),
    ]
}

const NAMES: [&str; 9] = [
    "BACKEND", "REDIS_URL", "REDIS_TTL", "REDIS_MAX_ENTRIES", "VECTOR_STORE_PROVIDER",
    "VECTOR_STORE_ENDPOINT", "VECTOR_STORE_COLLECTION", "VECTOR_STORE_API_KEY", "VECTOR_STORE_TTL",
];

#[test]
fn the_environment_is_every_variable_with_another_value() {
    let rule = json!([{"id": "it", "environment": {"overrides": "forbid"}}]);
    let keys = ["REDIS_URL", "VECTOR_STORE_API_KEY"];
    for (spec, wanted) in memories() {
        let state = [memory("notes", &spec), agent(), denying(&rule)];
        for name in NAMES {
            let wants = wanted.iter().find(|(wanted, _)| *wanted == name).map(|(_, value)| *value);
            let key = if name == "REDIS_URL" { "REDIS_URL" } else { "VECTOR_STORE_API_KEY" };
            let full = format!("{PREFIX}{name}");
            let values =
                ["in-context", "redis", "vector-store", "qdrant", "http://q", "c", "60", "5", "", "0"];
            let literals = values.map(|value| (json!({"name": full, "value": value}), wants == Some(value)));
            let secret = json!({"secretKeyRef": {"name": "s", "key": key}});
            let other = json!({"secretKeyRef": {"name": "other", "key": key}});
            let map = json!({"configMapKeyRef": {"name": "s", "key": key}});
            let references =
                [(secret, wants == Some("@") && keys.contains(&name)), (other, false), (map, false)]
                    .map(|(from, equal)| (json!({"name": full, "valueFrom": from}), equal));
            for (entry, equal) in literals.into_iter().chain(references) {
                let stray = json!({"name": full, "value": "stray"});
                for inject in ["disabled", "required", "other"] {
                    for env in
                        [json!([entry]), json!([stray, entry]), json!([{"name": "X", "value": "y"}, entry])]
                    {
                        let labels = json!({"arkonis.dev/deployment": "scout", "memgate.dev/inject": inject});
                        let findings = reported(&state, &pod(&labels, &env));
                        let at =
                            format!("/spec/containers/0/env/{}", env.as_array().expect("a list").len() - 1);
                        let places: Vec<&str> = findings.iter().map(|it| it.pointer.as_str()).collect();
                        let expected: &[&str] = if equal { &[] } else { &[&at] };
                        assert_eq!(places, expected, "{inject} {env} for {spec}: {:?}", messages(&findings));
                    }
                }
            }
        }
    }
}

/// Whatever one variable of a pod is, a rule about it fires for the pod as it would for a memory with that value, or
/// it is unknown.
#[test]
fn no_value_of_a_variable_is_judged_as_the_declared_one() {
    let rules = json!([
        {"id": "a", "roles": ["pod"], "onUnknown": "deny", "backends": {"allow": ["none"]}},
        {"id": "b", "roles": ["pod"], "onUnknown": "deny", "providers": {"allow": ["none"]}},
        {"id": "c", "roles": ["pod"], "onUnknown": "deny", "endpoint": {"hosts": ["none"], "fromSecret": true}},
        {"id": "d", "roles": ["pod"], "onUnknown": "deny", "retention": {"min": "500000h", "zero": "forbid"}},
        {"id": "e", "roles": ["pod"], "onUnknown": "deny", "capacity": {"maxEntries": {"max": 1}}},
        {"id": "f", "roles": ["pod"], "onUnknown": "deny", "tenancy":
            {"from": {"namespace": true}, "collection": "none-*", "secrets": "none-*"}},
        {"id": "g", "roles": ["pod"], "onUnknown": "deny", "secrets": {"inline": "forbid", "names": ["none"]}},
    ]);
    for (spec, wanted) in memories() {
        let state = [memory("notes", &spec), agent(), denying(&rules)];
        for (name, _) in wanted {
            let full = format!("{PREFIX}{name}");
            let mut entries =
                vec![json!({"name": full, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})];
            entries.push(json!({"name": full, "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}));
            for value in [
                "evil", "http://evil", "redis", "in-context", "vector-store", "77", "-1", "$(X)",
                "redis://u:p@h",
            ] {
                entries.push(json!({"name": full, "value": value}));
            }
            for entry in entries {
                let labels = json!({"arkonis.dev/deployment": "scout"});
                let findings = reported(&state, &pod(&labels, &json!([entry])));
                let of_entry = |it: &&Finding| it.pointer.as_str() == "/spec/containers/0/env/0";
                let count = findings.iter().filter(|it| denies(it)).filter(of_entry).count();
                let is_declared = entry["value"] == spec["backend"] && name == "BACKEND";
                assert_eq!(count > 0, !is_declared, "{entry} for {spec}: {:?}", messages(&findings));
            }
        }
    }
}

/// Pods of each family that exceed one limit each.
fn too_large() -> Vec<Value> {
    let mut pods = Vec::new();
    let families = [
        (json!({"arkonis.dev/deployment": "scout"}), json!({})),
        (
            json!({"zz/x": "y", "arkonis.dev/deployment": "scout", "memgate.dev/inject": "disabled"}),
            json!({}),
        ),
        (json!({}), json!({"memgate.dev/ark-memory": "notes"})),
        (json!({"orloj.dev/component": "agent-job"}), json!({})),
        (json!({"orka.ai/task": "t", "orka.ai/task-type": "ai"}), json!({})),
        (json!({"sympozium.ai/instance": "scout", "sympozium.ai/component": "agent-run"}), json!({})),
    ];
    for (labels, annotations) in families {
        let variable = |number| json!({"name": format!("V{number}")});
        let all: Vec<Value> = (0..=MAX_VARIABLES).map(variable).collect();
        let mut small = pod(&labels, &json!([]));
        small["metadata"]["annotations"] = annotations.clone();
        let mut with = |path: &str, value: Value| {
            let mut pod = small.clone();
            *pod.pointer_mut(path).expect("a place") = value;
            pods.push(pod);
        };
        with("/spec/containers/0/env", all.into());
        let mut containers = vec![json!({"name": "c"}); MAX_CONTAINERS];
        containers.insert(0, small["spec"]["containers"][0].clone());
        with("/spec/containers", containers.into());
        for start in ["a", "zzzz"] {
            let mut many = labels.clone();
            for number in 0..=MAX_ENTRIES {
                many[format!("{start}{number}")] = json!("x");
            }
            with("/metadata/labels", many);
        }
        if labels.get("sympozium.ai/instance").is_some() {
            for list in ["initContainers", "volumes"] {
                let mut pod = small.clone();
                pod["spec"][list] = vec![json!({"name": "v"}); MAX_VOLUMES + 1].into();
                pods.push(pod);
            }
        }
    }
    pods
}

#[test]
fn a_pod_that_is_too_large_is_denied_by_each_denying_policy() {
    let rule = json!({"id": "it", "roles": ["pod"], "labels": {"required": ["arkonis.dev/deployment"]}});
    let first = json!({"id": "other", "labels": {"required": ["x"]}, "roles": ["memory"]});
    let rules = json!([first, rule]);
    let exemption = json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicyExemption",
        "metadata": {"name": "e", "namespace": "platform"},
        "spec": {"policy": "exempt", "rules": ["it"], "target": {"namespaces": ["team"]},
            "reason": "it is old enough", "from": "2027-01-01T00:00:00Z", "expiresAt": "2027-03-01T00:00:00Z"},
    });
    let terms = json!({"namespaces": ["platform"], "maxAge": "366d"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"env": "prod"}}});
    let deny = json!({"admission": "deny"});
    let selector = |env: &str| json!({"namespaceSelector": {"matchLabels": {"env": env}}});
    let state = [
        namespace,
        policy("exempt", &json!({"actions": deny, "rules": rules, "exemptions": terms})),
        exemption,
        policy("lab", &json!({"actions": deny, "rules": rules, "match": selector("lab")})),
        policy("memory", &json!({"actions": deny, "rules": [first]})),
        policy("prod", &json!({"actions": deny, "rules": rules, "match": selector("prod")})),
        policy("warns", &json!({"rules": rules})),
    ];
    for pod in too_large() {
        let admitted = admitted(&case(&state, &pod, &json!({}))).expect("can be read");
        assert!(!admitted.allowed() && admitted.edits.is_empty());
        let findings = of_policies(admitted.decision.findings);
        let codes: Vec<&str> = findings.iter().map(Finding::code_name).collect();
        let shown = messages(&findings);
        assert_eq!(codes, ["policy/exempt/it", "policy/prod/it"], "{} {shown:?}", pod["metadata"]["labels"]);
        assert!(
            shown.iter().all(|it| it.contains("cannot be judged: the pod is too large (memgate policy ")),
            "{shown:?}"
        );
    }
}

#[test]
fn a_pod_that_is_too_large_passes_policies_that_do_not_judge_it() {
    let rules = json!([{"id": "it", "roles": ["pod"], "labels": {"required": ["x"]}}]);
    let deny = json!({"admission": "deny"});
    let of =
        |name: &str| policy(name, &json!({"actions": deny, "rules": rules, "match": {"families": [name]}}));
    let all = ["ark", "arkonis", "orka", "orloj", "sympozium"];
    let state = all.map(of);
    for pod in too_large() {
        let findings = reported(&state, &pod);
        let denied: Vec<&str> = findings.iter().map(Finding::code_name).collect();
        // Of a pod with too many labels, the annotation of ark may be in the rest.
        let labels = pod["metadata"]["labels"].as_object().expect("labels");
        let family =
            all.iter().find(|family| labels.keys().any(|key| key.starts_with(&format!("{family}."))));
        let of_ark = format!("policy/{}/it", "ark");
        let own = format!("policy/{}/it", family.unwrap_or(&"ark"));
        assert!(denied.contains(&own.as_str()), "{denied:?} instead of {own}");
        assert!(denied.iter().all(|code| *code == own || *code == of_ark), "{denied:?} besides {own}");
        let elsewhere = json!({"namespace": "kube-system"});
        let admitted = admitted(&case(&state, &pod, &elsewhere)).expect("can be read");
        assert_eq!(of_policies(admitted.decision.findings), []);
    }
}

/// A pod with as many variables of its own as are read, and one of each container.
#[test]
fn many_variables_of_its_own_are_all_looked_at() {
    let header = |number| json!({"name": format!("X-{number}"), "value": {"value": "v"}});
    let headers: Vec<Value> = (0..9_000).map(header).collect();
    let memory = json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory", "metadata": {"name": "kb", "namespace": "team"},
        "spec": {"address": {"value": "http://kb"}, "headers": headers},
    });
    let rules = json!([
        {"id": "env", "environment": {"overrides": "forbid"}},
        {"id": "it", "roles": ["pod"], "secrets": {"inline": "forbid"}, "onUnknown": "deny"},
    ]);
    let own = |number| json!({"name": format!("ARK_MEMORY_HEADER_X_{number}"), "value": "mine"});
    let env: Vec<Value> = (0..9_000).map(own).collect();
    let mut one = pod(&json!({}), &json!(env));
    let mut many = pod(&json!({}), &json!([]));
    let container = |number| json!({"name": format!("c{number}"), "env": [{"name": "ARK_MEMORY_URL", "value": "http://x"}]});
    many["spec"]["containers"] = (0..MAX_CONTAINERS).map(container).collect();
    for pod in [&mut one, &mut many] {
        pod["metadata"]["annotations"] = json!({"memgate.dev/ark-memory": "kb"});
        let findings = reported(&[memory.clone(), denying(&rules)], pod);
        assert!(findings.iter().any(denies), "{:?}", messages(&findings));
    }
}
