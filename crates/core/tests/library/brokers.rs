//! Whether ark's messages outlive their process, where there are many workloads, where some are not known, and where files
//! do not say the namespace.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use std::collections::BTreeMap;

use memgate_core::state;
use memgate_model::finding::Severity;
use memgate_model::object::{Coverage, KindState};
use memgate_model::snapshot::Snapshot;
use serde_json::{Value, json};

use super::pod_events::decided;
use super::views::view;

const MANY: usize = 11_000;

fn policy(rule: &Value) -> Value {
    json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicy", "metadata": {"name": "org"},
        "spec": {"actions": {"admission": "deny"}, "rules": [rule]},
    })
}

/// Metadata in a namespace, if there is one.
fn metadata(name: &str, namespace: &str) -> Value {
    if namespace.is_empty() { json!({"name": name}) } else { json!({"name": name, "namespace": namespace}) }
}

fn memory(name: &str) -> Value {
    let address = json!({"valueFrom": {"serviceRef": {"name": name}}});
    json!({
        "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory", "metadata": metadata(name, "team"),
        "spec": {"address": address},
    })
}

fn service(name: &str, namespace: &str, selector: &Value) -> Value {
    let spec = json!({"selector": selector, "ports": [{"name": "http", "port": 80}]});
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(name, namespace), "spec": spec})
}

fn config_map(namespace: &str, backend: &str) -> Value {
    let data = json!({"backend": backend});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("conf", namespace), "data": data})
}

/// A workload whose only container is a broker with these variables.
fn workload(kind: &str, (name, namespace): (&str, &str), labels: &Value, env: &Value) -> Value {
    let container = json!({"name": "ark-broker", "image": "ark-broker:1", "env": env});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": metadata(name, namespace), "spec": {"template": template},
    })
}

fn labels(index: usize) -> BTreeMap<String, String> {
    let equal = (0..6).map(|label| (format!("app.kubernetes.io/l{label}"), "same".to_owned()));
    equal.chain([("app".to_owned(), format!("a{index}"))]).collect()
}

fn added(objects: impl IntoIterator<Item = Value>) -> Snapshot {
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    for object in objects {
        state::add(&mut snapshot, &object).expect("an object");
    }
    snapshot
}

/// What the view of a Memory says: `Ok` of what is known, with the workload where that is named, else why it is not.
fn durable(name: &str, snapshot: &Snapshot) -> Result<(bool, String), String> {
    let (view, _) = view(memgate_platforms::find("ark").expect("a family"), &memory(name), "team", snapshot);
    let view = view.expect("a view");
    match (view.flag("durable"), view.unknown_at("durable")) {
        (Some(durable), None) => Ok((durable, view.remark("durable", "team"))),
        (None, Some(why)) => Err(why.to_string()),
        (durable, why) => Err(format!("{durable:?} and {why:?}")),
    }
}

fn in_memory(workload: &str) -> (bool, String) {
    (false, format!(" ({workload} keeps messages in memory)"))
}

fn unknown_workload(name: &str) -> String {
    format!("the workload of Service \"team/{name}\" is not known")
}

#[test]
fn eleven_thousand_workloads_end_no_decision() {
    for kind in ["Deployment", "ReplicaSet"] {
        let name = |index: usize| format!("w{index}");
        let workloads =
            (0..MANY).map(|index| workload(kind, (&name(index), "team"), &json!(labels(index)), &json!([])));
        let services = [
            service("one", "team", &json!(labels(MANY - 1))),
            service("all", "team", &json!({"app.kubernetes.io/l0": "same"})),
            service("none", "team", &json!({"app": "a1", "app.kubernetes.io/l0": "other"})),
        ];
        let policies = [policy(&json!({"id": "it", "backends": {"deny": ["redis"]}}))];
        let mut snapshot = added(workloads.chain(services).chain(policies));
        assert_eq!(
            durable("one", &snapshot),
            Ok(in_memory(&format!("{kind} \"team/w{}\"", MANY - 1))),
            "{kind}"
        );
        assert_eq!(durable("all", &snapshot), Err(unknown_workload("all")), "{kind}");
        assert_eq!(durable("none", &snapshot), Err(unknown_workload("none")), "{kind}");
        for asks in [json!({"deny": ["redis"]}), json!({"durable": true})] {
            state::add(&mut snapshot, &policy(&json!({"id": "it", "backends": asks}))).expect("a policy");
            for name in ["one", "all", "none"] {
                let is_denied = name == "one" && asks["durable"] == true;
                assert_eq!(decided(&memory(name), &snapshot).allowed(), !is_denied, "{kind} {name} {asks}");
            }
        }
    }
}

#[test]
fn ten_thousand_memories_and_workloads_take_little_time() {
    let both = |index: usize| {
        let name = format!("w{index}");
        let backend = if index.is_multiple_of(2) { "postgres" } else { "memory" };
        let env = json!([{"name": "MESSAGE_BACKEND", "value": backend}]);
        let labels = json!(labels(index));
        [service(&name, "team", &labels), workload("Deployment", (&name, "team"), &labels, &env)]
    };
    let snapshot = added((0..MANY).flat_map(both));
    for index in 0..MANY {
        let known = durable(&format!("w{index}"), &snapshot).expect("is known").0;
        assert_eq!(known, index.is_multiple_of(2), "{index}");
    }
}

