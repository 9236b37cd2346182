//! Pods that are as large as memgate reads them, larger ones, and patches that are too large.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test that cannot go on must stop")]

use memgate_core::admission;
use memgate_core::decide::decide;
use memgate_core::patch::{
    Patch,
    apply::{apply, check},
};
use memgate_core::state;
use memgate_model::decision::Decision;
use memgate_model::reason::Reason;
use memgate_model::request::Request;
use memgate_model::snapshot::Snapshot;
use memgate_primitives::budget::{
    MAX_CONTAINERS, MAX_ENTRIES, MAX_INIT_CONTAINERS, MAX_PATCH_BYTES, MAX_VARIABLES, MAX_VOLUMES,
};
use memgate_primitives::review_path::Phase;
use serde_json::{Value, json};

/// An agent with a memory for arkonis and one for sympozium, and a Memory of ark with so many headers.
fn snapshot(headers: usize) -> Snapshot {
    let mut snapshot = state::empty(memgate_platforms::default_settings());
    let header = |number| json!({"name": format!("X-Header-{number}"), "value": {"value": "yes"}});
    let headers: Vec<Value> = (0..headers).map(header).collect();
    let shared = json!({"agentConfigs": [{"name": "scout", "systemPrompt": "You are scout."}], "sharedMemory": {"enabled": true}});
    let labels = json!({"sympozium.ai/ensemble": "newsroom", "sympozium.ai/agent-config": "scout"});
    for (group, kind, name, labels, spec) in [
        ("arkonis.dev", "ArkAgent", "scout", json!({}), json!({"memoryRef": {"name": "notes"}})),
        (
            "arkonis.dev",
            "ArkMemory",
            "notes",
            json!({}),
            json!({"backend": "redis", "redis": {"secretRef": {"name": "s"}}}),
        ),
        (
            "ark.mckinsey.com",
            "Memory",
            "shared",
            json!({}),
            json!({"address": {"value": "http://ark-broker"}, "headers": headers}),
        ),
        ("sympozium.ai", "Agent", "scout", labels, json!({"agents": {"default": {"model": "gpt-4o"}}})),
        ("sympozium.ai", "Ensemble", "newsroom", json!({}), shared),
    ] {
        let metadata = json!({"name": name, "namespace": "team-a", "labels": labels});
        let api_version = format!("{group}/v1alpha1");
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
        state::add(&mut snapshot, &object).expect("an object");
    }
    snapshot
}

fn decided(pod: &Value, headers: usize) -> Decision {
    decide(&Request::to_create_pod("team-a", "", &pod.to_string()), &snapshot(headers))
}

/// A pod of the family that this label or annotation stands for.
fn pod(family: &str) -> Value {
    let (labels, annotations) = match family {
        "arkonis" => (json!({"arkonis.dev/deployment": "scout"}), json!({})),
        "sympozium" => {
            let labels = json!({"sympozium.ai/component": "agent-run", "sympozium.ai/instance": "scout"});
            (labels, json!({}))
        }
        "ark" => (json!({}), json!({"memgate.dev/ark-memory": "shared"})),
        _ => (json!({}), json!({})),
    };
    json!({
        "metadata": {"name": "p", "labels": labels, "annotations": annotations},
        "spec": {"containers": [{"name": "agent", "env": []}], "initContainers": [], "volumes": []},
    })
}

/// More elements of a list, so that it has this many.
fn fill(pod: &mut Value, list: &str, count: usize) {
    let list = pod.pointer_mut(list).and_then(Value::as_array_mut).expect("a list");
    for number in list.len()..count {
        list.push(json!({"name": format!("n{number}")}));
    }
}

fn fill_map(pod: &mut Value, map: &str, prefix: &str, count: usize) {
    let map = pod.pointer_mut(map).and_then(Value::as_object_mut).expect("a map");
    for number in map.len()..count {
        map.insert(format!("{prefix}{number}"), "".into());
    }
}

/// Asserts that a pod gets its memory, and that with one more of something it is left with a warning, or
/// refused when it requires its memory.
fn at_and_beyond(family: &str, place: &str, most: &str, fill: impl Fn(&mut Value, usize), count: usize) {
    let mut filled = pod(family);
    fill(&mut filled, count);
    let decision = decided(&filled, 2);
    assert_eq!((decision.reason, decision.allowed()), (Reason::Injected, true), "{place}");
    let mut beyond = pod(family);
    fill(&mut beyond, count + 1);
    for required in [false, true] {
        if required {
            let labels = beyond["metadata"]["labels"].as_object_mut().expect("labels");
            // In front, where it does not count as the one too many.
            labels.shift_insert(0, "memgate.dev/inject".to_owned(), "required".into());
        }
        let decision = decided(&beyond, 2);
        assert_eq!((decision.reason, decision.allowed()), (Reason::OverLimit, !required), "{place}");
        assert!(decision.edits.is_empty() && decision.required == required, "{place}");
        let finding = decision.findings.first().expect("a finding");
        assert_eq!(decision.findings.len(), 1, "{:?}", decision.findings);
        let expected = format!("{place}: memgate reads {most} at most; the pod gets no memory");
        assert_eq!(finding.message(), expected);
    }
}

