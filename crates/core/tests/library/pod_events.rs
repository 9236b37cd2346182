//! Which object the event of a missing memory regards.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use memgate_core::decide::decide;
use memgate_core::{admission, state};
use memgate_model::decision::Decision;
use memgate_model::object::{Coverage, KindState};
use memgate_model::settings::Settings;
use memgate_model::snapshot::Snapshot;
use memgate_workbench::files::casefile::{Case, request};
use serde_json::{Value, json};

use super::cases::cases;
use super::review::review;

pub(crate) fn state(objects: &[Value]) -> Snapshot {
    state_with(memgate_platforms::default_settings(), objects)
}

pub(crate) fn state_with(settings: Settings, objects: &[Value]) -> Snapshot {
    let mut snapshot = state::empty(settings);
    for object in objects {
        state::add(&mut snapshot, object).expect("an object");
    }
    snapshot
}

/// The decision about a pod, or another object, that is created in the namespace `team`.
pub(crate) fn decided(object: &Value, state: &Snapshot) -> Decision {
    decided_in("team", object, state)
}

/// The same in another namespace.
pub(crate) fn decided_in(namespace: &str, object: &Value, state: &Snapshot) -> Decision {
    let body = review(namespace, object).to_string();
    decide(&admission::parse(&body).expect("a review").request, state)
}

/// `apiVersion Kind/name uid` of the object that the Event about a pod regards, in the namespace of the pod.
fn involved_object(pod: &Value, objects: &[Value]) -> Option<String> {
    let regarding = decided(pod, &state(objects)).events.pop()?.regarding;
    assert_eq!(regarding.namespace, "team");
    Some(format!("{} {}/{} {}", regarding.api_version, regarding.kind, regarding.name, regarding.uid))
}

pub(crate) fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": "team", "uid": "u-1"});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
}

fn pod(labels: &Value, containers: &Value) -> Value {
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u-job", "controller": true,
    });
    let metadata = json!({"generateName": "p-", "labels": labels, "ownerReferences": [owner]});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}})
}

fn arkonis_pod() -> Value {
    pod(&json!({"arkonis.dev/deployment": "scout"}), &json!([{"name": "agent"}]))
}

fn arkonis_agent(spec: &Value) -> Value {
    object("arkonis.dev/v1alpha1", "ArkAgent", "scout", spec)
}

#[test]
fn the_agent_is_notified() {
    let agent = arkonis_agent(&json!({"memoryRef": {"name": "gone"}}));
    assert_eq!(
        involved_object(&arkonis_pod(), std::slice::from_ref(&agent)).as_deref(),
        Some("arkonis.dev/v1alpha1 ArkAgent/scout u-1")
    );
    let successor = object(
        "kubeswarm.io/v1alpha1",
        "SwarmAgent",
        "scout",
        &json!({"runtime": {"loop": {"memory": {"ref": {"name": "gone"}}}}}),
    );
    let pod = pod(&json!({"kubeswarm/deployment": "scout"}), &json!([{"name": "agent"}]));
    assert_eq!(
        involved_object(&pod, &[successor]).as_deref(),
        Some("kubeswarm.io/v1alpha1 SwarmAgent/scout u-1")
    );
    let orloj =
        object("orloj.dev/v1", "Agent", "scribe", &json!({"memory": {"ref": "gone", "allow": ["read"]}}));
    assert_eq!(
        involved_object(&orloj_pod("team/t"), &[orloj]).as_deref(),
        Some("orloj.dev/v1 Agent/scribe u-1")
    );
    let sympozium =
        object("sympozium.ai/v1alpha1", "Agent", "triage", &json!({"skills": [{"skillPackRef": "memory"}]}));
    let mut no_container = sympozium_pod();
    no_container["spec"]["containers"][0]["name"] = json!("other");
    assert_eq!(
        involved_object(&no_container, &[sympozium]).as_deref(),
        Some("sympozium.ai/v1alpha1 Agent/triage u-1")
    );
}

#[test]
fn the_run_is_notified_where_there_is_no_agent() {
    let run = object("sympozium.ai/v1alpha1", "AgentRun", "triage-1", &json!({"agentRef": "triage"}));
    assert_eq!(
        involved_object(&sympozium_pod(), &[run]).as_deref(),
        Some("sympozium.ai/v1alpha1 AgentRun/triage-1 u-1")
    );
}

#[test]
fn the_owner_of_the_pod_is_notified_where_nothing_else_is_known() {
    let job = Some("batch/v1 Job/j u-job");
    assert_eq!(involved_object(&arkonis_pod(), &[]).as_deref(), job);
    assert_eq!(involved_object(&orloj_pod("team/t"), &[]).as_deref(), job);
    assert_eq!(involved_object(&sympozium_pod(), &[]).as_deref(), job);
    let other = object("ark.mckinsey.com/v1alpha1", "Memory", "other", &json!({}));
    assert_eq!(involved_object(&ark_pod("gone"), std::slice::from_ref(&other)).as_deref(), job);
    for (field, odd) in [
        ("controller", json!(false)),
        ("uid", Value::Null),
        ("name", json!("A B")),
        ("kind", json!("x".repeat(1 << 20))),
    ] {
        let mut pod = ark_pod("gone");
        pod["metadata"]["ownerReferences"][0][field] = odd;
        assert_eq!(involved_object(&pod, std::slice::from_ref(&other)), None, "{field}");
    }
    let mut bare = ark_pod("gone");
    bare["metadata"]["ownerReferences"] = Value::Null;
    assert_eq!(involved_object(&bare, &[other]), None);
}