#[test]
fn controlled_replica_sets_and_many_labels_count_for_what_they_are() {
    let owner = json!([{"kind": "Deployment", "name": "b", "controller": true}]);
    let replica_sets = (0..1_000).map(|index| {
        let name = format!("b-{index}");
        let mut made = workload("ReplicaSet", (&name, "team"), &json!({"app": "b"}), &json!([]));
        made["metadata"]["ownerReferences"] = owner.clone();
        made
    });
    let many: BTreeMap<_, _> = (0..40).map(|index| (format!("l{index:02}"), "x".to_owned())).collect();
    let others = [
        service("b", "team", &json!({"app": "b"})),
        workload("Deployment", ("b", "team"), &json!({"app": "b"}), &json!([])),
        service("many", "team", &json!({"l00": "x", "l39": "x"})),
        service("all", "team", &json!(many)),
        workload("Deployment", ("many", "team"), &json!(many), &json!([])),
    ];
    let snapshot = added(replica_sets.chain(others));
    assert_eq!(durable("b", &snapshot), Ok(in_memory("Deployment \"team/b\"")));
    assert_eq!(durable("many", &snapshot), Ok(in_memory("Deployment \"team/many\"")));
    assert_eq!(durable("all", &snapshot), Ok(in_memory("Deployment \"team/many\"")));
}

#[test]
fn a_kind_of_which_some_are_not_known_makes_the_workload_unknown() {
    let label = json!({"app": "b"});
    let objects =
        || [service("b", "team", &label), workload("Deployment", ("b", "team"), &label, &json!([]))];
    for kind in ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"] {
        let mut snapshot = added(objects());
        assert_eq!(durable("b", &snapshot), Ok(in_memory("Deployment \"team/b\"")));
        let unreadable =
            json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x", "namespace": false}});
        state::add(&mut snapshot, &unreadable).expect("an object");
        assert_eq!(durable("b", &snapshot), Err(unknown_workload("b")), "{kind}");
    }
}

#[test]
fn what_names_no_namespace_is_in_that_of_the_reference() {
    let (label, homes) = (json!({"app": "b"}), ["", "team"]);
    let source = json!({"configMapKeyRef": {"name": "conf", "key": "backend"}});
    let env = json!([{"name": "MESSAGE_BACKEND", "valueFrom": source}]);
    for of_service in homes {
        for of_workload in homes {
            for of_map in homes {
                for (backend, expected) in [
                    ("memory", Ok(in_memory("Deployment \"team/b\""))),
                    ("postgres", Ok((true, String::new()))),
                ] {
                    let objects = [
                        service("b", of_service, &label),
                        workload("Deployment", ("b", of_workload), &label, &env),
                        config_map(of_map, backend),
                        // What is elsewhere does not count.
                        workload("Deployment", ("c", "other"), &label, &json!([])),
                        config_map("other", "memory"),
                        config_map("default", "memory"),
                    ];
                    let skipped = usize::from(of_map.is_empty());
                    let snapshot = added(objects.into_iter().rev().skip(skipped));
                    let found = durable("b", &snapshot);
                    assert_eq!(found, expected, "{of_service:?} {of_workload:?} {of_map:?}");
                }
            }
        }
    }
}

#[test]
fn in_a_cluster_retention_learns_whether_there_is_an_ark_config() {
    let config = memgate_platforms::state_kind(&memgate_platforms::ALL, "ark.mckinsey.com", "ArkConfig")
        .expect("a kind");
    for (rule, asks) in [
        (json!({"id": "it", "retention": {"max": "1d"}}), true),
        (json!({"id": "it", "retention": {"min": "1h"}}), true),
        (json!({"id": "it", "labels": {"required": ["team"]}, "roles": ["referrer"]}), false),
    ] {
        let mut snapshot = added([policy(&rule)]);
        snapshot.set(config, KindState::new(Coverage::Watched));
        let query = |spec: &Value| {
            json!({
                "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Query", "metadata": metadata("q", "team"), "spec": spec,
            })
        };
        let named = |decision: &memgate_model::decision::Decision| {
            let configs = decision.unknown.iter().filter(|reference| *reference.kind == *config);
            configs.map(|reference| reference.name.clone()).collect::<Vec<_>>()
        };
        let without = query(&json!({"input": "hello", "memory": {"name": "notes"}}));
        let before = decided(&without, &snapshot);
        assert_eq!(named(&before), vec!["default"; usize::from(asks)], "{rule}");
        let with =
            decided(&query(&json!({"input": "hello", "memory": {"name": "notes"}, "ttl": "2h"})), &snapshot);
        assert_eq!(named(&with), [""; 0], "{rule}");
        if rule["retention"]["max"] == "1d" {
            let answers =
                before.unknown.into_iter().map(|reference| (reference, Ok(None))).collect::<Vec<_>>();
            let after = decided(&without, &snapshot.overlaid(answers));
            let denials = after.findings.iter().filter(|it| it.severity == Severity::Deny);
            let denials: Vec<_> = denials.map(|it| it.message().into_owned()).collect();
            let said =
                "spec: TTL of 2592000s is above 1d (86400s) (ARK's own default) (memgate policy org/it)";
            assert_eq!(denials, [said]);
        }
    }
}
