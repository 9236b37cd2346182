//! What a decision about a pod says is missing, and who made the pod: by this a server may let the pod wait.

use memgate_model::decision::Decision;
use memgate_model::object::{Coverage, KindState};
use memgate_model::reason::Reason;
use memgate_model::snapshot::Snapshot;
use serde_json::{Value, json};

use super::pod_events::{decided, object, state};

/// A pod that a Job made.
fn pod(labels: &Value, annotations: &Value, args: &Value) -> Value {
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u-job", "controller": true,
    });
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": "p-", "labels": labels, "annotations": annotations, "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "agent", "args": args}]},
    })
}

fn arkonis_pod() -> Value {
    pod(&json!({"arkonis.dev/deployment": "scout"}), &json!({}), &json!([]))
}

fn ark_pod(memory: &str) -> Value {
    pod(&json!({}), &json!({"memgate.dev/ark-memory": memory}), &json!([]))
}

fn orloj_pod() -> Value {
    let args = json!(["--task-id=team/t", "--agent-name=scribe"]);
    pod(&json!({"orloj.dev/component": "agent-job"}), &json!({}), &args)
}

fn sympozium_pod() -> Value {
    let labels = json!({"sympozium.ai/component": "agent-run", "sympozium.ai/instance": "triage"});
    pod(&labels, &json!({}), &json!([]))
}

/// `Kind namespace/name` of each.
fn missing(decision: &Decision) -> Vec<String> {
    let name = |reference: &memgate_model::object::Reference| {
        format!("{} {}/{}", reference.kind.kind, reference.namespace, reference.name)
    };
    decision.missing.iter().map(name).collect()
}

fn ark_memory(spec: &Value) -> Value {
    object("ark.mckinsey.com/v1alpha1", "Memory", "notes", spec)
}

#[test]
fn names_what_each_family_lacks() {
    let arkonis =
        |memory| object("arkonis.dev/v1alpha1", "ArkAgent", "scout", &json!({"memoryRef": {"name": memory}}));
    let orloj =
        object("orloj.dev/v1", "Agent", "scribe", &json!({"memory": {"ref": "gone", "allow": ["read"]}}));
    let mut teamed = object("sympozium.ai/v1alpha1", "Agent", "triage", &json!({}));
    teamed["metadata"]["labels"] = json!({"sympozium.ai/ensemble": "newsroom"});
    let by_service = ark_memory(&json!({"address": {"valueFrom": {"serviceRef": {"name": "broker"}}}}));
    let other_service = object("v1", "Service", "other", &json!({}));
    let other_memory = object("ark.mckinsey.com/v1alpha1", "Memory", "other", &json!({}));
    let rows: [(&str, Value, Vec<Value>, &[&str]); 9] = [
        (
            "arkonis, no agent",
            arkonis_pod(),
            vec![],
            &["ArkAgent team/scout", "ArkonisDeployment team/scout"],
        ),
        ("arkonis, no memory", arkonis_pod(), vec![arkonis("gone")], &["ArkMemory team/gone"]),
        ("ark, no memory", ark_pod("gone"), vec![other_memory.clone()], &["Memory team/gone"]),
        ("ark, elsewhere", ark_pod("x/gone"), vec![other_memory], &["Memory x/gone"]),
        ("ark, no Service", ark_pod("notes"), vec![by_service, other_service], &["Service team/broker"]),
        ("orloj, no agent", orloj_pod(), vec![], &["Agent team/scribe"]),
        ("orloj, no memory", orloj_pod(), vec![orloj], &["Memory team/gone"]),
        (
            "sympozium, no agent",
            sympozium_pod(),
            vec![],
            &["Agent team/triage", "SympoziumInstance team/triage"],
        ),
        (
            "sympozium, no ensemble",
            sympozium_pod(),
            vec![teamed],
            &["Ensemble team/newsroom", "PersonaPack team/newsroom"],
        ),
    ];
    for (what, pod, objects, expected) in rows {
        let decision = decided(&pod, &state(&objects));
        assert_eq!(missing(&decision), expected, "{what}");
        assert!(decision.from_controller, "{what}");
        assert!(decision.allowed() && decision.reason != Reason::ReferencePending, "{what}");
    }
}

