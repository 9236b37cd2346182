//! Pods that two families know, with the families in either order.

#![allow(clippy::expect_used, reason = "a test stops where something is wrong")]

use memgate_core::decide::decide;
use memgate_core::patch::apply::{apply, check};
use memgate_core::state;
use memgate_model::decision::Decision;
use memgate_model::edit::Op;
use memgate_model::family::Family;
use memgate_model::request::Request;
use memgate_model::settings::Settings;
use memgate_platforms::{ark, arkonis};
use serde_json::{Value, json};

/// A pod whose agent gets another backend than the settings gave it, and whose ark variable differs.
fn pod() -> String {
    let env = json!([
        {"name": "PATH", "value": "/"},
        {"name": "AGENT_MEMORY_BACKEND", "value": "in-context"},
        {"name": "ARK_MEMORY_NAME", "value": "other"},
    ]);
    let metadata = json!({
        "labels": {"arkonis.dev/deployment": "scout"}, "annotations": {"memgate.dev/ark-memory": "shared"},
    });
    json!({"metadata": metadata, "spec": {"containers": [{"name": "agent", "env": env}]}}).to_string()
}

fn decided(text: &str, families: Vec<&'static Family>) -> Decision {
    let mut snapshot = state::empty(Settings { families, ..memgate_platforms::default_settings() });
    let object = |group: &str, kind: &str, name: &str, spec: &Value| {
        let metadata = json!({"name": name, "namespace": "team-a"});
        json!({"apiVersion": format!("{group}/v1alpha1"), "kind": kind, "metadata": metadata, "spec": spec})
    };
    let agent = json!({"memoryRef": {"name": "notes"}, "configRef": {"name": "set"}});
    for object in [
        object("arkonis.dev", "ArkAgent", "scout", &agent),
        object("arkonis.dev", "ArkSettings", "set", &json!({"memoryBackend": "in-context"})),
        object(
            "arkonis.dev",
            "ArkMemory",
            "notes",
            &json!({"backend": "redis", "redis": {"secretRef": {"name": "s"}}}),
        ),
        object("ark.mckinsey.com", "Memory", "shared", &json!({"address": {"value": "http://ark-broker"}})),
    ] {
        state::add(&mut snapshot, &object).expect("an object");
    }
    let request = Request::to_create_pod("team-a", "", text);
    decide(&request, &snapshot)
}

#[test]
fn their_edits_apply_one_after_the_other() {
    let text = pod();
    for families in [vec![&arkonis::FAMILY, &ark::FAMILY], vec![&ark::FAMILY, &arkonis::FAMILY]] {
        let decision = decided(&text, families.clone());
        assert!(decision.edits.iter().any(|edit| edit.op == Op::Replace), "{:?}", decision.edits);
        assert_eq!(check(&text, &decision.edits), Ok(()));
        let after = apply(&text, &decision.edits).expect("applies");
        assert!(decided(&after, families.clone()).edits.is_empty());
        let value: Value = serde_json::from_str(&after).expect("JSON");
        let env = value["spec"]["containers"][0]["env"].as_array().expect("a list");
        let value = |name: &str| {
            let mut found = env.iter().filter(|entry| entry["name"] == name);
            (found.next().and_then(|entry| entry["value"].as_str()), found.next())
        };
        assert_eq!(value("AGENT_MEMORY_BACKEND"), (Some("redis"), None));
        assert_eq!(value("ARK_MEMORY_URL"), (Some("http://ark-broker"), None));
        let names: Vec<_> = decision.families.iter().map(|share| share.family).collect();
        assert_eq!(names, families);
        let edits: usize = decision.families.iter().map(|share| share.edits).sum();
        assert_eq!(edits, decision.edits.len());
    }
}

#[test]
fn their_findings_point_into_the_pod_that_was_sent() {
    let decision = decided(&pod(), vec![&arkonis::FAMILY, &ark::FAMILY]);
    let places: Vec<_> =
        decision.findings.iter().map(|finding| (finding.code.name, finding.pointer.as_str())).collect();
    assert_eq!(places, [("ark/pod-env-exists", "/spec/containers/0/env/2")]);
}