#[test]
fn no_object_of_another_namespace_is_notified() {
    let other = object("ark.mckinsey.com/v1alpha1", "Memory", "other", &json!({}));
    assert_eq!(involved_object(&ark_pod("elsewhere/gone"), &[other]), None);
    assert_eq!(involved_object(&orloj_pod("elsewhere/t"), &[]), None);
}

#[test]
fn nothing_is_notified_where_no_memory_is_missing() {
    let without = arkonis_agent(&json!({}));
    assert_eq!(involved_object(&arkonis_pod(), &[without]), None);
    let agent = arkonis_agent(&json!({"memoryRef": {"name": "notes"}}));
    let memory = object("arkonis.dev/v1alpha1", "ArkMemory", "notes", &json!({"backend": "in-context"}));
    assert_eq!(involved_object(&arkonis_pod(), &[agent.clone(), memory]), None);
    // Its creator has been refused.
    let mut required = arkonis_pod();
    required["metadata"]["labels"]["memgate.dev/inject"] = json!("required");
    assert_eq!(involved_object(&required, std::slice::from_ref(&agent)), None);
    let mut disabled = arkonis_pod();
    disabled["metadata"]["labels"]["memgate.dev/inject"] = json!("disabled");
    assert_eq!(involved_object(&disabled, &[agent]), None);
}

#[test]
fn the_task_is_notified_when_its_agent_is_unknown() {
    let task = object("core.orka.ai/v1alpha1", "Task", "t", &json!({"agentRef": {"name": "a"}}));
    let mut state = state(&[task]);
    // As in a cluster, after a lookup that failed.
    let agents =
        memgate_platforms::state_kind(&memgate_platforms::ALL, "core.orka.ai", "Agent").expect("is watched");
    state.set(agents, KindState::new(Coverage::Watched));
    let env = json!([
        {"name": "ORKA_TASK_NAME", "value": "t"},
        {"name": "ORKA_TASK_NAMESPACE", "value": "team"},
        {"name": "ORKA_CONTROLLER_URL", "value": "http://orka"},
    ]);
    let labels = json!({"orka.ai/task": "t", "orka.ai/task-type": "ai"});
    let pod = pod(&labels, &json!([{"name": "worker", "env": env}]));
    let pod_event = decided(&pod, &state).events.pop().expect("an event");
    assert_eq!((pod_event.regarding.kind.as_ref(), pod_event.regarding.uid.as_str()), ("Task", "u-1"));
    assert_eq!(pod_event.finding.code.name, "orka/lookup-failed");
}

fn orloj_pod(task: &str) -> Value {
    let args = json!(["--task-id", task, "--agent-name", "scribe"]);
    pod(&json!({"orloj.dev/component": "agent-job"}), &json!([{"name": "agent", "args": args}]))
}

fn sympozium_pod() -> Value {
    let labels = json!({
        "sympozium.ai/component": "agent-run", "sympozium.ai/instance": "triage",
        "sympozium.ai/agent-run": "triage-1",
    });
    pod(&labels, &json!([{"name": "agent"}]))
}

fn ark_pod(memory: &str) -> Value {
    let mut pod = pod(&json!({}), &json!([{"name": "app"}]));
    pod["metadata"]["annotations"] = json!({"memgate.dev/ark-memory": memory});
    pod
}

/// Over all cases: an event is about a pod that is admitted, repeats one of its findings, and names
/// no other namespace.
#[test]
fn every_event_is_about_an_admitted_pod_of_its_own_namespace() {
    let mut pod_events = 0;
    for (_, case) in cases().expect("the case files") {
        let body = request::review(&case).to_string();
        let review = admission::parse(&body).expect("a review");
        let decision = decide(&review.request, &request::state(&case).expect("a state"));
        let Some(pod_event) = decision.events.first() else { continue };
        pod_events += 1;
        let Case { name, .. } = &case;
        assert!(decision.allowed() && !decision.required && review.request.is_pod(), "{name}");
        assert!(decision.findings.contains(&pod_event.finding), "{name}");
        assert_eq!(pod_event.regarding.namespace, review.request.namespace, "{name}");
        let own = format!("namespace \"{}\"", review.request.namespace);
        let others = pod_event.finding.message().replace(&own, "");
        assert!(!others.contains("namespace \""), "{name}: {}", pod_event.finding.message());
    }
    assert!(pod_events > 0, "no case has an event");
}