#[test]
fn nothing_is_missing_where_waiting_would_not_help() {
    let mut opted_out = arkonis_pod();
    opted_out["metadata"]["labels"]["memgate.dev/inject"] = json!("disabled");
    let mut sidecar_only = arkonis_pod();
    sidecar_only["spec"]["containers"][0]["name"] = json!("proxy");
    let mut elsewhere = ark_pod("gone");
    elsewhere["metadata"]["annotations"]["memgate.dev/ark-containers"] = json!("other");
    let other_memory = object("ark.mckinsey.com/v1alpha1", "Memory", "other", &json!({}));
    let without = object("arkonis.dev/v1alpha1", "ArkAgent", "scout", &json!({}));
    let invalid = object("arkonis.dev/v1alpha1", "ArkMemory", "notes", &json!({"backend": "redis"}));
    let claims = json!({"memoryRef": {"name": "notes"}});
    let agent = object("arkonis.dev/v1alpha1", "ArkAgent", "scout", &claims);
    let orka = pod(&json!({"orka.ai/task": "t", "orka.ai/task-type": "ai"}), &json!({}), &json!([]));
    let no_address = ark_memory(&json!({"address": {"valueFrom": {"secretKeyRef": {"name": "s"}}}}));
    let service = object("v1", "Service", "other", &json!({}));
    for (what, pod, objects) in [
        ("the pod opts out", opted_out, vec![]),
        ("arkonis: no container would have it", sidecar_only, vec![]),
        ("ark: no container would have it", elsewhere, vec![other_memory]),
        ("the agent claims none", arkonis_pod(), vec![without]),
        ("the memory is invalid", arkonis_pod(), vec![agent, invalid]),
        ("the address is incomplete", ark_pod("notes"), vec![no_address, service]),
        ("orka needs nothing", orka, vec![]),
    ] {
        assert_eq!(missing(&decided(&pod, &state(&objects))), [""; 0], "{what}");
    }
}

#[test]
fn only_controllers_that_try_again_count() {
    let rows = [
        ("apps/v1", "ReplicaSet", true, true),
        ("apps/v1", "StatefulSet", true, true),
        ("apps/v1", "DaemonSet", true, true),
        ("batch/v1", "Job", true, true),
        ("batch/v1", "Job", false, false),
        ("v1", "ReplicationController", true, false),
        ("batch.volcano.sh/v1alpha1", "Job", true, false),
        ("agents.x-k8s.io/v1alpha1", "Sandbox", true, false),
    ];
    for (api_version, kind, controller, expected) in rows {
        let mut pod = arkonis_pod();
        pod["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "u-0"},
            {"apiVersion": api_version, "kind": kind, "name": "w", "uid": "u-1", "controller": controller},
        ]);
        let decision = decided(&pod, &state(&[]));
        assert_eq!(decision.from_controller, expected, "{api_version} {kind}");
        assert_eq!(missing(&decision).first().map(String::as_str), Some("ArkAgent team/scout"));
    }
    let mut bare = arkonis_pod();
    bare["metadata"]["ownerReferences"] = Value::Null;
    assert!(!decided(&bare, &state(&[])).from_controller);
}

#[test]
fn several_families_lack_what_each_of_them_lacks() {
    let mut pod = arkonis_pod();
    pod["metadata"]["annotations"]["memgate.dev/ark-memory"] = json!("gone");
    let other_memory = object("ark.mckinsey.com/v1alpha1", "Memory", "other", &json!({}));
    let decision = decided(&pod, &state(&[other_memory]));
    let expected = ["ArkAgent team/scout", "ArkonisDeployment team/scout", "Memory team/gone"];
    assert_eq!(missing(&decision), expected);
    assert!(decision.from_controller);
}