/// The annotation is memgate's alone, also in a pod that opts out of it.
#[test]
fn no_pod_that_opts_out_keeps_an_annotation_of_its_own() {
    for brought in [r#"{"family":"ark","env":{"agent":["PATH"]}}"#, "[]", "x", r#"[{"family":"x"}, 1]"#] {
        for labels in [
            json!({"arkonis.dev/deployment": "scout", "memgate.dev/inject": "disabled"}),
            json!({"memgate.dev/inject": "disabled"}),
        ] {
            let annotations = json!({"memgate.dev/injected": brought, "memgate.dev/ark-memory": "shared"});
            let metadata = json!({"labels": labels, "annotations": annotations});
            let text = json!({"metadata": metadata, "spec": {"containers": [{"name": "agent"}]}}).to_string();
            let edits = decided(&text, vec![&arkonis::FAMILY, &ark::FAMILY]).edits;
            let after = apply(&text, &edits).expect("applies");
            assert_eq!(after.contains("memgate.dev/injected"), brought == "[]", "{brought}");
            assert!(decided(&after, vec![&arkonis::FAMILY]).edits.is_empty());
        }
    }
}

/// What a pod of Orka, which may be one of ark too, gets: whether it is allowed, and whether it then has the variables
/// of Orka and of ark.
fn worker_gets(labels: [Option<&str>; 2], of_ark: bool, has_memory: bool) -> (bool, bool, bool) {
    let [pod_label, namespace_label] = labels;
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    let off = json!({"memgate.dev/orka-memory-context": "false"});
    let on = json!({"memgate.dev/orka-memory-context": "true"});
    let of_orka = |kind: &str, name: &str, annotations: &Value, spec: Value| {
        let metadata = json!({"name": name, "namespace": "team-a", "annotations": annotations});
        json!({"apiVersion": "core.orka.ai/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
    };
    let namespace_labels = json!({"memgate.dev/inject": namespace_label});
    let mut objects = vec![
        of_orka("Agent", "scrubber", &off, json!({})),
        of_orka("Task", "cut", &on, json!({"type": "ai", "agentRef": {"name": "scrubber"}})),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": namespace_labels}}),
    ];
    if has_memory {
        objects.push(json!({
            "apiVersion": "ark.mckinsey.com/v1alpha1", "kind": "Memory",
            "metadata": {"name": "shared", "namespace": "team-a"}, "spec": {"address": {"value": "http://ark-broker"}},
        }));
    }
    for object in &objects {
        state::add(&mut snapshot, object).expect("an object");
    }
    let env = [("NAME", "cut"), ("NAMESPACE", "team-a")].map(|(name, value)| (format!("TASK_{name}"), value));
    let env = env.into_iter().chain([("CONTROLLER_URL".to_owned(), "http://orka")]);
    let env: Vec<_> =
        env.map(|(name, value)| json!({"name": format!("ORKA_{name}"), "value": value})).collect();
    let text = json!({
        "metadata": {
            "labels": {"orka.ai/task": "cut", "orka.ai/task-type": "ai", "memgate.dev/inject": pod_label},
            "annotations": if of_ark { json!({"memgate.dev/ark-memory": "shared"}) } else { json!({}) },
        },
        "spec": {"containers": [{"name": "worker", "env": env}]},
    });
    let text = text.to_string();
    let decision = decide(&Request::to_create_pod("team-a", "", &text), &snapshot);
    let edits = if decision.allowed() { decision.edits.as_slice() } else { &[] };
    let after = apply(&text, edits).expect("applies");
    let is_off = r#"{"name":"ORKA_MEMORY_CONTEXT_ENABLED","value":"false"}"#;
    (decision.allowed(), after.contains(is_off), after.contains("ARK_MEMORY_URL"))
}

#[test]
fn what_a_pod_says_wins_over_its_namespace() {
    let values = [None, Some("disabled"), Some("required"), Some("other"), Some("")];
    for labels in values.into_iter().flat_map(|pod| values.map(|namespace| [pod, namespace])) {
        for (of_ark, has_memory) in [(false, false), (false, true), (true, false), (true, true)] {
            let [pod, namespace] = labels;
            let is_out =
                pod == Some("disabled") || (namespace == Some("disabled") && pod != Some("required"));
            // Only ark refuses a pod. The opt-out of the Agent reaches each pod that does not opt out itself.
            let refused = pod == Some("required") && of_ark && !has_memory;
            let expected = (!refused, !is_out && !refused, !is_out && of_ark && has_memory);
            assert_eq!(worker_gets(labels, of_ark, has_memory), expected, "{labels:?} {of_ark} {has_memory}");
        }
    }
}
