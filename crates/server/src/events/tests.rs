//! Events against a stub.

use futures::FutureExt;

use tokio::time::timeout;

use super::*;
use crate::test_support::client;
use memgate_model::finding::{Cause, Code, Finding};
use memgate_model::page::Page;
use memgate_primitives::pointer::Pointer;

static MISSING: Code = Code { name: "family/missing", cause: Cause::NotFound, page: Page(|| "") };
static INVALID: Code = Code { name: "family/invalid", cause: Cause::Invalid, page: Page(|| "") };

fn pod_event(name: &str, code: &'static Code) -> PodEvent {
    let regarding = InvolvedObject {
        api_version: "family.dev/v1".to_owned(),
        kind: "Agent".into(),
        namespace: "team".to_owned(),
        name: name.to_owned(),
        uid: "u-1".to_owned(),
        known: true,
    };
    let finding = Finding::warn(code, Pointer::root(), "Memory \"a\" not found").help("make it");
    PodEvent { regarding, finding, partly: false }
}

fn elsewhere(number: usize) -> PodEvent {
    let mut pod_event = pod_event("a", &MISSING);
    pod_event.regarding.namespace = format!("team-{number}");
    pod_event
}

/// A recorder and a writer whose Events are answered with `status`.
fn answered(status: u16) -> (EventRecorder, EventWriter, Arc<Metrics>) {
    let reason = if status == 409 { "AlreadyExists" } else { "Other" };
    let body = format!(
        r#"{{"kind":"Status","status":"Failure","message":"no","reason":"{reason}","code":{status}}}"#
    );
    let (client, _) = client(move |_| {
        let reply = match status {
            201 => (201, r#"{"metadata":{}}"#.to_owned()),
            _ => (status, body.clone()),
        };
        async move { reply }.boxed()
    });
    let metrics = Arc::new(Metrics::new([]));
    let (recorder, writer) = recorder(client, Clock::default(), Arc::clone(&metrics), false);
    (recorder, writer, metrics)
}

fn count(metrics: &Metrics, result: &str) -> u64 {
    let start = format!("memgate_events_total{{result=\"{result}\"}} ");
    let text = metrics.text().expect("metrics");
    text.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok()).unwrap_or_default()
}

#[tokio::test]
async fn records_the_same_once_in_ten_minutes() {
    let (recorder, mut writer, metrics) = answered(201);
    let start = Instant::now();
    for after in [0, 1, 599] {
        recorder.record(pod_event("a", &MISSING), start + Duration::from_secs(after));
    }
    assert_eq!((writer.pod_events.len(), count(&metrics, "duplicate")), (1, 2));
    recorder.record(pod_event("a", &INVALID), start);
    recorder.record(pod_event("b", &MISSING), start);
    assert_eq!(writer.pod_events.len(), 3, "another reason and another agent are news");
    recorder.record(pod_event("a", &MISSING), start + DEDUPLICATION_WINDOW);
    assert_eq!(writer.pod_events.len(), 4);
    assert_eq!(writer.pod_events.recv().await, Some(pod_event("a", &MISSING)));
}

#[tokio::test]
async fn drops_what_does_not_fit_into_the_queue() {
    let (recorder, mut writer, metrics) = answered(201);
    let start = Instant::now();
    for number in 0..QUEUE_CAPACITY + 5 {
        recorder.record(elsewhere(number), start);
    }
    assert_eq!((writer.pod_events.len(), count(&metrics, "dropped")), (QUEUE_CAPACITY, 5));
    for number in 0..3 * MAX_RECENT {
        recorder.record(elsewhere(QUEUE_CAPACITY + number), start);
        writer.pod_events.try_recv().ok();
    }
    assert_eq!(recorder.recent.lock().expect("no panic").len(), MAX_RECENT);
    recorder.record(pod_event("late", &MISSING), start + DEDUPLICATION_WINDOW);
    assert_eq!(recorder.recent.lock().expect("no panic").len(), 1, "the old ones make room");
}

