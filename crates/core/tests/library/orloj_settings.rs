//! What an installation of Orloj shares, and whose annotations count.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where something is wrong")]

use memgate_core::patch::Patch;
use memgate_model::finding::Finding;
use memgate_model::object::{Coverage, KindState, Object, Reference};
use memgate_model::snapshot::Snapshot;
use serde_json::{Value, json};

use super::pod_events::{decided_in, state_with};

fn snapshot(objects: &[Value], shared: &[&str], sources: &[&str]) -> Snapshot {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut settings = memgate_platforms::default_settings();
    settings.platforms.orloj.shared_secrets = owned(shared);
    settings.platforms.orloj.source_namespaces = owned(sources);
    state_with(settings, objects)
}

/// The codes and messages of the findings about an object that is created, and the names of the variables that
/// it gets.
fn decided(object: &Value, snapshot: &Snapshot) -> (Vec<String>, Vec<String>) {
    let namespace = object["metadata"]["namespace"].as_str().expect("a namespace");
    let decision = decided_in(namespace, object, snapshot);
    let without_field = |finding: &Finding| {
        let (message, field) = (finding.message(), format!("{}: ", finding.pointer.field()));
        format!("{}: {}", finding.code.name, message.strip_prefix(&field).unwrap_or(&message))
    };
    let findings = decision.findings.iter().map(without_field).collect();
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
        let snapshot = snapshot(&objects, shared, &[]);
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
    let claimed = "orloj/pod-ambiguous: Memory \"orloj/notes\" is claimed by several namespaces";
    let not_shared = NOT_SHARED.replace("team/notes", "platform/notes");
    for (sources, found) in [
        (&["*"][..], claimed.to_owned()),
        (&["platform", "team"], claimed.to_owned()),
        (&["platform"], not_shared),
        (&[], missing),
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
        ("prod", &["*"][..], vec![writes.to_owned()]),
        ("prod", &["team"], vec![writes.to_owned()]),
        ("prod", &["platform"], vec![ignored.clone()]),
        ("prod", &[], vec![ignored]),
        ("team", &["platform"], vec![]),
    ] {
        assert_eq!(decided(&object(target), &snapshot(&[], &[], sources)).0, found, "{target} {sources:?}");
    }
}

/// How the state has an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Has {
    Nothing,
    All,
    /// Its name and annotation: the rest takes too much memory.
    Name,
    /// It was let go of.
    Trace,
}

#[test]
fn a_claim_does_not_take_the_place_of_an_object_that_is_not_held() {
    use Has::{All, Name, Nothing, Trace};
    let mut seen = [0; 3];
    for (of, has, is_claimed, is_asked, by_label) in combinations(&[Nothing, All, Name, Trace]) {
        let mut snapshot = snapshot(&[], &[], &["*"]);
        for kind_name in ["Memory", "Agent"] {
            let kind = memgate_platforms::state_kind(&memgate_platforms::ALL, "orloj.dev", kind_name);
            let kind = kind.expect("a kind");
            let mut state = KindState::new(Coverage::Watched);
            let mut object = |namespace: &str, is_dense: bool| {
                let mut value =
                    if kind_name == "Memory" { memory(namespace, &json!({})) } else { agent(namespace) };
                value["metadata"]["annotations"] = json!({"orloj.dev/target-namespace": "orloj"});
                if is_dense {
                    value["spec"]["memory"]["allow"] = json!(vec![""; 9_900]);
                }
                let name = value["metadata"]["name"].as_str().expect("a name").to_owned();
                let read = Object::read_to_keep(kind, (namespace, &name), &value.to_string());
                state.put(read.expect("JSON").expect("a name")).0
            };
            let name = if of == kind_name {
                match has {
                    All => drop(object("platform", false)),
                    Name => assert!(!object("platform", true).held, "{kind_name}"),
                    Nothing | Trace => {}
                }
                if is_claimed {
                    object("team", false);
                }
                state.lacks_some = has == Trace;
                if of == "Memory" { "notes" } else { "scribe" }
            } else {
                object("orloj", false);
                ""
            };
            snapshot.set(kind, state);
            if of == kind_name && is_asked {
                let home = Reference { kind, namespace: "orloj".to_owned(), name: name.to_owned() };
                snapshot = snapshot.overlaid([(home, Ok(None))]);
            }
        }
        let mut pod = pod("orloj/t");
        if by_label {
            pod["spec"]["containers"][0]["args"] = json!(["--task-id", "orloj/t"]);
            pod["metadata"]["labels"]["orloj.dev/agent"] = "scribe".into();
        }
        let (findings, names) = decided(&pod, &snapshot);
        let case = format!("{of} {has:?} {is_claimed} {is_asked} {by_label}: {findings:?} {names:?}");
        let is_unknown = findings.iter().any(|it| it.starts_with("orloj/lookup-failed"));
        let is_used = !names.is_empty();
        match (has, is_claimed) {
            _ if !is_asked => assert!(is_unknown && !is_used, "{case}"),
            (Name | Trace, _) => assert!(is_unknown && !is_used, "{case}"),
            (Nothing, false) => {
                assert!(!is_unknown && !is_used && findings[0].contains("not found"), "{case}");
            }
            (Nothing, true) | (All, false) => assert!(!is_unknown && is_used, "{case}"),
            (All, true) => assert!(!is_unknown && !is_used && findings[0].contains("claimed by"), "{case}"),
        }
        seen[usize::from(is_unknown) + 2 * usize::from(is_used)] += 1;
    }
    assert!(seen.into_iter().all(|count| count > 0), "{seen:?}");
}

/// All combinations: the kind, how the state has the rightful object, whether another namespace claims its name, whether
/// the object at home was looked up, and whether the pod names its Agent by label.
fn combinations(all: &[Has]) -> Vec<(&'static str, Has, bool, bool, bool)> {
    let flags = |bits: usize| (bits & 1 == 1, bits & 2 == 2, bits & 4 == 4);
    let of = ["Memory", "Agent"].into_iter().flat_map(|of| all.iter().map(move |has| (of, *has)));
    // Of a Memory nothing is read that can take too much.
    let of = of.filter(|it| *it != ("Memory", Has::Name));
    let combine = |(of, has)| {
        (0..8)
            .map(flags)
            .map(move |(is_claimed, is_asked, by_label)| (of, has, is_claimed, is_asked, by_label))
    };
    of.flat_map(combine).collect()
}