#[test]
fn the_stated_limits_hold() {
    let list = |list: &'static str| move |pod: &mut Value, count| fill(pod, list, count);
    let arkonis = |place: &str, most, pointer, count| {
        at_and_beyond("arkonis", place, most, list(pointer), count);
    };
    arkonis("spec.containers", "1000 containers", "/spec/containers", MAX_CONTAINERS);
    arkonis("spec.containers[0].env", "28000 environment variables", "/spec/containers/0/env", MAX_VARIABLES);
    let sympozium = |place: &str, most, pointer, count| {
        at_and_beyond("sympozium", place, most, list(pointer), count);
    };
    sympozium("spec.initContainers", "1000 containers", "/spec/initContainers", MAX_INIT_CONTAINERS);
    sympozium("spec.volumes", "1000 volumes", "/spec/volumes", MAX_VOLUMES);
}

#[test]
fn variables_count_over_all_containers() {
    let spread = |pod: &mut Value, count: usize| {
        fill(pod, "/spec/containers/0/env", count / 2);
        let containers = pod["spec"]["containers"].as_array_mut().expect("a list");
        containers.push(json!({"name": "other", "env": []}));
        fill(pod, "/spec/containers/1/env", count - count / 2);
    };
    let place = "spec.containers[1].env";
    at_and_beyond("arkonis", place, "28000 environment variables", spread, MAX_VARIABLES);
}

#[test]
fn maps_have_ten_thousand_entries() {
    let labels = |pod: &mut Value, count| fill_map(pod, "/metadata/labels", "label", count);
    at_and_beyond("arkonis", "metadata.labels", "10000 entries", labels, MAX_ENTRIES);
    let annotations = |pod: &mut Value, count| fill_map(pod, "/metadata/annotations", "memgate.dev/a", count);
    at_and_beyond("arkonis", "metadata.annotations", "10000 entries", annotations, MAX_ENTRIES);
}

#[test]
fn annotations_for_others_do_not_count() {
    let mut pod = pod("arkonis");
    fill_map(&mut pod, "/metadata/annotations", "other.dev/a", MAX_ENTRIES + 1_000);
    assert_eq!(decided(&pod, 0).reason, Reason::Injected);
}

#[test]
fn a_pod_of_no_platform_gets_no_findings() {
    let mut pod = pod("");
    fill(&mut pod, "/spec/containers", MAX_CONTAINERS + 1);
    let decision = decided(&pod, 0);
    assert_eq!((decision.reason, decision.findings.len()), (Reason::NotOurs, 0));
    pod["metadata"]["labels"] = json!({"memgate.dev/inject": "required"});
    assert_eq!((decided(&pod, 0).reason, decided(&pod, 0).allowed()), (Reason::OverLimit, false));
}

