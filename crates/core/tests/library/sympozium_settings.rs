//! Which pods of Sympozium get references to writer tokens, by the setting of an installation.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use memgate_core::decide::decide;
use memgate_core::patch::apply::apply;
use memgate_core::{admission, state};
use memgate_model::platform_settings::WriterTokens;
use serde_json::{Value, json};

const VARIABLE: &str = "MEMORY_WRITER_TOKEN";

/// The codes of the findings about a pod, and the pod with its memory.
fn decided(pod: &Value, objects: &[Value], setting: WriterTokens) -> (Vec<&'static str>, Value) {
    let mut settings = memgate_core::family::default_settings();
    settings.platforms.sympozium.writer_tokens = setting;
    let mut snapshot = state::empty(settings);
    for object in objects {
        state::add(&mut snapshot, object).expect("an object");
    }
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "CREATE", "namespace": "ops", "object": pod,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
        },
    })
    .to_string();
    let decision = decide(&admission::parse(&review).expect("a review").request, &snapshot);
    assert!(decision.allowed());
    let text = pod.to_string();
    let patched = apply(&text, &decision.edits).expect("a patch that applies");
    let codes = decision.findings.iter().map(|finding| finding.code.name).collect();
    (codes, serde_json::from_str(&patched).expect("JSON"))
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
