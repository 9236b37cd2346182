//! What a scan of many pods costs, without the requests that bring them.

use std::time::Duration;

use serde_json::json;

use super::*;
use memgate_core::state::{add, empty};

/// How many pods a namespace has. Its agent and its memory are in the state.
const PODS_OF_NAMESPACE: usize = 20;

/// What the steps return, and the CPU time that this thread takes for them.
fn timed<T>(steps: impl FnOnce() -> T) -> (T, Duration) {
    let before = cpu();
    let done = steps();
    (done, cpu().saturating_sub(before))
}

fn cpu() -> Duration {
    // The kernel brings the number up to date when a thread gives way.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux with schedstat");
    Duration::from_nanos(stat.split(' ').next().and_then(|it| it.parse().ok()).expect("nanoseconds"))
}

fn namespace(index: usize) -> String {
    format!("team-{}", index / PODS_OF_NAMESPACE)
}

fn state(pods: usize) -> Snapshot {
    let mut snapshot = empty(memgate_platforms::default_settings());
    for index in (0..pods).step_by(PODS_OF_NAMESPACE) {
        let metadata = |name: &str| json!({"name": name, "namespace": namespace(index)});
        for object in [
            json!({
                "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkMemory", "metadata": metadata("notes"),
                "spec": {"backend": "in-context"},
            }),
            json!({
                "apiVersion": "arkonis.dev/v1alpha1", "kind": "ArkAgent", "metadata": metadata("scout"),
                "spec": {"model": "m", "systemPrompt": "Scout.", "memoryRef": {"name": "notes"}},
            }),
        ] {
            add(&mut snapshot, &object).expect("an object");
        }
    }
    snapshot
}

/// A running pod of 2.5 kilobytes without its memory, and without a controller, so that each has an owner of its own.
fn pod(index: usize) -> RawObject {
    let env: Vec<_> =
        (0..30).map(|number| json!({"name": format!("SETTING_{number}"), "value": "x".repeat(40)})).collect();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("scout-{index}"), "namespace": namespace(index), "uid": format!("uid-{index}"),
            "labels": {"arkonis.dev/deployment": "scout"},
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "agent", "image": "agent", "env": env}]},
        "status": {"phase": "Running"},
    });
    serde_json::from_value(pod).expect("a pod")
}

#[test]
#[ignore = "measures; needs a quiet machine and --nocapture"]
fn what_a_pass_costs() {
    for count in [5_000, 10_000, 20_000, 40_000] {
        let store = Arc::new(Store::fixed(state(count)));
        let snapshot = store.snapshot();
        let judge = ByInjection { store };
        let family = &memgate_platforms::arkonis::FAMILY;
        let sorts: Vec<_> = family.pods.selectors.iter().map(|selector| Sort { family, selector }).collect();
        let mut pods = Pods::new(&sorts);
        let events: Vec<_> = (0..count).map(|index| Event::Apply(pod(index))).collect();
        let ((), answering) = timed(|| {
            for event in events {
                let mut wait = BTreeMap::new();
                pods.take(0, event, &snapshot.settings, &mut wait);
                for running in wait.into_values() {
                    let Ok(answered) = judge.judge(running, &snapshot) else { panic!("all is known") };
                    pods.put(answered);
                }
            }
        });
        let metrics = Metrics::new([]);
        let ((), writing) = timed(|| metrics.audit.set_pods(pods.counts()));
        let series = metrics.text().expect("metrics").matches("memgate_pods_without_memory{").count();
        println!("{count} pods: {answering:?} to answer for all, {writing:?} to write {series} series");
        assert_eq!((pods.counts().len(), series), (count, 101));
    }
}