fn orka_pod() -> Value {
    let env = json!([
        {"name": "ORKA_TASK_NAME", "value": "t"}, {"name": "ORKA_TASK_NAMESPACE", "value": "team"},
        {"name": "ORKA_CONTROLLER_URL", "value": "http://orka"},
    ]);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "p-", "labels": {"orka.ai/task": "t", "orka.ai/task-type": "ai"}},
        "spec": {"containers": [{"name": "worker", "env": env}]},
    })
}

/// The decision after the lookups of a cluster that holds these objects and fails for all others.
fn after_failed_lookups(pod: &Value, objects: &[Value]) -> Decision {
    let families = memgate_platforms::ALL;
    let (of_files, mut snapshot) = (state(objects), Snapshot::new(memgate_platforms::default_settings()));
    for kind in families.iter().flat_map(|family| family.kinds.watched.iter().chain(family.kinds.fetched)) {
        let mut known = KindState::new(Coverage::Watched);
        let objects = of_files.kind(kind).into_iter().flat_map(KindState::objects);
        objects.for_each(|object| known.insert(object.clone()));
        snapshot.set(kind, known);
    }
    let mut decision = decided(pod, &snapshot);
    for _ in 0..6 {
        let failed =
            decision.unknown.into_iter().map(|reference| (reference, Err("401 Unauthorized".into())));
        snapshot = snapshot.overlaid(failed);
        decision = decided(pod, &snapshot);
    }
    decision
}

#[test]
fn tells_why_a_lookup_has_failed() {
    let by_service = |port| {
        vec![ark_memory(&json!({"address": {"valueFrom": {"serviceRef": {"name": "broker", "port": port}}}}))]
    };
    let rows = [
        (arkonis_pod(), vec![], "arkonis", "ArkAgent \"team/scout\"", false),
        (ark_pod("notes"), vec![], "ark", "Memory \"team/notes\"", false),
        (ark_pod("notes"), by_service("http"), "ark", "Service \"team/broker\"", false),
        // The number is enough for an address. It may still be another port than the Service has.
        (ark_pod("notes"), by_service("8080"), "ark", "Service \"team/broker\"", true),
        (orloj_pod(), vec![], "orloj", "Agent \"team/scribe\"", false),
        (orka_pod(), vec![], "orka", "Task \"team/t\"", false),
        (sympozium_pod(), vec![], "sympozium", "Agent \"team/triage\"", false),
    ];
    for (pod, objects, family, name, is_injected) in rows {
        for required in [false, true] {
            let mut pod = pod.clone();
            if required {
                pod["metadata"]["labels"]["memgate.dev/inject"] = json!("required");
            }
            let decision = after_failed_lookups(&pod, &objects);
            let code = format!("{family}/lookup-failed");
            let found = decision.findings.iter().find(|finding| finding.code.name == code);
            let message = found.map(|finding| finding.message().into_owned()).unwrap_or_default();
            let expected = format!("{name} could not be looked up: 401 Unauthorized");
            let is_reported = required || !is_injected;
            assert_eq!(
                message.ends_with(&expected),
                is_reported,
                "{name} {required}: {:?}",
                decision.findings
            );
            assert_eq!(decision.reason == Reason::ReferenceUnknown, is_reported, "{name} {required}");
            // Orka's Tasks can run without memory.
            assert_eq!(decision.allowed(), !required || family == "orka", "{name}: {:?}", decision.findings);
        }
    }
}

#[test]
fn a_long_name_does_not_hide_why_a_lookup_has_failed() {
    let pod = ark_pod(&format!("{}/{}", "n".repeat(63), "m".repeat(253)));
    let decision = after_failed_lookups(&pod, &[]);
    let message = decision.findings[0].message().into_owned();
    assert!(message.ends_with("could not be looked up: 401 Unauthorized"), "{message}");
    assert!(message.chars().count() <= 160, "{message}");
}
