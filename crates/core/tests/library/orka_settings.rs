//! What the annotations and variables of Orka's four settings do, in combinations.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use memgate_core::decide::decide;
use memgate_core::patch::apply::apply;
use memgate_model::finding::Severity;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use serde_json::{Value, json};

use super::pod_events::{decided_in, state};

/// A switch: the annotation, the variable, and the codes of an opt-out that it does not follow.
struct Switch {
    annotation: &'static str,
    variable: &'static str,
    opt_out: [&'static str; 2],
    literal: &'static str,
}

const SWITCHES: [Switch; 2] = [
    Switch {
        annotation: "memgate.dev/orka-memory-context",
        variable: "ORKA_MEMORY_CONTEXT_ENABLED",
        opt_out: ["orka/opt-out-env", "orka/opt-out-annotation"],
        literal: "orka/env-enabled",
    },
    Switch {
        annotation: "memgate.dev/orka-memory-tools",
        variable: "ORKA_MEMORY_TOOLS_AUTO_ENABLE",
        opt_out: ["orka/opt-out-tools-env", "orka/opt-out-tools-annotation"],
        literal: "orka/env-tools",
    },
];

fn orka(kind: &str, metadata: &Value, spec: &Value) -> Value {
    json!({"apiVersion": "core.orka.ai/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
}

/// The codes of the findings about a Task that is created, but for those of the schema, and whether each denies.
fn judged(task: &Value, snapshot: &Snapshot) -> Vec<(&'static str, bool)> {
    let decision = decided_in("team-a", task, snapshot);
    let findings = decision.findings.iter().filter(|finding| finding.code.name != "orka/schema");
    findings.map(|finding| (finding.code.name, finding.severity == Severity::Deny)).collect()
}

/// The opt-out of each switch, with each value of the variable and of the annotation of the Task, for Tasks of users and
/// of Orka.
#[test]
fn an_opt_out_holds_for_each_switch_by_itself() {
    let variables = [
        (None, false, false),
        (Some(json!({"value": "true"})), true, false),
        (Some(json!({"value": "false"})), false, false),
        (Some(json!({"value": " FALSE\u{2003}"})), false, false),
        (Some(json!({"value": ""})), true, false),
        (Some(json!({})), true, false),
        (Some(json!({"value": "no"})), true, true),
        (Some(json!({"value": "$(OTHER)"})), false, false),
        (Some(json!({"value": "true", "valueFrom": {"fieldRef": {"fieldPath": "x"}}})), false, false),
        (Some(json!({"value": 0})), false, false),
        (Some(json!({"value": "true", "valueFrom": 5})), false, false),
    ];
    let by_orka = [None, Some("orka.ai/parent-task"), Some("orka.ai/scheduled-run")];
    for (switch, other) in [(&SWITCHES[0], &SWITCHES[1]), (&SWITCHES[1], &SWITCHES[0])] {
        for (off_of, is_off) in [(switch, true), (other, false)] {
            let off = json!({"name": "scrubber", "namespace": "team-a", "annotations": {off_of.annotation: "False "}});
            let snapshot = state(&[orka("Agent", &off, &json!({}))]);
            for (variable, turns_on, is_odd) in &variables {
                for (annotation, label) in
                    [None, Some("true"), Some("false")].into_iter().flat_map(|it| by_orka.map(|by| (it, by)))
                {
                    let mut env = Vec::new();
                    if let Some(variable) = variable {
                        let mut variable = variable.clone();
                        variable["name"] = json!(switch.variable);
                        env.push(variable);
                    }
                    let mut metadata = json!({"name": "cut", "namespace": "team-a"});
                    if let Some(annotation) = annotation {
                        metadata["annotations"] = json!({switch.annotation: annotation});
                    }
                    if let Some(label) = label {
                        metadata["labels"] = json!({label: "true"});
                    }
                    let spec = json!({"type": "ai", "agentRef": {"name": "scrubber"}, "env": env});
                    let mut found = judged(&orka("Task", &metadata, &spec), &snapshot);
                    let mut expected = Vec::new();
                    if *is_odd {
                        expected.push((switch.literal, false));
                    }
                    if is_off && *turns_on {
                        expected.push((switch.opt_out[0], label.is_none()));
                    }
                    if is_off && annotation == Some("true") {
                        expected.push((switch.opt_out[1], false));
                    }
                    found.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(found, expected, "{} {is_off} {metadata} {spec}", switch.variable);
                }
            }
        }
    }
}

const NAMES: [&str; 4] = [
    "ORKA_MEMORY_CONTEXT_ENABLED",
    "ORKA_MEMORY_CONTEXT_LIMIT",
    "ORKA_MEMORY_CONTEXT_MAX_CHARS",
    "ORKA_MEMORY_TOOLS_AUTO_ENABLE",
];

/// The variables that a worker gets in front of its own, and the codes of the warnings.
fn injected(annotations: &Value, own: &[Value]) -> (Vec<(String, String)>, Vec<&'static str>) {
    let metadata = json!({"name": "cut", "namespace": "team-a", "annotations": annotations});
    let snapshot = state(&[orka("Task", &metadata, &json!({"type": "ai"}))]);
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let mut env = vec![
        variable("ORKA_TASK_NAME", "cut"),
        variable("ORKA_TASK_NAMESPACE", "team-a"),
        variable("ORKA_CONTROLLER_URL", "http://orka"),
    ];
    env.extend_from_slice(own);
    let pod = json!({
        "metadata": {"labels": {"orka.ai/task": "cut", "orka.ai/task-type": "ai"}},
        "spec": {"containers": [{"name": "worker", "env": env}]},
    });
    let text = pod.to_string();
    let decision = decide(&Request::to_create_pod("team-a", "", &text), &snapshot);
    let after: Value = serde_json::from_str(&apply(&text, &decision.edits).expect("applies")).expect("JSON");
    let env = after["spec"]["containers"][0]["env"].as_array().expect("a list").clone();
    let added = env.iter().take_while(|entry| entry["name"] != "ORKA_TASK_NAME");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let added = added.map(|entry| (text(&entry["name"]), text(&entry["value"]))).collect();
    (added, decision.findings.iter().map(|finding| finding.code.name).collect())
}

/// Every set of the four settings: they stand in one order, and the bounds depend on the first switch only.
#[test]
fn up_to_four_variables_stand_in_front_in_one_order() {
    let annotations = [
        "memgate.dev/orka-memory-context",
        "memgate.dev/orka-memory-context-limit",
        "memgate.dev/orka-memory-context-max-chars",
        "memgate.dev/orka-memory-tools",
    ];
    for (enabled, tools) in
        ["true", "false"].into_iter().flat_map(|enabled| ["true", "false"].map(|it| (enabled, it)))
    {
        let values = [enabled, "4", "900", tools];
        for set in 0..16 {
            let is_set = |index: usize| set >> index & 1 == 1;
            let chosen: Vec<usize> = (0..4).filter(|index| is_set(*index)).collect();
            let object: serde_json::Map<_, _> =
                chosen.iter().map(|index| (annotations[*index].to_owned(), json!(values[*index]))).collect();
            let is_off = is_set(0) && enabled == "false";
            let stays = |index: &&usize| !is_off || matches!(**index, 0 | 3);
            let expected: Vec<_> = chosen.iter().filter(stays).collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|index| (NAMES[**index].to_owned(), values[**index].to_owned()))
                .collect();
            assert_eq!(injected(&Value::Object(object), &[]), (expected, vec![]), "{enabled} {tools} {set}");
        }
    }
}

/// What a worker sets itself stays, and only what it reads in another way is reported.
#[test]
fn a_switch_that_a_worker_has_stays() {
    for switch in &SWITCHES {
        for wanted in ["true", "false"] {
            let annotations = json!({switch.annotation: wanted});
            let own = |fields: Value| {
                let mut own = fields;
                own["name"] = json!(switch.variable);
                own
            };
            for (value, is_on, is_odd) in [
                ("true", true, false),
                (" TRUE ", true, false),
                ("", true, false),
                ("false", false, false),
                ("\u{a0}False", false, false),
                ("off", true, true),
            ] {
                let mut expected = Vec::new();
                if is_on != (wanted == "true") {
                    expected.push("orka/pod-env-conflict");
                }
                if is_odd {
                    expected.push(switch.literal);
                }
                let (added, mut found) = injected(&annotations, &[own(json!({"value": value}))]);
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!((added, found), (vec![], expected), "{} {wanted} {value}", switch.variable);
            }
            for unknown in [json!({"value": "$(X)"}), json!({"valueFrom": {"fieldRef": {"fieldPath": "x"}}})]
            {
                let (added, found) = injected(&annotations, &[own(unknown)]);
                assert_eq!((added, found), (vec![], vec!["orka/pod-env-conflict"]));
            }
        }
    }
}

/// Each of the variables without which the worker has no memory code, with each kind of white space.
#[test]
fn a_worker_with_a_blank_variable_gets_nothing() {
    let annotations =
        json!({"memgate.dev/orka-memory-context": "false", "memgate.dev/orka-memory-tools": "false"});
    for name in ["ORKA_TASK_NAME", "ORKA_TASK_NAMESPACE", "ORKA_CONTROLLER_URL"] {
        for blank in
            ["", " ", "\t\r\n", "\u{b}\u{c}", "\u{85}", "\u{a0}", "\u{2003}\u{3000}", "\u{1680} \u{2028}"]
        {
            // The last one of a name counts.
            let (added, found) = injected(&annotations, &[json!({"name": name, "value": blank})]);
            assert_eq!((added, found), (vec![], vec![]), "{name} {blank:?}");
        }
    }
    assert_eq!(injected(&annotations, &[]).0.len(), 2);
}