#[test]
fn fields_behind_the_limit_are_still_known() {
    let containers = vec!["{}"; MAX_CONTAINERS + 1].join(",");
    let labels = r#""arkonis.dev/deployment":"scout","memgate.dev/inject":"required""#;
    let text = format!(r#"{{"spec":{{"containers":[{containers}]}},"metadata":{{"labels":{{{labels}}}}}}}"#);
    let decision = decide(&Request::to_create_pod("team-a", "", &text), &snapshot(0));
    assert_eq!((decision.reason, decision.allowed()), (Reason::OverLimit, false));
    let mut pod = pod("arkonis");
    fill_map(&mut pod, "/metadata/labels", "label", MAX_ENTRIES + 5);
    pod["metadata"]["labels"]["memgate.dev/inject"] = "required".into();
    assert!(!decided(&pod, 0).allowed(), "the label stands behind ten thousand others");
}

#[test]
fn an_object_with_very_many_fields_is_too_much() {
    let mut pod = pod("arkonis");
    fill_map(&mut pod, "/spec", "field", MAX_ENTRIES + 1);
    assert_eq!(decided(&pod, 0).reason, Reason::OverLimit);
}

/// What each of a thousand containers needs, and that the whole of it applies.
#[test]
fn a_thousand_containers_get_their_variables() {
    let mut pod = pod("ark");
    fill(&mut pod, "/spec/containers", MAX_CONTAINERS);
    let decision = decided(&pod, 1);
    assert_eq!(decision.reason, Reason::Injected);
    let text = pod.to_string();
    assert_eq!(check(&text, &decision.edits), Ok(()));
    let patched: Value =
        serde_json::from_str(&apply(&text, &decision.edits).expect("applies")).expect("JSON");
    for container in patched["spec"]["containers"].as_array().expect("a list") {
        assert_eq!(container["env"].as_array().map(Vec::len), Some(5), "{container}");
    }
}

#[test]
fn a_patch_has_a_megabyte_at_most() {
    let cases = [(MAX_CONTAINERS, 10_000), (1, 10_000), (MAX_CONTAINERS, 20)];
    for (containers, headers) in cases {
        for required in [false, true] {
            let mut pod = pod("ark");
            fill(&mut pod, "/spec/containers", containers);
            if required {
                pod["metadata"]["labels"]["memgate.dev/inject"] = "required".into();
            }
            let decision = decided(&pod, headers);
            assert_eq!((decision.reason, decision.allowed()), (Reason::OverLimit, !required));
            assert!(decision.edits.is_empty(), "never half a patch");
            let expected = "the object: its memory needs more than a patch of 1 MiB; it gets nothing";
            assert_eq!(decision.findings[0].message(), expected);
        }
    }
}

#[test]
fn a_patch_is_measured_as_it_is_sent() {
    let mut most = 0;
    for headers in (100..4_000).step_by(300) {
        let mut pod = pod("ark");
        fill(&mut pod, "/spec/containers", 3);
        let decision = decided(&pod, headers);
        let bytes = serde_json::to_string(&Patch(&decision.edits)).expect("JSON").len();
        // Beyond a number of headers, their names alone are too long for an annotation.
        let is_left_out = matches!(decision.reason, Reason::OverLimit | Reason::Conflict);
        assert_eq!(is_left_out, decision.edits.is_empty());
        if !decision.edits.is_empty() {
            let patch = Patch(&decision.edits);
            assert!(patch.is_longer_than(bytes - 1) && !patch.is_longer_than(bytes));
        }
        most = most.max(bytes);
    }
    assert!((MAX_PATCH_BYTES / 2..=MAX_PATCH_BYTES).contains(&most), "{most} bytes");
}

#[test]
fn two_families_share_a_full_pod() {
    let mut pod = pod("arkonis");
    pod["metadata"]["annotations"]["memgate.dev/ark-memory"] = "shared".into();
    fill(&mut pod, "/spec/containers/0/env", MAX_VARIABLES);
    let decision = decided(&pod, 1);
    assert_eq!((decision.reason, decision.families.len()), (Reason::Injected, 2));
    let body = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u", "operation": "CREATE", "kind": {"kind": "Pod"}, "object": pod},
    })
    .to_string();
    let review = admission::parse(&body).expect("a review");
    assert!(admission::respond(Phase::Mutate, &review, &decision).is_ok());
}

#[test]
fn an_annotation_names_ten_thousand_containers_at_most() {
    for (names, reason) in [(MAX_ENTRIES, Reason::Injected), (MAX_ENTRIES + 1, Reason::OverLimit)] {
        let mut pod = pod("ark");
        let listed = (1..names).map(|number| format!(",c{number}")).collect::<Vec<_>>().concat();
        pod["metadata"]["annotations"]["memgate.dev/ark-containers"] = format!("agent{listed}").into();
        let decision = decided(&pod, 0);
        assert_eq!((decision.reason, decision.allowed()), (reason, true));
    }
}

/// Sidecars that hold a credential, of which each is looked for among the init containers.
#[test]
fn a_thousand_sidecars_stay_apart() {
    let credential = json!([{
        "name": "ARK_MEMORY_HEADER_AUTHORIZATION", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}},
    }]);
    for (sidecars, reason) in [(MAX_CONTAINERS - 1, Reason::Injected), (10_000, Reason::OverLimit)] {
        let mut pod = pod("ark");
        let many = |container: Value| vec![container; sidecars];
        pod["spec"]["initContainers"] = many(json!({"name": "i"})).into();
        pod["spec"]["initContainers"][0]["name"] = "osm-init".into();
        let containers = pod["spec"]["containers"].as_array_mut().expect("containers");
        containers.extend(many(json!({"name": "envoy", "env": credential})));
        let decision = decided(&pod, 0);
        assert_eq!((decision.reason, decision.allowed()), (reason, true));
        let told = decision.findings.iter().any(|it| it.code.name == "memgate/pod-credential-shared");
        assert_eq!(told, reason == Reason::Injected);
    }
}
