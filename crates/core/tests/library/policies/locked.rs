//! What passes where a policy refuses everything: what a cluster needs to live, and what it takes to mend the policy.

use memgate_model::settings::PolicySettings;
use serde_json::{Value, json};

use super::{admitted, case, denying, memory};

/// A policy that refuses every object and every pod that it judges.
fn refuses_everything() -> Value {
    denying(&json!([{"id": "none", "labels": {"required": ["none-such"]}}]))
}

fn allowed(object: &Value, also: &Value) -> bool {
    admitted(&case(&[refuses_everything()], object, also)).expect("can be read").allowed()
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "scout", "namespace": "team", "labels": {"arkonis.dev/deployment": "scout"}},
        "spec": {"containers": [{"name": "agent"}]},
    })
}

#[test]
fn it_refuses_what_it_judges() {
    for object in [memory("redis"), memory("in-context"), pod()] {
        assert!(!allowed(&object, &json!({})), "{object}");
    }
}

#[test]
fn namespaces_of_the_cluster_and_of_memgate_live() {
    let own = PolicySettings::default().own_namespace;
    for namespace in ["kube-system", "kube-public", "kube-node-lease", &own] {
        for object in [memory("in-context"), pod()] {
            let mut object = object;
            object["metadata"]["namespace"] = json!(namespace);
            assert!(allowed(&object, &json!({})), "{object}");
        }
    }
}

#[test]
fn what_goes_may_go() {
    let mut deleted = memory("in-context");
    deleted["metadata"]["deletionTimestamp"] = json!("2027-01-15T00:00:00Z");
    deleted["metadata"]["finalizers"] = json!([]);
    for object in [memory("in-context"), pod()] {
        let also = json!({"operation": "DELETE", "oldObject": object, "object": null});
        assert!(allowed(&object, &also), "{object}");
    }
    let mut before = deleted.clone();
    before["metadata"]["finalizers"] = json!(["example.com/memory"]);
    assert!(allowed(&deleted, &json!({"operation": "UPDATE", "oldObject": before})));
}

#[test]
fn statuses_are_written() {
    for object in [memory("in-context"), pod()] {
        let also = json!({"operation": "UPDATE", "oldObject": object, "subresource": "status"});
        assert!(allowed(&object, &also), "{object}");
    }
}

#[test]
fn policies_can_be_mended() {
    let (policy, mut mended) = (refuses_everything(), refuses_everything());
    mended["spec"]["actions"]["admission"] = json!("warn");
    assert!(allowed(&mended, &json!({"operation": "UPDATE", "oldObject": policy})));
    assert!(allowed(&policy, &json!({"operation": "DELETE", "oldObject": policy, "object": null})));
    let exemption = json!({
        "apiVersion": "policy.memgate.dev/v1alpha1", "kind": "MemoryPolicyExemption",
        "metadata": {"name": "all", "namespace": "team"},
        "spec": {
            "policy": "org", "rules": ["none"], "target": {"namespaces": ["team"]}, "reason": "it locks us out",
            "from": "2027-01-15T00:00:00Z", "expiresAt": "2027-01-16T00:00:00Z",
        },
    });
    assert!(allowed(&exemption, &json!({})));
}

/// What is stored stays usable: an update that brings nothing new warns.
#[test]
fn stored_objects_can_be_labelled() {
    let (old, mut new) = (memory("in-context"), memory("in-context"));
    new["metadata"]["labels"] = json!({"team": "a"});
    assert!(allowed(&new, &json!({"operation": "UPDATE", "oldObject": old})));
}

/// What is missing in both is known by what it is, not by where its place would be.
#[test]
fn another_missing_label_is_new() {
    let policy = denying(&json!([{"id": "both", "labels": {"required": ["a", "b"]}}]));
    let (mut old, mut new) = (memory("in-context"), memory("in-context"));
    old["metadata"]["labels"] = json!({"a": "x"});
    new["metadata"]["labels"] = json!({"b": "x"});
    let also = json!({"operation": "UPDATE", "oldObject": old});
    let admitted = admitted(&case(&[policy], &new, &also)).expect("can be read");
    let [finding] = admitted.decision.findings.as_slice() else { panic!("{:?}", admitted.decision.findings) };
    assert!(super::denies(finding) && finding.message().contains("\"a\" is required"), "{finding:?}");
}
