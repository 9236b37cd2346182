use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use super::*;
use memgate_model::family::Family;
use memgate_platforms::{arkonis, default_settings};

const HASH: &str = "7d9f8c6b54";

fn sorts() -> Vec<Sort> {
    let family: &'static Family = &arkonis::FAMILY;
    let sorts: Vec<_> = family.pods.selectors.iter().map(|selector| Sort { family, selector }).collect();
    assert!(!sorts.is_empty());
    sorts
}

fn pod(name: &str, more: &[(&str, Value)]) -> RawObject {
    let mut pod = json!({
        "metadata": {
            "name": name, "namespace": "lab", "labels": {"arkonis.dev/deployment": "scout"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": format!("scout-{HASH}"), "controller": true}],
        },
        "spec": {"containers": []},
        "status": {"phase": "Running"},
    });
    pod["metadata"]["labels"]["pod-template-hash"] = HASH.into();
    for (pointer, value) in more {
        *pod.pointer_mut(pointer).expect("a field") = value.clone();
    }
    serde_json::from_value(pod).expect("a pod")
}

/// Takes events of the first sort; each pod that waits lacks its memory, or not.
fn after(pods: &mut Pods<'_>, events: Vec<Event<RawObject>>, lacks_memory: Option<bool>) {
    let mut wait = BTreeMap::new();
    for event in events {
        pods.take(0, event, &default_settings(), &mut wait);
    }
    for pod in wait.into_values() {
        pods.put(pod.answered(lacks_memory));
    }
}

fn counts(pods: &Pods<'_>) -> Vec<(String, usize)> {
    pods.lacking.iter().map(|((_, owner), count)| (owner.clone(), *count)).collect()
}

fn of_scout(count: usize) -> Vec<(String, usize)> {
    vec![("Deployment/scout".to_owned(), count)]
}

#[test]
fn counts_pods_by_owner_while_they_lack_their_memory() {
    let sorts = sorts();
    let mut pods = Pods::new(&sorts);
    after(&mut pods, vec![Event::Apply(pod("a", &[])), Event::Apply(pod("b", &[]))], Some(true));
    assert_eq!(counts(&pods), of_scout(2));
    // What is not known leaves what was known.
    after(&mut pods, vec![Event::Apply(pod("b", &[]))], None);
    assert_eq!(counts(&pods), of_scout(2));
    after(&mut pods, vec![Event::Apply(pod("b", &[]))], Some(false));
    assert_eq!(counts(&pods), of_scout(1));
    after(&mut pods, vec![Event::Apply(pod("a", &[("/status/phase", "Succeeded".into())]))], Some(true));
    assert_eq!(counts(&pods), []);
    assert!(pods.has_changed() && pods.counts().is_empty() && !pods.has_changed());
}

#[test]
fn a_pod_that_is_gone_before_its_answer_is_not_counted() {
    let sorts = sorts();
    let mut pods = Pods::new(&sorts);
    after(&mut pods, vec![Event::Apply(pod("a", &[])), Event::Delete(pod("a", &[]))], Some(true));
    assert_eq!((counts(&pods), pods.known.len()), (Vec::new(), 0));
}

#[test]
fn a_new_list_is_all_there_is() {
    let sorts = sorts();
    let mut pods = Pods::new(&sorts);
    let all = ["a", "b", "c"].map(|name| Event::Apply(pod(name, &[])));
    after(&mut pods, all.into(), Some(true));
    let list = vec![Event::Init, Event::InitApply(pod("b", &[])), Event::InitDone];
    after(&mut pods, list, Some(true));
    assert_eq!((counts(&pods), pods.known.len()), (of_scout(1), 1));
    let settings = default_settings();
    assert!(pods.take_known(0, pod("b", &[]), &settings).is_some());
    assert!(pods.take_known(0, pod("a", &[]), &settings).is_none(), "it was deleted");
    assert_eq!((pods.sorts_in("lab").len(), pods.sorts_in("").len(), pods.sorts_in("la").len()), (1, 1, 0));
}

#[test]
fn an_owner_is_a_kind_and_a_name() {
    let owner_of = |more: &[(&str, Value)]| {
        let sorts = sorts();
        let mut pods = Pods::new(&sorts);
        after(&mut pods, vec![Event::Apply(pod("a", more))], Some(true));
        counts(&pods).remove(0).0
    };
    let controller = "/metadata/ownerReferences/0";
    for (kind, name, expected) in [
        ("ReplicaSet", "scout-7d9f8c6b54", "Deployment/scout"),
        ("ReplicaSet", "scout-by-hand", "ReplicaSet/scout-by-hand"),
        ("StatefulSet", "scout-7d9f8c6b54", "StatefulSet/scout-7d9f8c6b54"),
        ("Job", "nightly-1", "Job/nightly-1"),
        ("Job", "sk-proj-AAAA_BBBB", "Pod/a"),
        ("a \"kind\"", "nightly-1", "Pod/a"),
    ] {
        let owner = json!({"kind": kind, "name": name, "controller": true});
        assert_eq!(owner_of(&[(controller, owner)]), expected);
    }
    assert_eq!(owner_of(&[(controller, json!({"kind": "Job", "name": "nightly-1"}))]), "Pod/a");
    assert_eq!(owner_of(&[("/metadata/ownerReferences", Value::Null)]), "Pod/a");
}

#[test]
fn passes_over_what_memgate_never_sees() {
    let settings = default_settings();
    let sorts = sorts();
    for (pointer, value) in [
        ("/metadata/namespace", "kube-system"),
        ("/metadata/namespace", settings.policies.own_namespace.as_str()),
        ("/metadata/labels/arkonis.dev~1deployment", ""),
    ] {
        let more = [(pointer, Value::from(value))];
        let mut pods = Pods::new(&sorts);
        after(&mut pods, vec![Event::Apply(pod("a", &more))], Some(true));
        let is_empty_label = value.is_empty();
        assert_eq!(pods.known.len(), usize::from(is_empty_label), "{pointer} {value}");
    }
    let more = [("/metadata/labels", json!({"app": "other"}))];
    let mut pods = Pods::new(&sorts);
    after(&mut pods, vec![Event::Apply(pod("a", &more))], Some(true));
    assert_eq!(pods.known.len(), 0);
}
