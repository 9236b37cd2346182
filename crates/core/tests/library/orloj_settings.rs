//! What an installation of Orloj shares, and whose annotations count.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use memgate_core::decide::decide;
use memgate_core::patch::Patch;
use memgate_core::{admission, state};
use memgate_model::snapshot::Snapshot;
use serde_json::{Value, json};

fn snapshot(objects: &[Value], shared: &[&str], sources: Option<&[&str]>) -> Snapshot {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut settings = memgate_core::family::default_settings();
    settings.platforms.orloj.shared_secrets = owned(shared);
    settings.platforms.orloj.source_namespaces = sources.map(owned);
    let mut snapshot = state::empty(settings);
    for object in objects {
        state::add(&mut snapshot, object).expect("an object");
    }
    snapshot
}

/// The codes and messages of the findings about an object that is created, and the names of the variables that
/// it gets.
fn decided(object: &Value, snapshot: &Snapshot) -> (Vec<String>, Vec<String>) {
    let (group, version) =
        object["apiVersion"].as_str().and_then(|it| it.split_once('/')).unwrap_or(("", "v1"));
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "CREATE", "namespace": object["metadata"]["namespace"], "object": object,
            "kind": {"group": group, "version": version, "kind": object["kind"]},
        },
    });
    let body = review.to_string();
    let decision = decide(&admission::parse(&body).expect("a review").request, snapshot);
    let findings =
        decision.findings.iter().map(|finding| format!("{}: {}", finding.code.name, finding.message()));
    let findings = findings.collect();
    let patched = serde_json::to_string(&Patch(&decision.edits)).expect("a patch");
    let names = patched.split('"').filter(|text| text.starts_with("ORLOJ_MEMORY_")).map(str::to_owned);
    (findings, names.collect())
}

fn memory(namespace: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "orloj.dev/v1", "kind": "Memory",
        "metadata": {"name": "notes", "namespace": namespace, "annotations": annotations},
        "spec": {"provider": "http", "endpoint": "https://kb", "auth": {"secretRef": "orloj/shared-kb"}},
    })
}

fn agent(namespace: &str) -> Value {
    json!({
        "apiVersion": "orloj.dev/v1", "kind": "Agent", "metadata": {"name": "scribe", "namespace": namespace},
        "spec": {"prompt": "p", "memory": {"ref": "notes", "allow": ["read"]}},
    })
}

fn pod(task: &str) -> Value {
    let container = json!({"name": "agent", "args": ["--task-id", task, "--agent-name", "scribe"]});
    json!({
        "apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]},
        "metadata": {"name": "p", "namespace": "orloj", "labels": {"orloj.dev/component": "agent-job"}},
    })
}

const NOT_SHARED: &str = "orloj/pod-secret-foreign: Secret \"orloj/shared-kb\" is not shared with Memory \
                          \"team/notes\"; add it to orloj.sharedSecrets";

#[test]
fn shared_secrets_reach_pods() {
    let objects = [memory("team", &json!({})), agent("team")];
    for (shared, found, has_token) in [
        (&[][..], vec![NOT_SHARED.to_owned()], false),
        (&["other", "shared"], vec![NOT_SHARED.to_owned()], false),
        (&["other", "shared-*"], vec![], true),
        (&["shared-k?"], vec![], true),
    ] {
        let snapshot = snapshot(&objects, shared, None);
        let (findings, names) = decided(&pod("team/t"), &snapshot);
        assert_eq!(findings, found, "{shared:?}");
        assert_eq!(names.iter().any(|name| name == "ORLOJ_MEMORY_TOKEN"), has_token, "{shared:?} {names:?}");
        assert_eq!(decided(&objects[0], &snapshot).0, found, "{shared:?}");
    }
}

#[test]
fn other_sources_are_ignored() {
    let annotated =
        |namespace: &str, target: &str| memory(namespace, &json!({"orloj.dev/target-namespace": target}));
    let missing = "orloj/pod-memory-missing: Memory \"orloj/notes\" not found".to_owned();
    let claimed =
        "orloj/pod-ambiguous: Memory \"orloj/notes\" is claimed by several namespaces (platform, team)";
    let not_shared = NOT_SHARED.replace("team/notes", "platform/notes");
    for (sources, found) in [
        (None, claimed.to_owned()),
        (Some(&["platform", "team"][..]), claimed.to_owned()),
        (Some(&["platform"]), not_shared),
        (Some(&[]), missing),
    ] {
        let objects = [annotated("platform", "orloj"), annotated("team", "orloj"), agent("orloj")];
        let snapshot = snapshot(&objects, &[], sources);
        assert_eq!(decided(&pod("orloj/t"), &snapshot).0, [found], "{sources:?}");
    }
}

#[test]
fn an_annotation_that_is_ignored_draws_a_warning() {
    let object = |target: &str| {
        json!({
            "apiVersion": "orloj.dev/v1", "kind": "Memory",
            "metadata": {
                "name": "scratch", "namespace": "team", "annotations": {"orloj.dev/target-namespace": target},
            },
        })
    };
    let writes = "orloj/target-namespace: orloj.dev/target-namespace writes into Orloj namespace \"prod\"";
    let ignored = format!("{writes}; memgate ignores it");
    for (target, sources, found) in [
        ("prod", None, vec![writes.to_owned()]),
        ("prod", Some(&["team"][..]), vec![writes.to_owned()]),
        ("prod", Some(&["platform"]), vec![ignored]),
        ("team", Some(&["platform"]), vec![]),
    ] {
        assert_eq!(decided(&object(target), &snapshot(&[], &[], sources)).0, found, "{target} {sources:?}");
    }
}