#[tokio::test]
async fn one_namespace_takes_no_more_than_its_share() {
    let (recorder, mut writer, metrics) = answered(201);
    let start = Instant::now();
    for number in 0..QUEUE_CAPACITY {
        recorder.record(pod_event(&format!("a-{number}"), &MISSING), start);
        writer.pod_events.try_recv().ok();
    }
    assert_eq!(count(&metrics, "dropped"), (QUEUE_CAPACITY - MAX_RECENT_PER_NAMESPACE) as u64);
    recorder.record(elsewhere(1), start);
    assert_eq!(writer.pod_events.len(), 1, "others have theirs");
    let mut again = elsewhere(1);
    again.regarding.uid = "u-2".to_owned();
    recorder.record(again, start);
    assert_eq!(count(&metrics, "duplicate"), 1, "a uid is nothing new");
}

#[tokio::test]
async fn believes_a_pod_only_where_the_apiserver_asks() {
    let (recorder, writer, _) = answered(201);
    let mut hearsay = pod_event("a", &MISSING);
    hearsay.regarding.known = false;
    recorder.record(hearsay.clone(), Instant::now());
    assert_eq!(writer.pod_events.len(), 0);
    EventRecorder { trust_pods: true, ..recorder }.record(hearsay, Instant::now());
    assert_eq!(writer.pod_events.len(), 1);
}

#[tokio::test]
async fn records_nothing_in_system_namespaces() {
    let (recorder, writer, _) = answered(201);
    let mut pod_event = pod_event("a", &MISSING);
    pod_event.regarding.namespace = "kube-system".to_owned();
    recorder.record(pod_event, Instant::now());
    assert_eq!(writer.pod_events.len(), 0);
}

#[tokio::test]
async fn what_could_not_be_written_may_be_recorded_again() {
    for (status, again) in [(403, 0), (201, 1)] {
        let (recorder, writer, metrics) = answered(status);
        recorder.record(pod_event("a", &MISSING), Instant::now());
        let counted = async {
            while count(&metrics, "failed") + count(&metrics, "written") == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            recorder.record(pod_event("a", &MISSING), Instant::now());
        };
        tokio::select! {
            () = writer.run() => panic!("it never ends"),
            counted = timeout(Duration::from_secs(20), counted) => counted.expect("it is counted"),
        }
        assert_eq!(count(&metrics, "duplicate"), again, "{status}");
    }
}

#[tokio::test]
async fn counts_what_became_of_each() {
    for (status, result) in [(201, "written"), (409, "duplicate"), (403, "failed"), (500, "failed")] {
        let (recorder, writer, metrics) = answered(status);
        recorder.record(pod_event("a", &MISSING), Instant::now());
        let counted = async {
            while count(&metrics, result) == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = writer.run() => panic!("it never ends"),
            counted = timeout(Duration::from_secs(20), counted) => counted.expect("it is counted"),
        }
    }
}

#[test]
fn all_replicas_give_an_event_the_same_name_and_another_one_ten_minutes_later() {
    let name = |name: &str, code, now| event_name(&pod_event(name, code), now);
    let one = name("scout", &MISSING, 6000);
    assert_eq!(name("scout", &MISSING, 6599), one);
    for other in
        [name("scout", &MISSING, 6600), name("scout", &INVALID, 6000), name("ranger", &MISSING, 6000)]
    {
        assert_ne!(other, one);
    }
    let long = name(&format!("{}.{}", "a".repeat(199), "b".repeat(53)), &MISSING, 0);
    assert!(long.len() <= 253 && !long.contains(".."), "{long}");
}

#[test]
fn says_what_is_missing_and_what_to_do() {
    let event = event(&pod_event("scout", &MISSING), 6000);
    let regarding = event.regarding.expect("regards an object");
    assert_eq!(regarding.uid.as_deref(), Some("u-1"));
    assert_eq!(
        event.note.as_deref(),
        Some(
            "a pod starts without its memory: Memory \"a\" not found; make it [family/missing]; \
             see \"memgate explain family/missing\", and make the pod anew when it is mended"
        )
    );
    let mut long = pod_event("scout", &MISSING);
    long.finding = long.finding.with_message("é".repeat(MAX_NOTE_BYTES));
    assert!(note(&long).len() <= MAX_NOTE_BYTES);
}
